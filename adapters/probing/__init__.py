"""`contracts probe`: asking a real endpoint whether its contract is true. Production's rendering, reading and HTTP, without Temporal
and without a ledger: nothing of it is an operation, and nothing is kept but the report."""
