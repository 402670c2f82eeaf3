"""A body that is too large to hold: its parts on their way from the result store to the socket.

* A stored file is what its digest says, or the body is not sent whole: its size is looked at before the first byte of the request, its
  bytes are hashed as they pass, and the last piece is held back until they are known to be right.
* At most two pieces are held, whatever the size.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from typing import Protocol

import httpx

from domain.errors import NotFound, SakshiError
from domain.exchange import Part, StoredPart


class Files(Protocol):
    """Where stored files are read from."""

    async def size(self, key: str) -> int | None:
        """Size of a published object, or None."""
        ...

    def read(self, key: str) -> AsyncIterator[bytes]:
        """The bytes of a published object. Raises NotFound."""
        ...


class FileLost(SakshiError):
    """A stored file is not there, or is not what was stored."""

    code = "file_lost"


class Upload(httpx.AsyncByteStream):
    """A body of parts, for one sending."""

    def __init__(self, parts: tuple[Part, ...], files: Files | None) -> None:
        self._parts = parts
        self._files = files

    async def check(self) -> None:
        """Raise FileLost unless every stored file is there in its size."""
        for part in self._parts:
            if isinstance(part, StoredPart) and (self._files is None or await self._files.size(part.key) != part.size):
                raise _lost(part)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for part in self._parts:
            if isinstance(part, bytes):
                yield part
                continue
            async for piece in self._stored(part):
                yield piece

    async def _stored(self, part: StoredPart) -> AsyncIterator[bytes]:
        digest, size, held = hashlib.sha256(), 0, b""
        assert self._files is not None  # `check` comes first
        try:
            async for piece in self._files.read(part.key):
                size += len(piece)
                if size > part.size:
                    raise _lost(part)
                if held:
                    yield held
                await asyncio.to_thread(digest.update, piece)
                held = piece
        except NotFound:
            raise _lost(part) from None
        if size != part.size or digest.hexdigest() != part.sha256:
            raise _lost(part)
        if held:
            yield held


def _lost(part: StoredPart) -> FileLost:
    return FileLost(f"the stored file with SHA-256 {part.sha256} is lost or is not what was stored")
