"""Measured facts against what the contract and the provider's own words let us expect.

* Every check is in the answer, in one order; what was not offered says `not_offered`, and nothing is passed over in silence.
* A check that is `required` and has no value differs; so does a value that can't be read as such a check, and a check of something
  that could not be measured. What was not looked at is never `ok`.
* `found` and `expected` hold digests, counts and places, never the content of a result.
"""

import json
from functools import lru_cache
from typing import Final

import jsonschema_rs

from domain.bodies import media_type
from domain.errors import BadInput
from domain.evidence import Check, Json, bounded
from domain.language.input_schema import check_schema, place_of
from domain.results.expectations import Expectations
from domain.results.measuring import Measured

_UNREADABLE: Final = "a value that can't be read as one"
_MAX_PLACE: Final = 200


def check(expected: Expectations, measured: Measured, content_type: str | None) -> tuple[Check, ...]:
    """One verdict for each check that there is: format, content_type, bytes, sha256, records, schema."""
    found_type = None if content_type is None else media_type(content_type)[0]
    wanted_type = None if expected.content_type is None else media_type(expected.content_type)[0]
    return (
        _format(measured),
        _compared(expected, "content_type", wanted_type, found_type, "no content type"),
        _compared(expected, "bytes", _text(expected.bytes), str(measured.size), ""),
        _compared(expected, "sha256", _lower(expected.sha256), measured.sha256, ""),
        _compared(expected, "records", _text(expected.records), _text(measured.records), "nothing that can be counted"),
        _schema(expected, measured),
    )


def _format(measured: Measured) -> Check:
    if measured.format == "binary":
        return Check(check="format", verdict="not_offered", expected="binary")
    verdict = "ok" if measured.well_formed else "differs"
    return Check(check="format", verdict=verdict, expected=measured.format, found=measured.problem or measured.format)


def _compared(expected: Expectations, name: str, wanted: str | None, found: str | None, nothing: str) -> Check:
    here = bounded(nothing if found is None else found)
    if wanted is None:
        return _without_value(expected, name, here)
    verdict = "ok" if wanted == found else "differs"
    return Check(check=name, verdict=verdict, expected=bounded(wanted), found=here)


def _without_value(expected: Expectations, name: str, here: str | None = None) -> Check:
    if name in expected.malformed:
        return Check(check=name, verdict="differs", expected=_UNREADABLE, found=here)
    if name in expected.required or name in expected.not_offered:
        return Check(check=name, verdict="differs", expected="a value, as the contract requires", found="not offered")
    return Check(check=name, verdict="not_offered")


def _schema(expected: Expectations, measured: Measured) -> Check:
    if expected.schema is None:
        return _without_value(expected, "schema")
    if not measured.value_read:
        return Check(
            check="schema", verdict="differs", expected="the contract's schema", found="no JSON that is small enough to be checked"
        )
    found = _misfit(json.dumps(expected.schema, sort_keys=True), measured.value)
    return Check(check="schema", verdict="ok" if found is None else "differs", expected="the contract's schema", found=found)


def _misfit(schema: str, value: Json) -> str | None:
    """The first place that does not fit, and what was expected there; None if all fits."""
    try:
        error = next(_compiled(schema).iter_errors(value), None)
    except (BadInput, ValueError, OverflowError, RecursionError) as failed:
        return f"could not be checked: {type(failed).__name__}"
    if error is None:
        return None
    return f"{bounded(place_of(error), _MAX_PLACE)}: {bounded(error.message, _MAX_PLACE)}"


@lru_cache(maxsize=64)
def _compiled(schema: str) -> jsonschema_rs.Draft202012Validator:
    """References lead into the schema only, patterns are linear, and a message names no value of the result."""
    value = json.loads(schema)
    check_schema(value)
    return jsonschema_rs.Draft202012Validator(value, offline=True, pattern_options=jsonschema_rs.RegexOptions(), mask="the value")


def _text(value: int | None) -> str | None:
    return None if value is None else str(value)


def _lower(value: str | None) -> str | None:
    return None if value is None else value.lower()
