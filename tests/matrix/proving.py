"""Plays the cells of one phase of one kind, and asserts all that must hold of them and of the stage."""

import ipaddress
from pathlib import Path
from urllib.parse import urlsplit

from tests.matrix.cells import cells, has
from tests.matrix.judging import faults
from tests.matrix.kinds import Kind, kinds
from tests.matrix.oracle import Phase
from tests.matrix.playing import Left, play
from tests.workflows.stage import SECRET


def kinds_in(phase: Phase) -> list[Kind]:
    """The kinds whose operations come to that phase."""
    return [kind for kind in kinds() if has(phase, kind)]


async def prove(folder: Path, phase: Phase, kind: Kind) -> None:
    """What comes of each lie is what the rules say; the workers live on, and no credential is anywhere but where it belongs."""
    played = await play(folder, cells(phase, kind))
    assert [fault for left in played.left for fault in faults(left)] == []
    assert played.honest.state == "succeeded", "the workers are alive and their pool is whole"
    assert played.strangers.heard == []
    assert [address for left in played.left for address in _called(left) if not _ours(address, left)] == []
    assert _files_that_hold_the_credential(folder) == []


def _called(left: Left) -> list[str]:
    """Every address to which something went, as the ledger tells."""
    https = [getattr(entry.evidence, "http", None) for entry in left.entries]
    return [http.url for http in https if http is not None]


def _ours(address: str, left: Left) -> bool:
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}" == left.stage.provider.url and ipaddress.ip_address(str(parts.hostname)).is_loopback


def _files_that_hold_the_credential(folder: Path) -> list[str]:
    files = [file for file in folder.rglob("*") if file.is_file() and file.parent != folder / "secrets"]
    assert files, "the ledger at least"
    return [str(file) for file in files if SECRET.encode() in file.read_bytes()]
