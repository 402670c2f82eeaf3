"""Which of the submitted keys came back, and how often: nine bytes a key, none of them the key itself.

* A key stands as eight bytes of a digest that is salted with the operation's own salt: a provider that does not know the salt can't
  choose two keys that meet. Of a million keys two meet by chance once in thirty million operations.
* Submitted keys are all noted first, then `close` sorts them; from then on each that comes back is counted, up to many.
* A key is text, or a whole number as text, of 512 characters at most: CSV has nothing but text, so `7` and `"7"` are one key.
"""

from array import array
from bisect import bisect_left
from hashlib import blake2b
from typing import Final

from pydantic import JsonValue

from domain.jsontext import number_text

MAX_KEY: Final = 512
_BUCKETS: Final = 256
"""Sorted one by one, so that sorting never holds more than one of them a second time."""


def key_text(value: JsonValue) -> str | None:
    """A value as a key; None if it can be none."""
    match value:
        case bool() | None | list() | dict():
            return None
        case str():
            text = value
        case int():
            text = number_text(value)
        case _:
            return None
    return text if 1 <= len(text) <= MAX_KEY else None


class Keys:
    """The submitted keys of one operation."""

    def __init__(self, salt: bytes) -> None:
        self._salt = salt[:64]
        self._digests = [array("Q") for _ in range(_BUCKETS)]
        self._seen = [bytearray() for _ in range(_BUCKETS)]
        self.submitted = 0
        self.doubles = 0

    def submit(self, key: str) -> None:
        """One submitted key."""
        number = self._number(key)
        self._digests[number % _BUCKETS].append(number)
        self.submitted += 1

    def close(self) -> None:
        """All are submitted. Those that were submitted more than once count as one, and stand in `doubles`."""
        for at, bucket in enumerate(self._digests):
            whole = sorted(set(bucket))
            self.doubles += len(bucket) - len(whole)
            self._digests[at] = array("Q", whole)
            self._seen[at] = bytearray(len(whole))

    def seen(self, key: str) -> int | None:
        """How often this key came back before, and that it did once more; None if it was never submitted."""
        bucket, at = self._place(key)
        if at is None:
            return None
        before = self._seen[bucket][at]
        self._seen[bucket][at] = min(before + 1, 255)
        return before

    def missing(self, key: str) -> bool:
        """Whether a submitted key never came back. Says so once, so that a key that was submitted twice is missing once."""
        bucket, at = self._place(key)
        if at is None or self._seen[bucket][at]:
            return False
        self._seen[bucket][at] = 1
        return True

    @property
    def absent(self) -> int:
        """How many never came back."""
        return sum(seen.count(0) for seen in self._seen)

    def _place(self, key: str) -> tuple[int, int | None]:
        number = self._number(key)
        bucket = self._digests[number % _BUCKETS]
        at = bisect_left(bucket, number)
        return number % _BUCKETS, at if at < len(bucket) and bucket[at] == number else None

    def _number(self, key: str) -> int:
        return int.from_bytes(blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8, key=self._salt).digest())
