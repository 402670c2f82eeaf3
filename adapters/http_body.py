"""Bodies as they come off the wire: decoded by us, in pieces, within bounds.

Only `identity` and `gzip` are offered, so anything else is unreadable and is not read. Raw bytes are bounded as well as
decoded ones: a stream of empty gzip members decodes to nothing for ever. No piece is larger than `PIECE`, however much a
small input would unfold to.
"""

import zlib
from collections.abc import Iterator

PIECE = 64 * 1024
_GZIP = 16 + zlib.MAX_WBITS


class Undecodable(Exception):
    """The bytes are not what Content-Encoding says. Never leaves the adapter."""


class Identity:
    """No encoding."""

    complete = True

    def feed(self, raw: bytes) -> Iterator[bytes]:
        """The bytes as they are."""
        yield raw


class Gunzip:
    """Gzip, one member or several, unfolded a piece at a time. A body of no bytes at all is empty."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(_GZIP)
        self._padding = False
        self.complete = True

    def feed(self, raw: bytes) -> Iterator[bytes]:
        """What can be decoded now. `Undecodable` if it is not gzip."""
        rest = raw
        while rest:
            if self._member.eof:
                rest = self._next_member(rest)
                continue
            self.complete = False
            try:
                piece = self._member.decompress(rest, PIECE)
            except zlib.error:
                raise Undecodable from None
            if piece:
                yield piece
            if self._member.eof:
                self.complete = True
                rest = self._member.unused_data
            else:
                rest = self._member.unconsumed_tail

    def _next_member(self, rest: bytes) -> bytes:
        """After a member comes another, or padding of zeros to the end, as gzip itself allows."""
        stripped = rest.lstrip(b"\0")
        if self._padding or len(stripped) < len(rest):
            self._padding = True
            if stripped:
                raise Undecodable
            return b""
        self._member = zlib.decompressobj(_GZIP)
        return rest


Decoder = Identity | Gunzip


def decoder_for(encoding: str) -> Decoder | None:
    """The decoder of a Content-Encoding value, or None if it is one that was not offered."""
    match encoding.strip().lower():
        case "" | "identity":
            return Identity()
        case "gzip" | "x-gzip":
            return Gunzip()
        case _:
            return None


def raw_limit(limit: int) -> int:
    """How many undecoded bytes are taken for a decoded limit: gzip may add a little to what it cannot shrink."""
    return limit + limit // 1000 + 1024
