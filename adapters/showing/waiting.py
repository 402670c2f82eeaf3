"""What waits for a human: operations in attention, and operations that ledger and Temporal do not both know."""

import json
import shlex
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, cast

from rich.console import RenderableType
from rich.text import Text

from adapters.showing.status import command
from adapters.showing.text import EFFECT_MADE, drawn, inert, provider_words, rows
from domain.evidence import Json

if TYPE_CHECKING:
    from adapters.orphans import Apart

Shown = Mapping[str, Json]


def attention_text(listed: Shown, at: datetime) -> str:
    """Each operation that waits for a human: since when, why, and what may be done about it."""
    parts: list[RenderableType] = []
    for item in cast("list[Shown]", listed["items"]):
        attention = cast("Shown", item["attention"])
        pairs = [
            ("asked", item["summary"]),
            ("waits since", f"{attention['since']} ({age(str(attention['since']), at)})"),
            ("why", attention["why"]),
            ("job", item["remote_job_id"]),
            ("provider says", provider_words(item)),
            ("effect made", EFFECT_MADE[str(item["effect"])]),
            ("may be it", "\n".join(_job(one) for one in cast("list[Json]", attention["candidates"]))),
        ]
        parts += [_head(item), rows(_lines(pairs))]
        for option in cast("list[Shown]", attention["options"]):
            parts.append(Text(f"  {inert(option['choice'])}: {inert(option['means'])}"))
            parts += [Text(f"    {inert(line)}", style="bold") for line in cast("list[Json]", option["commands"])]
        parts += [Text(f"  look closer, or hand it to the provider's support with `escalate {inert(item['id'])} --output DIR`"), Text("")]
    if not parts:
        return "nothing waits for a human"
    more = [Text(f"more: --after {inert(listed['next'])}", style="dim")] if listed["next"] else []
    return drawn(*parts, *more)


def orphans_of(orphans: Sequence[dict[str, Json]], strangers: "Sequence[Apart]", behind: "Sequence[Apart]", *, by: str) -> dict[str, Json]:
    """`sakshi.list/1` for `list --orphans`: `items` have no workflow; `strangers` and `behind` have one that knows more."""
    accept = f"accept_ledger --by {shlex.quote(by)} --reason WHY"
    return {
        "schema": "sakshi.list/1",
        "items": [*orphans],
        "next": None,
        "strangers": [{**_apart(one), "next": []} for one in strangers],
        "behind": [{**_apart(one), "next": [command("resolve", one.id, accept)]} for one in behind],
    }


def _apart(one: "Apart") -> dict[str, Json]:
    return {"id": one.id, "workflow": one.workflow, "since": one.since, "why": one.why}


STRANGER = (
    "the ledger was lost, or this is another one. Find the ledger that holds it and point Sakshi at it: nothing is sent meanwhile, and "
    "nothing starts it anew. Never run the same again before that: the job may exist"
)
BEHIND = (
    "the ledger was restored from an older copy. Find the newer one first; nothing is sent meanwhile. Only if it is gone for good, accept "
    "what is left: requests that only the lost entries knew of then count as possibly carried out"
)
AT_ONE = "every operation that has not ended has its workflow, and the ledger holds all that Temporal knows of"


def orphans_text(found: Shown, at: datetime) -> str:
    """Each operation that only one of the two knows, and what to do."""
    parts: list[RenderableType] = []
    for item in cast("list[Shown]", found["items"]):
        orphan = cast("Shown", item["orphan"])
        since = f"{orphan['since']} ({age(str(orphan['since']), at)})"
        pairs = [("asked", item["summary"]), ("no workflow since", since), ("why", orphan["why"])]
        parts += [_head(item), rows(_lines(pairs)), *_commands(item), Text("")]
    for name, advice in (("strangers", STRANGER), ("behind", BEHIND)):
        for item in cast("list[Shown]", found[name]):
            head = Text.assemble(
                (inert(item["id"]), "bold"), "  ", ("not in the ledger" if name == "strangers" else "ledger behind", "red")
            )
            pairs = [("workflow", item["workflow"]), ("started", item["since"]), ("why", item["why"]), ("what to do", advice)]
            parts += [head, rows(_lines(pairs)), *_commands(item), Text("")]
    return drawn(*parts) if parts else AT_ONE


def age(since: str, at: datetime) -> str:
    """How long ago, in its two largest units."""
    seconds = int(max(at - datetime.fromisoformat(since).astimezone(UTC), timedelta()).total_seconds())
    units = {"d": seconds // 86400, "h": seconds // 3600 % 24, "m": seconds // 60 % 60, "s": seconds % 60}
    parts = [f"{count}{unit}" for unit, count in units.items()]
    first = next((index for index, count in enumerate(units.values()) if count), len(parts) - 1)
    return " ".join(parts[first : first + 2])


def _head(item: Shown) -> Text:
    return Text.assemble((inert(item["id"]), "bold"), "  ", (inert(item["state"]), "yellow"))


def _commands(item: Shown) -> list[Text]:
    return [Text(f"  {inert(line)}", style="bold") for line in cast("list[Json]", item["next"])]


def _job(job: Json) -> str:
    return json.dumps(job, ensure_ascii=True, sort_keys=True)


def _lines(pairs: Sequence[tuple[str, object]]) -> list[tuple[str, object]]:
    """Pairs whose value may be several lines of ours, each made inert by itself."""
    return [(name, Text("\n".join(map(inert, str(value).split("\n"))))) for name, value in pairs if value]
