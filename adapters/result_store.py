"""Results in a folder, S3, GCS, Azure or memory, over obstore.

* What is staged lives below `.staging/`, is durable once sealed and never visible as a result. What is published stands under
  `tenant/operation/sha256`, files of the input under `tenant/@files/sha256`. A cut write leaves nothing under either name.
* Two attempts that are alive at once may write under one staging key: each writes a part of its own, and neither beginning, nor
  giving up, nor sealing takes away what the other has. Only `discard` does, with all that is staged below a key (`activities.ports.BELOW`).
* Writes and reads are streams of bounded parts; nothing is held whole.
* Every key is checked segment by segment before any path is made of it.
* In a folder all is for its owner only (0700, 0600), and durable means synced: the bytes before the name, then the folder.
* The library's own words name paths and addresses; errors here are in our words.
"""

import asyncio
import contextlib
import os
import re
import secrets
import shutil
import time
from collections.abc import AsyncGenerator, AsyncIterator, Generator
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

import obstore
from obstore.exceptions import BaseError
from obstore.store import LocalStore, from_url

from activities.ports import BELOW
from adapters.result_output import write_out as write_out
from domain.errors import BadInput, NotFound, SakshiError, Unreachable

if TYPE_CHECKING:
    from obstore.store import ObjectStore

STAGING: Final = ".staging"
PART_BYTES: Final = 8 * 1024 * 1024
CHUNK_BYTES: Final = 256 * 1024
_PARALLEL: Final = 4
_TIDIED: Final = 20
"""How often the folders of one key may be tidied away while they are made."""
_SEGMENT: Final = re.compile(r"[A-Za-z0-9_@=+-][A-Za-z0-9_@=+.-]{0,199}")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")


class ObstoreResults:
    """`activities.ports.ResultStore`. `where` is a folder (made if it is missing) or a URL that obstore knows."""

    def __init__(self, where: str | Path) -> None:
        self._folder = None if _is_url(where) else _Folder(_path(where))
        try:
            self._store = LocalStore(self._folder.root) if self._folder else from_url(str(where))
        except (BaseError, ValueError):
            raise BadInput(
                f"no result store can be opened at {_shown(where)}", hint="a folder, or s3://, gs://, az:// or memory://"
            ) from None

    @contextlib.asynccontextmanager
    async def stage(self, staging: str) -> AsyncGenerator["_Writing"]:
        key = _staging_key(staging)
        if self._folder is not None:
            with _words(f"the staged object {staging}", missing=Unreachable):
                await asyncio.to_thread(self._folder.make_parents, key)
                await asyncio.to_thread(self._folder.clear_cut, key)
        writing = _Writing(self._store, key, self._folder)
        try:
            yield writing
        finally:
            await writing.abandon()

    async def staged_size(self, staging: str) -> int | None:
        try:
            with _words(f"the staged object {staging}"):
                return (await obstore.head_async(self._store, _staging_key(staging)))["size"]
        except NotFound:
            return None

    async def staged_media(self, staging: str) -> str | None:
        try:
            parts = [chunk async for chunk in self._read(_media(_staging_key(staging)), f"the media type of {staging}")]
        except NotFound:
            return None
        return b"".join(parts).decode("utf-8", "replace") or None

    def read_staged(self, staging: str) -> AsyncIterator[bytes]:
        return self._read(_staging_key(staging), f"the staged object {staging}")

    async def publish(self, staging: str, key: str) -> None:
        # A copy, not a move: until the record says that it is published, staging is what a later attempt starts from.
        source, target = _staging_key(staging), _published_key(key)
        with _words(f"the staged object {staging}"):
            if self._folder is not None:
                await asyncio.to_thread(self._folder.make_parents, target)
                await asyncio.to_thread(self._folder.link, source, target)
            else:
                await obstore.copy_async(self._store, source, target)

    async def discard(self, staging: str) -> None:
        key = _staging_key(staging)
        if self._folder is not None:
            with _words(f"the staged object {staging}", missing=Unreachable):
                await asyncio.to_thread(self._folder.forget, key)
            return
        for name in (key, _media(key)):
            with contextlib.suppress(NotFound), _words(f"the staged object {staging}"):
                await obstore.delete_async(self._store, name)
        with _words(f"what is staged below {staging}"):
            async for listed in self._store.list(prefix=f"{key}{BELOW}/"):  # pyright: ignore[reportUnknownMemberType]
                await obstore.delete_async(self._store, [str(one["path"]) for one in listed])

    async def clear_stale(self, below: str, age_s: float) -> None:
        """Forget what crashes left staged below a key, each under a name that is never used again, if it is older than `age_s`.

        Only in a folder: a service has rules of its own for uploads that were never finished.
        """
        if self._folder is not None:
            with _words(f"what is staged below {below}", missing=Unreachable):
                await asyncio.to_thread(self._folder.clear_stale, _staging_key(below), age_s)

    def read(self, key: str) -> AsyncIterator[bytes]:
        return self._read(_published_key(key), f"the result {key}")

    async def size(self, key: str) -> int | None:
        """Size of a published object, or None."""
        try:
            with _words(f"the result {key}"):
                return (await obstore.head_async(self._store, _published_key(key)))["size"]
        except NotFound:
            return None

    async def _read(self, key: str, what: str) -> AsyncIterator[bytes]:
        with _words(what):
            found = await obstore.get_async(self._store, key)
        chunks = aiter(found.stream(min_chunk_size=CHUNK_BYTES))
        while True:
            with _words(what):
                chunk = await anext(chunks, None)
            if chunk is None:
                return
            yield bytes(chunk)


