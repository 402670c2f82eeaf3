"""A verified result on its way out of the store: to a folder, or to stdout.

* Names on disk are ours (`output-001`); the provider's stand only in `manifest.json`, which is written last.
* Every object is read against its recorded SHA-256 and size again. Files get their names only when all are verified; whatever
  goes wrong before leaves nothing behind.
* Files are made exclusively, for their owner only, and no link is followed. Nothing is replaced unless that is asked for, and
  then a link is replaced, not what it leads to.
"""

import hashlib
import json
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import BinaryIO, Literal

from activities.ports import ResultStore
from adapters.output_folder import MANIFEST, OutputFolder
from domain.errors import BadInput, Tampered
from domain.evidence import Output


async def write_out(
    store: ResultStore,
    outputs: Sequence[Output],
    directory: Path | Literal["-"],
    *,
    force: bool = False,
    stdout: BinaryIO | None = None,
) -> tuple[str, ...]:
    """Write the outputs, verified again, to a folder or to stdout (`-`); the names that were written.

    Raises Tampered if an object is not what was recorded, NotFound if it is gone, BadInput where it can't be written.
    """
    if directory == "-":
        await _to_stdout(store, outputs, sys.stdout.buffer if stdout is None else stdout)
        return ()
    with OutputFolder(directory) as folder:
        names = [f"output-{number:03d}" for number in range(1, len(outputs) + 1)]
        if not force:
            folder.refuse_existing([*names, MANIFEST])
        for name, output in zip(names, outputs, strict=True):
            await folder.write(name, _verified(store, output))
        await folder.write_whole(MANIFEST, manifest(names, outputs))
        folder.name_all(force=force)
        return (*names, MANIFEST)


def manifest(names: Sequence[str], outputs: Sequence[Output]) -> bytes:
    """What the files are. All but printable ASCII is escaped: the provider's names are shown, never obeyed."""
    listed = [{"file": name, **output.model_dump(mode="json")} for name, output in zip(names, outputs, strict=True)]
    return json.dumps({"schema": "sakshi.manifest/1", "outputs": listed}, indent=2, sort_keys=True).encode("ascii") + b"\n"


async def _to_stdout(store: ResultStore, outputs: Sequence[Output], stdout: BinaryIO) -> None:
    """A stream can't be taken back: the object is verified whole before its first byte is written."""
    if len(outputs) != 1:
        raise BadInput(f"the result has {len(outputs)} outputs; stdout takes one", hint="--output DIR writes them all")
    async for _ in _verified(store, outputs[0]):
        pass
    async for chunk in _verified(store, outputs[0]):
        stdout.write(chunk)
    stdout.flush()


async def _verified(store: ResultStore, output: Output) -> AsyncIterator[bytes]:
    """The bytes of an object. Raises Tampered, at the latest after the last one, if they are not what was recorded."""
    digest, size = hashlib.sha256(), 0
    async for chunk in store.read(output.key):
        digest.update(chunk)
        size += len(chunk)
        if size > output.size:
            break
        yield chunk
    if size != output.size or digest.hexdigest() != output.sha256:
        raise Tampered(
            f"the stored result {output.key} is not what was recorded: sha256 {output.sha256}, {output.size} bytes",
            hint="nothing was written; `resolve ID recollect`, or restore the result store",
        )
