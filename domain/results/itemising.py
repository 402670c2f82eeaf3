"""The items within a result: each record of an output is read as one item, counted by its word, and listed if it did not succeed.

* One pass over each output, bounded memory: nine bytes a submitted key, twenty references, and what was not yet written down.
* An item that no entry of `states` fits is *unread*. So is one without a key where keys are compared. One whose key was never
  submitted is *unknown*, a second one of a key *double*. None of these counts as anything: they are listed, and they disagree.
* Every item that did not succeed becomes a line of JSON, with the provider's own words as `error`: bounded, shown, never believed.
  What is not printable stands in it as an escape: the line acts on no terminal, and the key comes back as it was.
* More than `MAX_ITEMS` records are not counted: the record says so, and that is a disagreement too.
* Total: nothing is raised for what a provider sent. What cannot be read as records is said.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from pydantic import JsonValue

from domain.counts import WORDS
from domain.evidence import Json, bounded
from domain.jsontext import NotReadable
from domain.language.calls import ItemRead, ItemWord
from domain.language.expressions import Scope, first_value
from domain.language.functions import TooMuch
from domain.language.matching import holds
from domain.printable import printable_json
from domain.reading import words_of
from domain.results.counting import Limits
from domain.results.item_keys import Keys, key_text
from domain.results.item_records import RecordFormat, Records

MAX_ITEMS: Final = 4_000_000
"""Records that are counted, and keys that are compared: 36 MB of them."""
MAX_LISTED: Final = 1_000_000
MAX_LISTED_BYTES: Final = 256 * 1024 * 1024
SHOWN: Final = 20
SHOWN_KEY: Final = 128
SHOWN_ERROR: Final = 240


@dataclass(slots=True)
class Tally:
    """What was found. `missing`: submitted keys without an outcome, None where keys are not compared. `problems`: why it is not whole."""

    words: dict[ItemWord, int] = field(default_factory=lambda: dict.fromkeys(WORDS, 0))
    unread: int = 0
    double: int = 0
    unknown: int = 0
    missing: int | None = None
    listed: int = 0
    unlisted: int = 0
    shown: list[dict[str, Json]] = field(default_factory=list[dict[str, Json]])
    problems: list[str] = field(default_factory=list[str])


class SubmittedKeys:
    """The keys of a submitted file, read twice: once to note them, once to name those that never came back."""

    def __init__(self, key: tuple[str, ...], scope: Scope, salt: bytes, *, most: int = MAX_ITEMS) -> None:
        self._key, self._scope, self._most = key, scope, most
        self.keys: Keys | None = Keys(salt) if key else None
        self.records = 0
        self.unkeyed = 0

    def note(self, records: Iterable[JsonValue]) -> None:
        """Take records of the file; above the bound they are only counted, and keys are compared no more."""
        for record in records:
            self.records += 1
            if self.records > self._most:
                self.keys = None
            if self.keys is None:
                continue
            if (key := _key_of(self._key, self._scope.with_item(record))) is None:
                self.unkeyed += 1
            else:
                self.keys.submit(key)

    def missing(self, records: Iterable[JsonValue]) -> list[str]:
        """Those of their keys that never came back."""
        keys = (_key_of(self._key, self._scope.with_item(record)) for record in records)
        return [key for key in keys if key is not None and self.keys is not None and self.keys.missing(key)]


class ItemCounter:
    """Counts the items of one operation. `keys`: those that were submitted, if they are compared."""

    def __init__(self, reads: Sequence[ItemRead], scope: Scope, keys: Keys | None = None, *, most: int = MAX_ITEMS) -> None:
        self._reads = {read.output: read for read in reads}
        self._scope = scope
        self._keys = keys
        self._most = most
        self._lines: list[str] = []
        self._bytes = 0
        self._items = 0
        self.tally = Tally()

    @property
    def outputs(self) -> frozenset[str]:
        """The outputs whose records are items."""
        return frozenset(self._reads)

    def open(self, output: str, format: RecordFormat, limits: Limits | None = None) -> "ItemSink":
        """Begin with one stored object of an output."""
        return ItemSink(self, output, Records(format, limits))

    def take(self, output: str, number: int, record: JsonValue) -> bool:
        """Count one record, the `number`-th of its object; False once there are too many."""
        if self._items >= self._most:
            self.tally.problems.append(f"there are more than {self._most} items: they were not all counted")
            return False
        self._items += 1
        read = self._reads[output]
        scope = self._scope.with_item(record)
        key, word, error = _key_of(read.key, scope), *_state_of(read, scope)
        match self._misfit(key, word):
            case None if word == "succeeded":
                self.tally.words["succeeded"] += 1
            case None:
                assert word is not None
                self.tally.words[word] += 1
                self.listing(key, word, error, output, number)
            case "unread" as misfit:
                self.tally.unread += 1
                self.listing(key, misfit, error, output, number)
            case "double" as misfit:
                self.tally.double += 1
                self.listing(key, misfit, error, output, number)
            case misfit:
                self.tally.unknown += 1
                self.listing(key, misfit, error, output, number)
        return True

    def _misfit(self, key: str | None, word: ItemWord | None) -> str | None:
        """Why an item counts as nothing; None if it counts."""
        if self._keys is not None:
            before = None if key is None else self._keys.seen(key)
            if key is None:
                return "unread"
            if before is None:
                return "unknown"
            if before:
                return "double"
        return "unread" if word is None else None

    def listing(
        self, key: str | None, outcome: str, error: str | None = None, output: str | None = None, record: int | None = None
    ) -> None:
        """Write one item down."""
        line = printable_json(
            json.dumps({"key": key, "outcome": outcome, "error": error, "output": output, "record": record}, ensure_ascii=False)
        )
        size = len(line.encode("utf-8")) + 1
        if self.tally.listed >= MAX_LISTED or self._bytes + size > MAX_LISTED_BYTES:
            self.tally.unlisted += 1
            return
        self.tally.listed += 1
        self._bytes += size
        self._lines.append(line)
        if len(self.tally.shown) < SHOWN:
            shown: dict[str, Json] = {
                "key": None if key is None else bounded(key, SHOWN_KEY),
                "outcome": outcome,
                "error": None if error is None else bounded(error, SHOWN_ERROR),
                "output": output,
                "record": record,
            }
            self.tally.shown.append(shown)

    def lines(self) -> bytes:
        """What was written down since it was last asked for, as JSON Lines."""
        lines, self._lines = self._lines, []
        return "".join(f"{line}\n" for line in lines).encode("utf-8")


class ItemSink:
    """One stored object as its bytes come."""

    def __init__(self, counter: ItemCounter, output: str, records: Records) -> None:
        self._counter, self._output = counter, output
        self._records: Records | None = records
        self._number = 0

    def feed(self, chunk: bytes) -> None:
        """The next bytes."""
        if self._records is not None:
            self._count(self._records.feed(chunk))

    def finish(self) -> None:
        """There is no more."""
        if self._records is not None:
            self._count(self._records.finish())

    def _count(self, records: Iterator[JsonValue]) -> None:
        try:
            for record in records:
                self._number += 1
                if not self._counter.take(self._output, self._number, record):
                    self._records = None
                    return
        except NotReadable as error:
            self._counter.tally.problems.append(f"{self._output} can't be read as items after {self._number} of them: {error}")
            self._records = None


def _key_of(expressions: tuple[str, ...], scope: Scope) -> str | None:
    try:
        return key_text(first_value(expressions, scope))
    except TooMuch:
        return None


def _state_of(read: ItemRead, scope: Scope) -> tuple[ItemWord | None, str | None]:
    """The word of the first entry that fits, and the provider's words on it."""
    try:
        state = next((one for one in read.states if one.when is None or holds(one.when, scope)), None)
    except TooMuch:
        return None, None
    if state is not None and state.word == "succeeded":
        return "succeeded", None
    return (state.word if state else None), words_of((state.reason if state else ()) or read.error, scope)
