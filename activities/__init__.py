"""The verbs: one effect each, safe to run twice. Arguments are hints; what may be done is read from the ledger first.

They import ports, never a library that does I/O, so that a test can hand them a world of its own. `ports.py` is that world on
one page, `options.py` the timeouts and retry rules as one table, `failures.py` the only place where our errors become Temporal's.
"""
