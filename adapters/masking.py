"""Secrets that a provider echoes, taken out of what it sent before that is read, recorded or logged.

* A secret is found however it is written, as far as `domain/spellings.py` says. One of fewer than `MASKED_FROM` characters is not looked
  for: it would be found in ordinary words, and what is left of the answer would be no evidence. One that has so many only with its blanks
  is looked for with them.
* What is masked keeps its length, so that sizes and places stay true, and takes no half of an escape along: JSON stays JSON. Only where a
  secret stands as a number the answer is none any more: no reading is better than one of a number that nobody said.
* A body that ends within a secret, because it was cut, does not tell how that begins.
* Linear in what is looked through, whatever stands in it; what is looked for is worked out once for an answer.
"""

import re
from collections.abc import Iterable, Iterator

from adapters.credential_records import Secret
from domain.spellings import LOOSE_FROM, View, coded_forms, loose_forms, spaced_forms, views

MASKED_FROM = LOOSE_FROM
_HALF = re.compile(rb"\\(?:u[0-9a-fA-F]{0,3})?\Z")
_LONGEST_HALF = 5
_BACKSLASH = ord("\\")


class Mask:
    """Secrets, ready to be looked for in the parts of an answer."""

    def __init__(self, secrets: Iterable[Secret]) -> None:
        texts = [text for text in dict.fromkeys(secret.reveal() for secret in secrets) if len(text) >= MASKED_FROM]
        self._loose = tuple(dict.fromkeys(form for text in texts for form in loose_forms(text)))
        self._spaced = tuple(dict.fromkeys(form for text in texts for form in spaced_forms(text)))
        self._coded = tuple(dict.fromkeys(form for text in texts for form in coded_forms(text)))
        self._letters = tuple(form.letters for form in self._coded)

    def text(self, text: str) -> str:
        """The text with every secret replaced, in whatever form it was written: providers echo what they were sent."""
        return self.body(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")

    def header(self, raw: bytes) -> str:
        """The name or the value of a header, which may hold a secret's characters or their UTF-8."""
        text = self.body(raw).decode("latin-1")
        return text if raw.isascii() else self.text(text)

    def body(self, body: bytes) -> bytes:
        """`text` for a body. The length stays as it was."""
        if len(body) < MASKED_FROM or not self._loose:
            return body
        kept: list[bytes] = []
        done = 0
        for place in sorted(set(self._found(body))):
            start, end = _with_escapes(body, *place, since=done)
            if end > done:
                kept += [body[done:start], b"*" * (end - start)]
                done = end
        return b"".join((*kept, body[done:])) if kept else body

    def _found(self, body: bytes) -> Iterator[tuple[int, int]]:
        """Where in the body a secret stands, in one reading or another."""
        for view in views(body):
            for form in self._loose:
                for start in _each(form, view.loose):
                    yield view.place(start, start + len(form))
            for form in self._spaced:
                for start in _each(form, view.spaced):
                    yield view.place_spaced(start, start + len(form))
            for form in self._coded:
                for start in _each(form.letters, view.coded):
                    yield view.place_coded(form, start)
            yield from _cut(view, self._loose, self._letters)


def mask(secrets: tuple[Secret, ...], text: str) -> str:
    """A text, masked."""
    return Mask(secrets).text(text)


def mask_bytes(secrets: tuple[Secret, ...], body: bytes) -> bytes:
    """A body, masked."""
    return Mask(secrets).body(body)


def _each(form: bytes, text: bytes) -> Iterator[int]:
    start = text.find(form)
    while start >= 0:
        yield start
        start = text.find(form, start + len(form))


def _cut(view: View, loose: Iterable[bytes], coded: Iterable[bytes]) -> Iterator[tuple[int, int]]:
    """Beginnings of secrets with which a reading ends."""
    for text, forms in ((view.loose, loose), (view.coded, coded)):
        for form in forms:
            head = form[:LOOSE_FROM]
            start = text.find(head, max(0, len(text) - len(form)))
            while start >= 0:
                if form.startswith(text[start:]):
                    yield view.place(start, len(text))
                    break
                start = text.find(head, start + 1)


def _with_escapes(body: bytes, start: int, end: int, *, since: int) -> tuple[int, int]:
    """With the beginning of an escape that its first letters may be the end of, and no odd number of backslashes at its end.

    `since`: what stands before is masked already, and not looked at again.
    """
    start = max(start, since)
    half = _HALF.search(body, max(since, start - _LONGEST_HALF), start)
    start = start if half is None else half.start()
    while start > since and body[start - 1] == _BACKSLASH:
        start -= 1
    last = end
    while last > start and body[last - 1] == _BACKSLASH:
        last -= 1
    if (end - last) % 2:
        end += 1 if body[end : end + 1] == b"\\" else -1
    return start, end
