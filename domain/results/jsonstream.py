"""JSON as it comes in, piece by piece: is it JSON to its end, and of how many elements is it an array.

* Memory is bounded, whatever the size: what is whole in the window is decoded and dropped; a container that is larger than the
  window is entered and left open. Only one text, one number or one window stands in memory.
* Total: any text either is JSON or raises `NotReadable`, which says where and what in our words. `NaN` and `Infinity` are not
  JSON; a number of any length is; deeper than 64 is not readable.
* Decoding is the library's C code; the few steps between windows are ours.
"""

import json
import re
from typing import Final, Literal, NoReturn, cast

from pydantic import JsonValue
from pydantic_core import from_json

from domain.jsontext import MAX_DEPTH, NotReadable
from domain.results.held_text import HeldText

WINDOW: Final = 64 * 1024
MAX_RECORD: Final = 16 * 1024 * 1024
"""The longest text, number or line, in characters."""

_MIN_BATCH: Final = 1_024
_QUICK: Final = 4 * WINDOW
"""What the quicker parser is given, in characters: one number of a mebibyte would take it minutes."""
_SPACE: Final = re.compile(r"[ \t\n\r]*")
_WORD: Final = re.compile(r'[^ \t\n\r,:"\[\]{}]*')
_TEXT: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_CONTAINERS: Final = frozenset({dict, list})
_CLOSE: Final = {"[": "]", "{": "}"}
_OPEN: Final = {"]": "[", "}": "{"}

Expect = Literal["value", "first", "key", "colon", "after"]


def _not_json(word: str) -> NoReturn:
    raise NotReadable(f"{word} is not JSON")


# A number stays a float: whether it is one is asked here, not which; an int of 10,000 digits would be refused or cost dearly.
_decode: Final = json.JSONDecoder(parse_int=float, parse_constant=_not_json).raw_decode


def read_value(text: str) -> JsonValue:
    """The one value that `text` is, without space around it. Raises NotReadable."""
    try:
        value, end = cast("tuple[JsonValue, int]", _decode(text))
    except json.JSONDecodeError as error:
        raise NotReadable(f"{error.msg} at character {error.pos + 1}") from None
    except RecursionError:
        raise NotReadable(f"nested deeper than {MAX_DEPTH}") from None
    if end != len(text):
        raise NotReadable(f"something follows the value at character {end + 1}")
    _check_depth(value, text, 0, end, MAX_DEPTH)
    return value


