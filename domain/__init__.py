"""The rules. Pure: no I/O, no clock, no randomness, no environment, no temporalio.

What lies here is the life of an operation, its evidence, and the way from a contract to a request and from an answer to a meaning. In
rooms of their own: `language/`, how a contract is written, loaded and checked; `cases/`, the exchanges beside a contract; `results/`, what
came back: measured, checked, counted.
"""
