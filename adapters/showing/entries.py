"""The evidence of an operation as it is shown: `sakshi.evidence/1`. Runs of unchanged readings are one line, unless all are wanted."""

from collections.abc import Iterable, Sequence
from typing import cast

from domain.chain import Entry
from domain.evidence import Json

SCHEMA = "sakshi.evidence/1"


def evidence_of(stream: str, entries: Sequence[Entry], *, fold: bool) -> dict[str, Json]:
    """The entries of a stream, folded or all."""
    shown = folded(entries) if fold else [entry_shape(entry) for entry in entries]
    return {"schema": SCHEMA, "id": stream, "total": len(entries), "entries": cast("list[Json]", shown)}


def entry_shape(entry: Entry) -> dict[str, Json]:
    """One entry."""
    return {
        "seq": entry.seq,
        "at": entry.at,
        "actor": entry.actor,
        "kind": entry.kind,
        "role": entry.role,
        "from": entry.from_,
        "to": entry.to,
        "cause": entry.cause,
        "hash": entry.hash,
        "prev": entry.prev,
        "epoch": entry.epoch,
        "turn": entry.turn,
        "body": entry.body,
    }


def folded(entries: Iterable[Entry]) -> list[dict[str, Json]]:
    """Each run of readings that showed the same thing as its first one, with how many it stands for and the last of them."""
    shown: list[dict[str, Json]] = []
    last: tuple[object, ...] | None = None
    for entry in entries:
        same = _seen(entry)
        if same is not None and same == last:
            before = cast("dict[str, Json]", shown[-1].get("folded") or {"count": 1})
            shown[-1]["folded"] = {"count": cast("int", before["count"]) + 1, "last_seq": entry.seq, "last_at": entry.at}
        else:
            shown.append(entry_shape(entry))
        last = same
    return shown


def _seen(entry: Entry) -> tuple[object, ...] | None:
    if entry.kind != "reading" or entry.role == "move":
        return None
    body = entry.body
    shown = (str(body.get(name)) for name in ("progress", "counts", "counts_problem", "words"))
    return (entry.cause, entry.role, body.get("word"), body.get("remote_state"), *shown)
