"""The contest: the same paid job done by hand on Temporal, on DBOS and by Sakshi, in turn, on one machine.

`python -m benchmarks.contest` prints it. What each contestant is, `contestants.py` says; what each does is the same:

* create a report at the simulated provider with an Idempotency-Key, read its status until it has ended, waiting `DELAY_S` between
  two readings, and fetch the whole result. Each goes through one `httpx.AsyncClient` that keeps its connections.
* The provider is one process for all, and no part of what is counted. It shares the cores, which draws all ratios towards 1.
* Work is handed out by one starter process for each contestant, through the official client of its kind, at most so many at once.
"""
