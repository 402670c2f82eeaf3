"""What a result is checked against, as values taken from the answer that ended the waiting.

A check without a value is *not offered*, which is said and not hidden; a value that can't be read as such a check is *malformed*,
and fails: a provider that states nonsense has stated something.
"""

import base64
import binascii
from dataclasses import asdict, dataclass
from typing import cast

from pydantic import JsonValue

from domain.errors import RenderError
from domain.language.calls import Checkable, Output, Verify
from domain.language.expressions import Scope
from domain.language.templates import compile_template, fill, hole_value, texts_of

_PASSING = frozenset({"steps", "status", "headers"})
"""Roots that a later attempt does not have again: what an answer or a step showed."""


@dataclass(frozen=True, slots=True)
class Expectations:
    """What a result is checked against, as values. `malformed` names checks whose value the provider gave but that can't be read
    as such a check: they fail. `not_offered` names those of `required` that have no value: they fail as well."""

    content_type: str | None = None
    bytes: int | None = None
    sha256: str | None = None
    records: int | None = None
    schema: dict[str, JsonValue] | None = None
    required: tuple[Checkable, ...] = ()
    malformed: tuple[Checkable, ...] = ()
    not_offered: tuple[Checkable, ...] = ()

    def to_json(self) -> dict[str, JsonValue]:
        """The form that is staged beside an object, for the attempt that finds it."""
        return cast("dict[str, JsonValue]", asdict(self))

    @classmethod
    def from_json(cls, value: dict[str, JsonValue]) -> "Expectations":
        """The reverse of `to_json`."""
        lists = {name: tuple(cast("list[JsonValue]", value[name])) for name in ("required", "malformed", "not_offered")}
        return cls(**{**value, **lists})  # pyright: ignore[reportArgumentType]  # the shape that to_json wrote


def passing(verify: Verify | None) -> bool:
    """Whether the checks name what only the attempt that fetches can see: then they are kept beside what it fetched."""
    values: list[JsonValue] = [] if verify is None else [verify.content_type, verify.bytes, verify.sha256, verify.records]
    return any(hole.roots & _PASSING for value in values for _, text in texts_of(value) for hole in compile_template(text).holes)


def expectations(output: Output, scope: Scope) -> Expectations:
    """The checks of one output."""
    verify = output.verify or Verify()
    wanted: dict[Checkable, JsonValue] = {
        "content_type": _offered(verify.content_type, scope),
        "bytes": _offered(verify.bytes, scope),
        "sha256": _offered(verify.sha256, scope),
        "records": _offered(verify.records, scope),
    }
    media = wanted["content_type"] if isinstance(wanted["content_type"], str) else None
    size, records, digest = count_of(wanted["bytes"]), count_of(wanted["records"]), digest_of(wanted["sha256"])
    read: dict[Checkable, object] = {"content_type": media, "bytes": size, "sha256": digest, "records": records, "schema": verify.schema_}
    offered: set[Checkable] = {name for name, value in wanted.items() if value is not None}
    if verify.schema_ is not None:
        offered.add("schema")
    return Expectations(
        content_type=media,
        bytes=size,
        sha256=digest,
        records=records,
        schema=verify.schema_,
        required=verify.required,
        malformed=tuple(name for name in wanted if name in offered and read[name] is None),
        not_offered=tuple(name for name in verify.required if name not in offered),
    )


def count_of(value: JsonValue) -> int | None:
    """A count: an integer, or text of decimal digits."""
    match value:
        case bool():
            return None
        case int() if value >= 0:
            return value
        case str() if value.isascii() and value.isdigit() and len(value) <= 18:
            return int(value)
        case _:
            return None


def digest_of(value: JsonValue) -> str | None:
    """A SHA-256 from `hex`, `sha256:hex` or base64, as lower-case hexadecimal."""
    if not isinstance(value, str):
        return None
    text = value.strip()
    text = text[7:] if text.lower().startswith("sha256:") else text
    try:
        raw = bytes.fromhex(text) if len(text) == 64 else base64.b64decode(text.encode("ascii"), validate=True)
    except (ValueError, binascii.Error):
        return None
    return raw.hex() if len(raw) == 32 else None


def _offered(value: JsonValue, scope: Scope) -> JsonValue:
    """The value of a check, None where the provider gave none; False, which no check can read, where it is too much."""
    if not isinstance(value, str):
        return value
    try:
        absent = any(hole_value(hole, scope) is None for hole in compile_template(value).holes)
        return None if absent else fill(value, scope)
    except RenderError:
        return False
