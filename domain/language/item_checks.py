"""What is wrong with the items and counts of a contract: what they name must exist and be readable, and something must decide."""

from collections.abc import Iterator

from domain.contract import Contract
from domain.counts import complete, named_counts, outcome_of
from domain.files import format_of
from domain.language.calls import Items
from domain.language.stages import Collect
from domain.language.texts import Path
from domain.results.item_records import record_format


def check_items(contract: Contract) -> Iterator[tuple[Path, str]]:
    """Every error of items and counts, as path and what was expected."""
    collect = contract.collect
    if collect is not None and collect.items is not None:
        yield from _check_submitted(contract, collect.items)
        yield from _check_read(collect, collect.items)
    ended = contract.observe is not None and any(state.word == "ended" for state in contract.observe.states)
    if ended and not _counts_decide(contract) and (collect is None or collect.items is None):
        yield ("observe", "states"), "counts from which succeeded and total follow, or items to count, for a job that has ended"


def _counts_decide(contract: Contract) -> bool:
    """Whether the contract's counts, if all are given, leave nothing open."""
    counts = contract.observe.counts if contract.observe else None
    named = named_counts(counts) if counts else ()
    return outcome_of(complete(dict.fromkeys(named, 0), named=named).counts) is not None


def _check_submitted(contract: Contract, items: Items) -> Iterator[tuple[Path, str]]:
    submitted, path = items.submitted, ("collect", "items", "submitted")
    if bool(submitted.file) == bool(submitted.count):
        yield path, "exactly one of file and count"
    if submitted.file is None:
        if submitted.key:
            yield (*path, "key"), "a key only beside file: a number has none"
        return
    file = contract.files.get(submitted.file)
    if file is None:
        yield (*path, "file"), f"a name that stands under files; there are {', '.join(contract.files) or 'none'}"
    elif record_format(format_of(file.media)) is None:
        yield (*path, "file"), f"a file of JSON Lines, CSV or JSON, whose items can be read; {submitted.file} is {file.media}"


def _check_read(collect: Collect, items: Items) -> Iterator[tuple[Path, str]]:
    seen: set[str] = set()
    for index, read in enumerate(items.read):
        path: Path = ("collect", "items", "read", index)
        output = collect.every.get(read.output)
        if output is None:
            yield (*path, "output"), f"the name of an output; there are {', '.join(collect.every)}"
        elif record_format(output.format) is None:
            yield (*path, "output"), f"an output of format jsonl, csv or json, whose items can be read; {read.output} is {output.format}"
        if read.output in seen:
            yield (*path, "output"), f"each output once; {read.output} is read above"
        if items.submitted.key and not read.key:
            yield path, "a key, to compare with those that were submitted"
        seen.add(read.output)
