"""What is wrong with the outputs of a contract: keys that say nothing where they stand, and what could never come out whole."""

from collections.abc import Callable, Iterator
from typing import Final

from pydantic import JsonValue

from domain.contract import Contract
from domain.errors import BadInput
from domain.language.calls import Output, Source, Verify
from domain.language.expressions import compile_expression
from domain.language.input_schema import check_schema
from domain.language.page_checks import check_way
from domain.language.templates import compile_template
from domain.language.texts import Path
from domain.results.expectations import count_of, digest_of

COUNTED: Final = frozenset({"csv", "jsonl"})
"""Formats of which each page has rows that can be counted."""


def check_outputs(contract: Contract) -> Iterator[tuple[Path, str]]:
    """Every error of the outputs, as path and what was expected."""
    collect = contract.collect
    if collect is None:
        return
    for name, output in collect.every.items():
        path: Path = ("collect", "outputs", name) if collect.outputs else ("collect",)
        yield from _output(contract, path, output)
    if collect.outputs and (collect.each or collect.name or collect.verify or collect.good_for or collect.one_time or collect.when):
        yield ("collect",), "the keys of an output within outputs, where there are any"


def _output(contract: Contract, path: Path, output: Output) -> Iterator[tuple[Path, str]]:
    if not output.source:
        yield (*path, "from"), "where the output comes from"
    if output.name is not None and not output.each:
        yield (*path, "name"), "no name without each"
    if output.refresh == "observe" and contract.observe is None:
        yield (*path, "refresh"), "none, where there is no observe that could renew an address"
    if output.verify:
        yield from _constants((*path, "verify"), output.verify)
    try:
        check_schema((output.verify.schema_ if output.verify else None) or {})
    except BadInput as error:
        yield (*path, "verify", "schema"), error.message
    for index, source in enumerate(output.source):
        yield from _pages((*path, "from", index, "pages"), output, source)


def _constants(path: Path, verify: Verify) -> Iterator[tuple[Path, str]]:
    """A text without a hole that no result could ever be: most often an expression that was meant."""
    kinds: dict[str, tuple[JsonValue, Callable[[JsonValue], object], str]] = {
        "bytes": (verify.bytes, count_of, "a number"),
        "records": (verify.records, count_of, "a number"),
        "sha256": (verify.sha256, digest_of, "a SHA-256"),
    }
    for name, (value, read, what) in kinds.items():
        if value is None or read(value) is not None or (isinstance(value, str) and compile_template(value).holes):
            continue
        meant = f'; did you mean "${{{value}}}"?' if isinstance(value, str) and _is_path(value) else ""
        yield (*path, name), f"{what}, or a template that gives it{meant}"


def _is_path(text: str) -> bool:
    try:
        return bool(compile_expression(text).paths)
    except BadInput:
        return False


def _pages(path: Path, output: Output, source: Source) -> Iterator[tuple[Path, str]]:
    pages = source.pages
    if pages is None:
        return
    yield from ((path, said) for said in check_way(pages, needed=True))
    if pages.items and output.format != "jsonl":
        yield (*path, "items"), "format: jsonl, because the items of pages are stored as lines"
    if not pages.items and output.format == "json":
        yield path, "items, because pages of JSON can't be joined as they are"
    if pages.records and not pages.items and output.format not in COUNTED:
        yield (*path, "records"), f"format: {' or '.join(sorted(COUNTED))}, because rows of nothing else can be counted"
