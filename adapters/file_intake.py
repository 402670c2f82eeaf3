"""Taking big inputs in: from paths, or made of the input, into the result store, before an operation is opened.

* A file is read once, piece by piece and off the loop; while it is copied, its records are counted as its media says. What breaks a bound
  of the contract, or is not what its media says, is BadInput, and nothing is left behind.
* Only a regular file is read, and opening waits for nobody at the other end of a pipe. One that changes while it is read is refused.
* `keep` gives the files their names in the store, and reads back what stands there: an entry only ever names what can be sent.
"""

import asyncio
import hashlib
import io
import os
import secrets
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from adapters.regular_files import opened_regular
from adapters.result_store import ObstoreResults
from domain.contract import Contract, File
from domain.errors import BadInput, NotFound, Tampered
from domain.evidence import FileFacts, Json, file_key
from domain.files import format_of, made_from
from domain.language.expressions import Scope
from domain.opening import check_file_name, check_files
from domain.results.measuring import Measured, Measurer

PIECE: Final = 1024 * 1024
STAGED: Final = "@files"
STALE_AFTER_S: Final = 24 * 3600.0


class Source(Protocol):
    """Bytes that are read in order."""

    def read(self, most: int, /) -> bytes:
        """The next bytes; none at the end. May block. Raises BadInput."""
        ...


@dataclass
class Intake:
    """The files of one operation, staged. `stored` are facts of files that are kept already, of an operation that is repeated."""

    store: ObstoreResults
    contract: Contract
    tenant: str
    stored: Mapping[str, FileFacts]
    staged: dict[str, FileFacts] = field(default_factory=dict[str, FileFacts])
    _staging: str = field(default_factory=lambda: f"{STAGED}/{secrets.token_hex(16)}")

    @property
    def files(self) -> dict[str, FileFacts]:
        """The facts of every file that there is."""
        return {**self.stored, **self.staged}

    async def take(self, name: str, source: Source) -> None:
        """Copy one file in. Raises BadInput, Unreachable."""
        wanted = self.contract.files[name]
        measurer = Measurer(format_of(wanted.media))
        async with self.store.stage(self._staging_of(name)) as staged:
            while piece := await asyncio.to_thread(_next, name, wanted, source, measurer):
                await staged.write(piece)
            self.staged[name] = _facts(name, wanted, await asyncio.to_thread(measurer.finish))
            await staged.seal(wanted.media)

    async def keep(self) -> None:
        """Give each file its name in the store, and read back what stands there. Raises Tampered, NotFound, Unreachable."""
        for name, facts in self.staged.items():
            await self.store.publish(self._staging_of(name), file_key(self.tenant, facts.sha256))
        for name, facts in self.files.items():
            await self._look(name, facts)

    async def forget(self) -> None:
        """Leave nothing staged."""
        for name in self.contract.files:
            await self.store.discard(self._staging_of(name))

    def _staging_of(self, name: str) -> str:
        return f"{self._staging}/{name}"

    async def _look(self, name: str, facts: FileFacts) -> None:
        digest, size = hashlib.sha256(), 0
        try:
            async for piece in self.store.read(file_key(self.tenant, facts.sha256)):
                size += len(piece)
                await asyncio.to_thread(digest.update, piece)
        except NotFound:
            raise NotFound(f"the file {name} is no longer in the result store", hint=f"give it anew: --file {name}=PATH") from None
        if (size, digest.hexdigest()) != (facts.bytes, facts.sha256):
            raise Tampered(f"what the result store holds for the file {name}, SHA-256 {facts.sha256}, is something else")


@asynccontextmanager
async def taken_in(
    store: ObstoreResults, contract: Contract, *, tenant: str, input: Json, target: Mapping[str, str], paths: Mapping[str, Path],
    stored: Mapping[str, FileFacts],
) -> AsyncGenerator[Intake]:  # fmt: skip
    """Every file that the contract names, from the paths given, else of the input. Raises BadInput, Unreachable."""
    for name in paths:
        check_file_name(contract, name)
    intake = Intake(store, contract, tenant, stored)
    scope = Scope(input=input, target=dict(target))
    await store.clear_stale(STAGED, STALE_AFTER_S)
    try:
        for name, wanted in contract.files.items():
            if name in stored:
                continue
            made = made_from(name, wanted, scope)
            if made is not None and name in paths:
                raise BadInput(f"the file {name} is given twice: by --file, and by what the input has for it")
            if made is not None:
                await intake.take(name, io.BytesIO(made))
            elif name in paths:
                with opened(name, paths[name]) as source:
                    await intake.take(name, source)
        check_files(contract, intake.files)
        yield intake
    finally:
        await intake.forget()


class _Unchanging:
    """A file that is open, and must not change until it was read."""

    def __init__(self, name: str, handle: int) -> None:
        self._name = name
        self._handle = handle
        self._first = os.fstat(handle)
        self._read = 0

    def read(self, most: int, /) -> bytes:
        try:
            piece = os.read(self._handle, most)
        except OSError as error:
            raise BadInput(f"the file {self._name} can't be read: {error.strerror}") from None
        self._read += len(piece)
        if not piece:
            last = os.fstat(self._handle)
            if (last.st_size, last.st_mtime_ns) != (self._first.st_size, self._first.st_mtime_ns) or self._read != last.st_size:
                raise BadInput(f"the file {self._name} changed while it was read", hint="run it again when nobody writes to it")
        return piece


@contextmanager
def opened(name: str, path: Path) -> Generator[Source]:
    """A regular file, open for reading. Raises BadInput."""
    with ExitStack() as stack:
        try:
            handle = stack.enter_context(opened_regular(path))
        except OSError as error:
            why = f"{str(path)[:200]!r}: {error.strerror}"
            raise BadInput(f"the file {name} can't be read: {why}", hint=f"--file {name}=PATH") from None
        yield _Unchanging(name, handle)


def _next(name: str, wanted: File, source: Source, measurer: Measurer) -> bytes:
    piece = source.read(PIECE)
    if measurer.size + len(piece) > wanted.max_bytes:
        raise BadInput(f"the file {name} has more than {wanted.max_bytes} bytes, the most that is taken")
    measurer.feed(piece)
    return piece


def _facts(name: str, wanted: File, measured: Measured) -> FileFacts:
    if not measured.well_formed:
        raise BadInput(f"the file {name} is not {wanted.media}: {measured.problem}")
    return FileFacts(sha256=measured.sha256, bytes=measured.size, media=wanted.media, records=measured.records)
