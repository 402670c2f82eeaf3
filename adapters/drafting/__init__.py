"""`contracts new`: a first draft of a contract out of an OpenAPI document.

* What the document says is written down; what it only suggests is written with a comment that says so; what it does not say is a hole,
  the text `?`, which `contracts check` finds with its line. The holes are all that it finds.
* `source.py` reads the file and `openapi.py` the document in it, `schemas.py` and `reading.py` find what a contract asks for, `asking.py`
  makes the requests, `connecting.py` the address and the credential, `states.py` the states, `draft.py` puts the contract together,
  `text.py` writes it.
"""
