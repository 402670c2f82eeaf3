"""JSON from outside, in two manners.

* What a person or program hands in (`parse_input`) is refused with the reason where canonical JSON could not carry it: more
  than 256 KiB, double keys, numbers that are not finite, integers of 2^53 and more, lone surrogates, depth over 64.
* What a provider answered (`parse_answer`) is read as far as it can be held without harm. A number that no machine type holds
  becomes its own text, so that it is still "a value" and equals no number; a lone surrogate becomes U+FFFD; of double keys the
  last counts. `NaN` and `Infinity` are not JSON, and too deep or too many nodes is not readable: `NotReadable`, never a guess.
* Equality is JSON's: `1` equals `1.0`, a boolean equals no number, text is compared exactly.
"""

import json
import math
from typing import Final, NoReturn, cast

from pydantic import JsonValue

from domain.errors import BadInput

MAX_INPUT_BYTES: Final = 256 * 1024
MAX_DEPTH: Final = 64
MAX_NODES: Final = 250_000
MAX_DIGITS: Final = 1_000
SAFE_INTEGER: Final = 2**53


class NotReadable(Exception):
    """The text is not JSON, or more of it than may be held."""


def parse_input(data: bytes) -> JsonValue:
    """The operation's input from its bytes. Raises BadInput that says what cannot be carried, and where."""
    if len(data) > MAX_INPUT_BYTES:
        raise BadInput(f"the input has over {MAX_INPUT_BYTES} bytes", hint="put bulk data where the provider can fetch it")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(f"the input is not UTF-8 at byte {error.start}") from None
    try:
        value = cast(
            "JsonValue",
            json.loads(
                text, object_pairs_hook=_no_double_keys, parse_constant=_no_constant, parse_int=_input_integer, parse_float=_input_float
            ),
        )
    except json.JSONDecodeError as error:
        raise BadInput(f"the input is not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise BadInput(f"the input is nested deeper than {MAX_DEPTH}") from None
    check_carriable(value)
    return value


def check_carriable(value: JsonValue, what: str = "the input") -> None:
    """Raise BadInput, with the path, for what canonical JSON cannot carry."""
    pending: list[tuple[str, JsonValue, int]] = [("$", value, 1)]
    while pending:
        path, node, depth = pending.pop()
        if depth > MAX_DEPTH:
            raise BadInput(f"{what} is nested deeper than {MAX_DEPTH} at {path[:200]}")
        match node:
            case bool() | None:
                pass
            case int() if abs(node) >= SAFE_INTEGER:
                raise BadInput(f"{what} has an integer of 2^53 or more at {path}", hint="send large numbers as text")
            case float() if not math.isfinite(node):
                raise BadInput(f"{what} has a number that is not finite at {path}")
            case str():
                _check_text(node, path, what)
            case list():
                pending.extend((f"{path}[{index}]", item, depth + 1) for index, item in enumerate(node))
            case dict():
                for name, item in node.items():
                    _check_text(name, path, what)
                    pending.append((f"{path}.{name}", item, depth + 1))
            case _:
                pass


def parse_answer(text: str) -> JsonValue:
    """A provider's JSON. Raises NotReadable; nothing else, whatever the text is."""
    try:
        value = cast("JsonValue", json.loads(text, parse_constant=_not_json, parse_int=_answer_integer, parse_float=_answer_float))
    except (ValueError, RecursionError) as error:
        raise NotReadable(type(error).__name__) from None
    _check_size(value)
    return _without_surrogates(value) if "\\u" in text else value


def equal(left: JsonValue, right: JsonValue) -> bool:
    """JSON equality, without conversion."""
    match left, right:
        case bool(), _:
            return isinstance(right, bool) and left is right
        case _, bool():
            return False
        case list(), list():
            return len(left) == len(right) and all(map(equal, left, right))
        case dict(), dict():
            return left.keys() == right.keys() and all(equal(left[name], right[name]) for name in left)
        case _:
            return left == right


def number_text(value: float) -> str:
    """A JSON number as text: all digits of an integer, no exponent surprises beyond JSON's own."""
    return str(value) if isinstance(value, int) and value.bit_length() < 4_000 else json.dumps(value)


def _check_text(text: str, path: str, what: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise BadInput(f"{what} has a lone surrogate at {path.encode('utf-8', 'replace').decode()}") from None


def _no_double_keys(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    found: dict[str, JsonValue] = {}
    for name, value in pairs:
        if name in found:
            raise BadInput(f"the input has the key {name!r} twice in one object")
        found[name] = value
    return found


def _no_constant(word: str) -> NoReturn:
    raise BadInput(f"the input has {word}, which is not JSON")


def _input_integer(digits: str) -> int:
    if len(digits) > 17:
        raise BadInput(
            f"the input has an integer of 2^53 or more: {digits[:20]}{'…' if len(digits) > 20 else ''}", hint="send large numbers as text"
        )
    return int(digits)


def _input_float(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise BadInput(f"the input has a number that is not finite: {digits[:20]}")
    return value


def _not_json(word: str) -> NoReturn:
    raise ValueError(word)


def _answer_integer(digits: str) -> int | str:
    return int(digits) if len(digits) <= MAX_DIGITS else digits


def _answer_float(digits: str) -> float | str:
    value = float(digits)
    return value if math.isfinite(value) else digits


def _check_size(value: JsonValue) -> None:
    """Level by level, so that neither depth nor breadth costs a stack frame."""
    level: list[JsonValue] = [value]
    nodes = 0
    for _ in range(MAX_DEPTH):
        nodes += len(level)
        if nodes > MAX_NODES:
            raise NotReadable("too many nodes")
        deeper: list[JsonValue] = []
        for node in level:
            if isinstance(node, dict):
                deeper.extend(node.values())
            elif isinstance(node, list):
                deeper.extend(node)
        if not deeper:
            return
        level = deeper
    raise NotReadable("too deep")


def _without_surrogates(value: JsonValue) -> JsonValue:
    match value:
        case str():
            return value.encode("utf-8", "surrogatepass").decode("utf-8", "replace") if not value.isascii() else value
        case list():
            return [_without_surrogates(item) for item in value]
        case dict():
            return {str(_without_surrogates(name)): _without_surrogates(item) for name, item in value.items()}
        case _:
            return value
