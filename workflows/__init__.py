"""The stories: they decide and wait, and never touch the world.

A workflow does the step that the ledger's head names, until the head is final. It computes no state, reads no clock of its own and
holds no credential; each file opens with its rules, and `run()` fits one screen.
"""
