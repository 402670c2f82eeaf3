"""A folder that files are written to, all or none, for whoever runs the command and no one else.

* Files are made exclusively and for their owner only (0600), under names of no meaning; they get their own names when all are whole.
* No link is followed, and the folder is held open, so that it can't be exchanged for another meanwhile.
* Nothing is replaced unless that is asked for, and then a link is replaced, not what it leads to.
"""

import contextlib
import os
import secrets
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Final

from domain.errors import BadInput

MANIFEST: Final = "manifest.json"
"""What the files are: written last."""
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_ENTER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class OutputFolder:
    """The folder that is written to, held open, so that it can't be exchanged for another meanwhile."""

    def __init__(self, path: Path, *, within: int | None = None) -> None:
        """`within`: the folder, held open, in which the last name of `path` is to be; the one that the path leads to if None."""
        self._path = path
        self._made: dict[str, str] = {}
        try:
            if within is None:
                path.mkdir(mode=0o700, parents=True, exist_ok=True)
            else:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(path.name, 0o700, dir_fd=within)
            self._handle = os.open(path if within is None else path.name, _ENTER, dir_fd=within)
        except OSError as error:
            raise BadInput(f"{path} is not a folder that can be written to: {error.strerror}", hint="name a folder, not a link") from None

    def __enter__(self) -> "OutputFolder":
        return self

    def __exit__(self, *_: object) -> None:
        for temporary in self._made.values():
            os.unlink(temporary, dir_fd=self._handle)
        os.close(self._handle)

    def below(self, name: str) -> "OutputFolder":
        """A folder in this one."""
        return OutputFolder(self._path / name, within=self._handle)

    def names(self) -> list[str]:
        """What is there already."""
        return sorted(os.listdir(self._handle))

    def remove(self, name: str) -> None:
        """Take a file away."""
        os.unlink(name, dir_fd=self._handle)

    def refuse_existing(self, names: Sequence[str]) -> None:
        """Raises BadInput if one of the names is taken."""
        for name in names:
            try:
                os.stat(name, dir_fd=self._handle, follow_symlinks=False)
            except FileNotFoundError:
                continue
            raise self._there(name)

    async def write_whole(self, name: str, data: bytes) -> None:
        """Write what is small enough to be held."""
        await self.write(name, _once(data))

    async def write(self, name: str, chunks: AsyncIterator[bytes]) -> None:
        """Write under a name of no meaning."""
        temporary = f".{name}.{secrets.token_hex(8)}.part"
        try:
            handle = os.open(temporary, _NEW, 0o600, dir_fd=self._handle)
            self._made[name] = temporary
            with os.fdopen(handle, "wb") as file:
                async for chunk in chunks:
                    file.write(chunk)
                file.flush()
                os.fsync(handle)
        except OSError as error:
            raise self._unwritable(name, error) from None

    def name_all(self, *, force: bool) -> None:
        """Give all files their names; those given are taken back if one can't be."""
        given: list[str] = []
        try:
            for name, temporary in list(self._made.items()):
                if force:
                    os.replace(temporary, name, src_dir_fd=self._handle, dst_dir_fd=self._handle)
                    del self._made[name]
                else:
                    # A link never replaces: what came to be there meanwhile stays.
                    os.link(temporary, name, src_dir_fd=self._handle, dst_dir_fd=self._handle, follow_symlinks=False)
                    given.append(name)
            os.fsync(self._handle)
        except OSError as error:
            for name in given:
                os.unlink(name, dir_fd=self._handle)
            failed = next((name for name in self._made if name not in given), MANIFEST)
            raise (self._there(failed) if isinstance(error, FileExistsError) else self._unwritable(failed, error)) from None

    def _there(self, name: str) -> BadInput:
        return BadInput(f"{self._path / name} is there already", hint="--force replaces it")

    def _unwritable(self, name: str, error: OSError) -> BadInput:
        return BadInput(f"{self._path / name} can't be written: {error.strerror}")


async def _once(data: bytes) -> AsyncIterator[bytes]:
    yield data
