"""Secrets that a provider echoes, taken out of what it sent before that is read, recorded or logged.

* A secret is found however it is written, as far as `domain/spellings.py` says. One of fewer than `MASKED_FROM` characters is not looked
  for: it would be found in ordinary words, and what is left of the answer would be no evidence.
* What is masked keeps its length, so that sizes and places stay true, and takes no half of an escape along: JSON stays JSON.
* A body that ends within a secret, because it was cut, does not tell how that begins.
"""

import re
from collections.abc import Iterable, Iterator

from adapters.credential_records import Secret
from domain.spellings import LOOSE_FROM, View, coded_forms, loose_forms, views

MASKED_FROM = LOOSE_FROM
_HALF = re.compile(rb"\\(?:u[0-9a-fA-F]{0,3})?\Z")
_LONGEST_HALF = 5


def mask(secrets: tuple[Secret, ...], text: str) -> str:
    """The text with every secret replaced, in whatever form it was written: providers echo what they were sent."""
    return mask_bytes(secrets, text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")


def mask_bytes(secrets: tuple[Secret, ...], body: bytes) -> bytes:
    """`mask` for a body. The length stays as it was."""
    texts = [secret.reveal() for secret in secrets]
    texts = [text for text in dict.fromkeys(texts) if len(text) >= MASKED_FROM]
    found = [_with_escapes(body, *place) for place in _found(texts, body)] if texts else []
    kept: list[bytes] = []
    done = 0
    for start, end in sorted(found):
        if end > done:
            kept += [body[done:start], b"*" * (end - max(start, done))]
            done = end
    return b"".join((*kept, body[done:])) if kept else body


def _found(texts: list[str], body: bytes) -> Iterator[tuple[int, int]]:
    """Where in the body a secret stands, in one reading or another."""
    loose = list(dict.fromkeys(form for text in texts for form in loose_forms(text)))
    coded = list(dict.fromkeys(form for text in texts for form in coded_forms(text)))
    for view in views(body):
        for form in loose:
            for start in _each(form, view.loose):
                yield view.place(start, start + len(form))
        for form in coded:
            for start in _each(form.letters, view.coded):
                yield view.place_coded(form, start)
        yield from _cut(view, loose, (form.letters for form in coded))


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


def _with_escapes(body: bytes, start: int, end: int) -> tuple[int, int]:
    """With the beginning of an escape that its first letters may be the end of, and no odd number of backslashes at its end."""
    half = _HALF.search(body, max(0, start - _LONGEST_HALF), start)
    start = start if half is None else half.start()
    while start and body[start - 1 : start] == b"\\":
        start -= 1
    taken = body[start:end]
    if (len(taken) - len(taken.rstrip(b"\\"))) % 2:
        end += 1 if body[end : end + 1] == b"\\" else -1
    return start, end
