"""Writes the table of contracts/README.md from the contracts that stand beside it: `python -m docs.write_contracts`.

What a contract says is worded here by rule, for none alone. The text around the table is kept.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from adapters.contract_files import ContractFolder
from domain.contract import Contract
from domain.language.calls import Lookup
from domain.language.grammar import DURATION_UNITS, milliseconds
from domain.language.stages import Cancel, Token

FOLDER: Final = Path(__file__).parents[1] / "contracts"
PAGE: Final = FOLDER / "README.md"
BEGIN, END = "<!-- table -->\n", "<!-- end of table -->\n"
HEAD: Final = ("contract", "provider", "after a lost answer", "cancel", "verified on")


def written(text: str) -> str:
    """The page with its table as the contracts have it now."""
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    return before + BEGIN + table() + END + after


def table() -> str:
    """One line for each contract."""
    folder = ContractFolder(FOLDER)
    rows = [HEAD, ("---",) * len(HEAD), *(_row(folder.get(name)) for name in folder.names())]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _row(contract: Contract) -> tuple[str, ...]:
    provider = f"{contract.provider.name} {contract.provider.api_version}"
    lost = ", then ".join(_lost(contract)) or "a human"
    return f"`{contract.contract}`", provider, lost, _cancel(contract.cancel), contract.provider.verified_on.isoformat()


def _lost(contract: Contract) -> Iterator[str]:
    """How it is settled what a create came to whose answer was lost, in the order in which that is tried."""
    if contract.create.token:
        yield f"sent again under {_token(contract.create.token)}"
    yield from (_lookup(lookup) for lookup in contract.reconcile)


def _token(token: Token) -> str:
    held = "unstated" if token.window is None else _span(milliseconds(token.window))
    return f"{'what a step gave' if token.source else 'its token'} ({held})"


def _lookup(lookup: Lookup) -> str:
    if lookup.by == "webhook":
        return "a webhook"
    if lookup.by == "get":
        proof = any(answer.word == "absent" for answer in lookup.answers)
        return "asked for by its name" + ("; absence is proof" if proof else "")
    if lookup.strength == "heuristic":
        return "looked for in the list by what it is like; a human adopts"
    return "looked for in the list by what is ours" + ("; absence is proof" if lookup.proves_absence else "")


def _cancel(cancel: Cancel | None) -> str:
    if cancel is None:
        return "none"
    facts = [("repeatable", cancel.repeatable), ("by force too", cancel.force), ("not of a finished job", cancel.destroys_finished_jobs)]
    return ", ".join(["yes", *(said for said, holds in facts if holds)])


def _span(whole: int) -> str:
    unit = next(unit for unit in reversed(DURATION_UNITS) if whole % DURATION_UNITS[unit] == 0)
    return f"{whole // DURATION_UNITS[unit]}{unit}"


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text("utf-8")), "utf-8")
