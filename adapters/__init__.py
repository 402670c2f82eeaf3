"""The plugs: all that imports a library with side effects, each behind a port of `activities/ports.py`.

Only worker.py, starter.py, commands/, gateway/, benchmarks/ and tests/ import them. Texts of a library's errors end here: what leaves
is one of `domain/errors.py`.
"""
