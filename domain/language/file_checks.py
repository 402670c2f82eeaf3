"""What is wrong with the files of a contract, and with the requests that send them."""

from collections.abc import Iterator
from typing import Final

from domain.contract import Contract
from domain.files import format_of
from domain.language.calls import FilePart, Request
from domain.language.parts import requests
from domain.language.patterns import pattern
from domain.language.texts import Path

_MEDIA: Final = pattern(r"[A-Za-z0-9!#$&^_.+-]{1,100}/[A-Za-z0-9!#$&^_.+-]{1,100}( ?; ?[!-~]{1,100})*")
_FIELD: Final = pattern(r"[^\x00-\x1f\x7f]{1,200}")


def check_files(contract: Contract) -> Iterator[tuple[Path, str]]:
    """Every error of the files, as path and what was expected."""
    for name, file in contract.files.items():
        path: Path = ("files", name)
        if not _MEDIA.matches(file.media):
            yield (*path, "media"), "a media type such as application/jsonl or text/csv"
        elif file.source and format_of(file.media) not in {"jsonl", "csv"}:
            yield (*path, "from"), "a media of JSON Lines or CSV (application/jsonl, text/csv): of a list of the input nothing else is made"
        elif file.max_records is not None and format_of(file.media) == "binary":
            yield (*path, "max_records"), "no max_records where the media has no records that can be counted"
    for path, request in requests(contract):
        yield from _check_bodies(contract, path, request)


def _check_bodies(contract: Contract, path: Path, request: Request) -> Iterator[tuple[Path, str]]:
    fields = request.multipart or {}
    named: list[tuple[Path, str]] = [((*path, "file"), request.file)] if request.file is not None else []
    named += [((*path, "multipart", name, "file"), field.file) for name, field in fields.items() if isinstance(field, FilePart)]
    there = ", ".join(contract.files) or "none"
    yield from ((place, f"the name of a file under files; there are: {there}") for place, name in named if name not in contract.files)
    yield from (((*path, "multipart", name), "a field's name without control characters") for name in fields if not _FIELD.matches(name))
    if request.body == "multipart":
        if not fields:
            yield (*path, "multipart"), "at least one field"
        for header in request.headers:
            if header.lower() == "content-type":
                yield (*path, "headers", header), "no Content-Type beside multipart: it holds the boundary, which is ours"
