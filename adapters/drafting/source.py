"""The document of a file, JSON or YAML, whichever it is: OpenAPI asks for YAML of JSON's scalars, as contracts do."""

import json
from pathlib import Path
from typing import Final, cast

from pydantic import JsonValue

from adapters.drafting.openapi import OpenApi
from adapters.regular_files import first_bytes
from adapters.strict_yaml import Bounds, read_yaml
from domain.errors import BadContract, BadInput

MAX_BYTES: Final = 16 * 2**20
BOUNDS: Final = Bounds("an OpenAPI document", MAX_BYTES, 1_000_000, 100, quick=True)


def read_openapi(path: Path) -> OpenApi:
    """The document of a file. Raises BadInput."""
    try:
        data = first_bytes(path, MAX_BYTES + 1)
    except OSError as error:
        raise BadInput(f"{path} can't be read: {error.strerror}") from None
    if len(data) > MAX_BYTES:
        raise BadInput(f"{path} is larger than {BOUNDS.said}")
    return OpenApi(_parsed(data.removeprefix(b"\xef\xbb\xbf"), path), str(path))


def _parsed(data: bytes, path: Path) -> JsonValue:
    if data.lstrip()[:1] != b"{":
        try:
            return read_yaml(data, str(path), BOUNDS).document
        except BadContract as error:
            raise BadInput(f"{error.findings[0]} was expected") from None
    try:
        return cast("JsonValue", json.loads(data.decode("utf-8")))
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}:{data.count(10, 0, error.start) + 1}: not UTF-8") from None
    except json.JSONDecodeError as error:
        raise BadInput(f"{path}:{error.lineno}:{error.colno}: not JSON: {error.msg}") from None
    except (ValueError, RecursionError):
        raise BadInput(f"{path} is JSON with numbers too long or levels too many to be read") from None
