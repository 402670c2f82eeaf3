"""The commands of starter.py, a few lines each over `adapters/client.py`.

A command parses what was typed, does one thing, and says what came of it: text for people, or one JSON object with `--json`.
Libraries are imported where they are needed, so that `--help` and a status are quick.
"""