class JsonStream:
    """One document. `records` is the number of elements once `finish` has returned, None if it is no array."""

    def __init__(self, *, window: int = WINDOW, longest: int = MAX_RECORD) -> None:
        self.records: int | None = None
        self._window = window
        self._longest = longest
        self._held = HeldText(longest=longest, least=window)
        self._gone = 0
        self._stack: list[str] = []
        self._expect: Expect = "value"
        self._batches = True

    def feed(self, text: str) -> None:
        """Take more of it. Raises NotReadable as soon as it is known not to be JSON."""
        if self._held.add(text):
            self._read(last=False)

    def finish(self) -> None:
        """There is no more. Raises NotReadable if that is not the end of one value."""
        self._read(last=True)
        if self._stack or self._expect != "after":
            raise NotReadable(f"it ends in the middle, after {self._gone} characters")

    def _read(self, *, last: bool) -> None:
        text = self._held.take()
        self._batches = True
        at = past_space(text, 0)
        while at < len(text):
            then = self._step(text, at, last)
            if then is None:
                break
            at = past_space(text, then)
        rest = text[at:]
        if len(rest) > self._longest:
            raise self._fault(at, f"a value of more than {self._longest} characters")
        self._gone += at
        self._held.keep(rest)

    def _step(self, text: str, at: int, last: bool) -> int | None:
        """Take one thing at `at`; where it ends. None: more of it has to come first."""
        char = text[at]
        match self._expect:
            case "after":
                return self._after(char, at)
            case "colon":
                if char != ":":
                    raise self._fault(at, "a colon was expected")
                self._expect = "value"
                return at + 1
            case "first" if char == self._stack[-1]:
                return self._close(at)
            case "value" if not self._stack or self._stack[-1] == "}":
                return self._value(text, at, last)
            case _:
                if self._batches and (end := self._batch(text, at)) is not None:
                    return end
                return self._value(text, at, last) if self._stack[-1] == "]" else self._key(text, at, last)

    def _after(self, char: str, at: int) -> int:
        if not self._stack:
            raise self._fault(at, "something follows the value")
        if char == self._stack[-1]:
            return self._close(at)
        if char != ",":
            raise self._fault(at, f"a comma or {self._stack[-1]} was expected")
        self._expect = "value" if self._stack[-1] == "]" else "key"
        return at + 1

    def _close(self, at: int) -> int:
        self._stack.pop()
        self._taken(1)
        return at + 1

    def _key(self, text: str, at: int, last: bool) -> int | None:
        if text[at] != '"':
            raise self._fault(at, "a key was expected")
        if (end := self._text(text, at, last)) is not None:
            self._expect = "colon"
        return end

    def _value(self, text: str, at: int, last: bool) -> int | None:
        match text[at]:
            case '"':
                end = self._text(text, at, last)
            case "[" | "{":
                return self._container(text, at, last)
            case _:
                end = self._word(text, at, last)
        if end is not None:
            self._taken(1)
        return end

    def _text(self, text: str, at: int, last: bool) -> int | None:
        found = _TEXT.match(text, at)
        if found is None:
            if last:
                raise self._fault(at, "a text does not end")
            return None
        if self._decoded(text, at) is None:
            raise self._fault(at, "a text has characters or escapes that JSON does not have")
        return found.end()

    def _word(self, text: str, at: int, last: bool) -> int | None:
        """A number, or one of the three words."""
        found = _WORD.match(text, at)
        end = at if found is None else found.end()
        if end == len(text) and not last:
            return None
        decoded = self._decoded(text, at)
        if decoded is None or decoded[1] != end:
            raise self._fault(at, "a value was expected")
        return end

    def _container(self, text: str, at: int, last: bool) -> int | None:
        decoded = self._decoded(text, at)
        if decoded is not None:
            value, end = decoded
            self._check_depth(value, text, at, end, MAX_DEPTH - len(self._stack))
            if not self._stack:
                self.records = len(value) if isinstance(value, list) else None
            self._taken(1)
            return end
        if not last and len(text) - at < self._window:
            return None
        if len(self._stack) == MAX_DEPTH:
            raise self._fault(at, f"nested deeper than {MAX_DEPTH}")
        if not self._stack and text[at] == "[":
            self.records = 0
        self._stack.append(_CLOSE[text[at]])
        self._expect = "first"
        return at + 1

    def _batch(self, text: str, at: int) -> int | None:
        """Many elements or members at once, up to a comma near the end of the window that is guessed to part two of them.

        `[` and `]` around some text make one array if and only if the text is elements with commas between: a wrong guess fails.
        """
        close = self._stack[-1]
        mark = "," if close == "}" else {"{": "},", "[": "],"}.get(text[at], ",")
        cut = text.rfind(mark, at) + len(mark) - 1
        if cut - at < _MIN_BATCH:
            return None
        piece = f"{_OPEN[close]}{text[at:cut]}{close}"
        value = self._whole(piece)
        if value is None:
            self._batches = False
            return None
        self._check_depth(value, piece, 0, len(piece), MAX_DEPTH - len(self._stack) + 1)
        self._taken(len(value) if isinstance(value, list) else 0)
        return cut

    def _whole(self, piece: str) -> JsonValue:
        """The container that `piece` is; None if it is none."""
        if len(piece) <= _QUICK:
            try:
                return cast("JsonValue", from_json(piece, allow_inf_nan=False))
            except ValueError:
                pass  # among what it refuses is what JSON allows: half a surrogate, depth
        decoded = self._decoded(piece, 0)
        return None if decoded is None or decoded[1] != len(piece) else decoded[0]

    def _taken(self, count: int) -> None:
        self._expect = "after"
        if len(self._stack) == 1 and self.records is not None:
            self.records += count

    def _decoded(self, text: str, at: int) -> tuple[JsonValue, int] | None:
        try:
            return cast("tuple[JsonValue, int]", _decode(text, at))
        except json.JSONDecodeError:
            return None
        except RecursionError:
            raise self._fault(at, f"nested deeper than {MAX_DEPTH}") from None

    def _check_depth(self, value: JsonValue, text: str, at: int, end: int, most: int) -> None:
        try:
            _check_depth(value, text, at, end, most)
        except NotReadable as error:
            raise self._fault(at, str(error)) from None

    def _fault(self, at: int, what: str) -> NotReadable:
        return NotReadable(f"{what} (near character {self._gone + at + 1})")


def past_space(text: str, at: int) -> int:
    """Where the space that begins at `at`, if any, ends."""
    found = _SPACE.match(text, at)
    return at if found is None else found.end()


def _check_depth(value: JsonValue, text: str, at: int, end: int, most: int) -> None:
    """Raise NotReadable if `value`, whose text is text[at:end], is nested deeper than `most`."""
    if text.count("[", at, end) + text.count("{", at, end) <= most:
        return
    level: list[JsonValue] = [value]
    for _ in range(most + 1):
        if _CONTAINERS.isdisjoint(map(type, level)):
            return
        containers = [node for node in level if isinstance(node, (dict, list))]
        level = [inner for node in containers for inner in (node.values() if isinstance(node, dict) else node)]
    raise NotReadable(f"nested deeper than {MAX_DEPTH}")
