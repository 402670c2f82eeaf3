"""JSON that acts on nothing it is shown on: no control character, no character that hides or reorders text.

* It is the same JSON: what is not printable stands within texts alone, and is escaped there.
* Text that no encoding takes, as of a name that is not UTF-8, is escaped too: what is written can always be written.
"""

import json


def printable_json(text: str) -> str:
    """One line of JSON, with an escape for all that is not printable."""
    return text if text.isprintable() else "".join(letter if letter.isprintable() else json.dumps(letter)[1:-1] for letter in text)