class _Writing:
    """One staged object while it is written."""

    def __init__(self, store: "ObjectStore", key: str, folder: "_Folder | None") -> None:
        self._key = key
        self._store = store
        self._folder = folder
        # In a folder the name that counts is given only when the bytes are synced.
        self._part = f"{key}.part-{secrets.token_hex(8)}"
        name = key if folder is None else self._part
        self._writer = obstore.open_writer_async(store, name, buffer_size=PART_BYTES, max_concurrency=_PARALLEL)
        self._open = True
        # Each call of the library crosses threads: small chunks are gathered first.
        self._gathered = bytearray()

    async def write(self, chunk: bytes) -> None:
        self._gathered += chunk
        if len(self._gathered) >= CHUNK_BYTES:
            await self._pass_on()

    async def seal(self, media: str | None = None) -> None:
        await self._pass_on()
        with _words("a staged object", missing=Unreachable):
            # First, so that what is sealed is never without it.
            await obstore.put_async(self._store, _media(self._key), (media or "").encode("utf-8", "replace"))
            await self._writer.close()
            self._open = False
            if self._folder is not None:
                await asyncio.to_thread(self._folder.seal, self._key, self._part)

    async def _pass_on(self) -> None:
        gathered, self._gathered = bytes(self._gathered), bytearray()
        with _words("a staged object", missing=Unreachable):
            await self._writer.write(gathered)

    async def abandon(self) -> None:
        """End a write that was not sealed. The library drops what it has when it is told of an error."""
        if not self._open:
            return
        self._open = False
        with contextlib.suppress(BaseError, OSError):
            await self._writer.__aexit__(_Cut, _Cut(), None)  # pyright: ignore[reportUnknownMemberType]
        if self._folder is not None:
            with contextlib.suppress(OSError):  # what stays is taken away with the next write under this key; what ended this one counts
                await asyncio.to_thread(self._folder.forget_part, self._part)


class _Cut(Exception):
    """What a write that was not sealed is ended with."""


