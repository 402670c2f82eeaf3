"""The language of contracts: its kinds of text, its parts as models, loading a file, and what is wrong or unsafe with one."""
