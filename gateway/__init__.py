"""The doorbell: the web application at which providers announce that a job has moved.

An announcement is a hint. It wakes the operation, which then reads the status itself; it never stands for a fact.
"""
