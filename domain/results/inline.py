"""A value of an answer as the bytes of a result.

* The same value gives the same bytes, whoever writes them: an operation that stores them, and a probe that only measures.
* A text is itself where the format is not JSON; a list is lines where the format is lines; everything else is canonical JSON.
* Total: what canonical JSON does not carry is written with its keys as they came.
"""

import json

from domain.errors import BadInput
from domain.evidence import Json
from domain.fingerprint import canonical
from domain.results.counting import Format


def inline_bytes(value: Json, format: Format) -> bytes:
    """What is stored of a value that stands in an answer."""
    if isinstance(value, str) and format != "json":
        return value.encode("utf-8", "replace")
    if isinstance(value, list) and format == "jsonl":
        return b"".join(map(line, value))
    try:
        return canonical(value)
    except BadInput:  # an integer with more digits than canonical JSON carries: it keeps them
        return line(value)[:-1]


def line(value: Json) -> bytes:
    """A value as one line of JSON, its keys in the order in which they came."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8", "replace") + b"\n"
