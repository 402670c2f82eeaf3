"""A provider of slow reports that keeps honest books and lies on request.

* It stands alone: nothing here imports the project, so what it shows is a witness of its own.
* The honest path (`provider.py`) never lies. Every lie is one word of `lies.py`, installed by a script (`script.py`) and
  written into the books beside the request that it met.
* The books (`books.py`) tell what was really created, asked and downloaded, whatever the answers said.
"""
