"""The rules. Pure: no I/O, no clock, no randomness, no environment, no temporalio. One sitting to read."""
