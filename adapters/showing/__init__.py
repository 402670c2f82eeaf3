"""What people and programs are shown: shapes of JSON, and text for a terminal. Everything here is computed from the ledger."""