class _Folder:
    """What a folder needs beyond the library: modes, syncing, and no leftovers. All of it blocks."""

    def __init__(self, root: Path) -> None:
        self.root = root
        try:
            root.mkdir(parents=True, exist_ok=True, mode=0o700)
            root.chmod(0o700)
        except OSError as error:
            raise BadInput(f"the results folder {root} can't be used: {error.strerror}") from None

    def make_parents(self, key: str) -> None:
        """Make the folders above a key, each for its owner only, and durable. An empty one that is tidied away meanwhile is made again."""
        for again in range(_TIDIED, -1, -1):
            try:
                return self._make_parents(key)
            except FileNotFoundError:
                if not again or not self.root.is_dir():
                    raise

    def _make_parents(self, key: str) -> None:
        path = self.root
        for name in key.split("/")[:-1]:
            path /= name
            with contextlib.suppress(FileExistsError):
                path.mkdir(mode=0o700)
                _sync(path.parent)

    def seal(self, key: str, part_key: str) -> None:
        part, path, media = self.root / part_key, self.root / key, self.root / _media(key)
        for written in (media, part):
            written.chmod(0o600)
            _sync(written)
        part.replace(path)
        _sync(path.parent)

    def link(self, source: str, target: str) -> None:
        """Give a sealed object its published name too. Its name is its digest: what is there already is the same."""
        path = self.root / target
        try:
            path.hardlink_to(self.root / source)
        except FileExistsError:
            if not path.is_file():
                raise
        _sync(path.parent)

    def clear_cut(self, key: str) -> None:
        """Remove what cut writes left, but for the newest: whose that is may be alive, and crashes in a row must not fill the disk."""
        parts = {part: _written(part) for part in (self.root / key).parent.glob(f"{Path(key).name}.part-*")}
        for part in sorted(parts, key=parts.__getitem__)[:-1]:
            part.unlink(missing_ok=True)

    def clear_stale(self, key: str, age_s: float) -> None:
        """Remove the folders below a key in which nothing was made for that long."""
        for folder in (self.root / key).glob("*"):
            if _written(folder) < time.time() - age_s:
                shutil.rmtree(folder, ignore_errors=True)

    def forget(self, key: str) -> None:
        """Remove a staged object and whatever cut writes of it left."""
        path = self.root / key
        shutil.rmtree(path.parent / f"{path.name}{BELOW}", ignore_errors=True)
        for leftover in [path, path.parent / _media(path.name), *path.parent.glob(f"{path.name}.part-*")]:
            leftover.unlink(missing_ok=True)
        self._tidy(key)

    def forget_part(self, part: str) -> None:
        """Remove what one cut write left."""
        path = self.root / part
        for leftover in [path, *path.parent.glob(f"{path.name}#*")]:
            leftover.unlink(missing_ok=True)
        self._tidy(part)

    def _tidy(self, key: str) -> None:
        path = (self.root / key).parent
        while path != self.root / STAGING and path != self.root:
            try:
                path.rmdir()
            except OSError:
                return
            path = path.parent


def _is_url(where: str | Path) -> bool:
    return isinstance(where, str) and "://" in where and not where.startswith("file://")


def _path(where: str | Path) -> Path:
    if isinstance(where, str) and where.startswith("file://"):
        return Path(unquote(urlsplit(where).path))
    return Path(where).expanduser().absolute()


def _shown(where: str | Path) -> str:
    """A place without what may be secret in it: user, password, query."""
    if not _is_url(where):
        return str(where)
    parts = urlsplit(str(where))
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _segments(key: str, what: str) -> list[str]:
    segments = key.split("/")
    if not all(_SEGMENT.fullmatch(segment) for segment in segments):
        raise BadInput(f"a {what} is segments of letters, digits and _@=+.- between slashes, none of which begins with a dot")
    return segments


def _staging_key(staging: str) -> str:
    return "/".join([STAGING, *_segments(staging, "staging key")])


def _published_key(key: str) -> str:
    segments = _segments(key, "result key")
    if len(segments) != 3 or not _SHA256.fullmatch(segments[-1]):
        raise BadInput("a result key is tenant/operation/sha256")
    return key


def _media(key: str) -> str:
    """Where the media type of a staged object is kept."""
    return f"{key}.media"


def _written(path: Path) -> float:
    """When a file was last written; never, if it is gone."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _sync(path: Path) -> None:
    """Make bytes, or a folder's names, durable."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def _words(what: str, missing: type[SakshiError] = NotFound) -> Generator[None]:
    """The library's errors in our words: its own name paths, addresses and what a server said."""
    try:
        yield
    except FileNotFoundError:
        raise missing(f"{what} is not in the result store") from None
    except (BaseError, OSError) as error:
        raise Unreachable(
            f"the result store did not take or give {what} ({type(error).__name__})", hint="python starter.py doctor"
        ) from None
