"""Text for a terminal. Whatever came from outside is shown inert: no markup, no control or bidirectional characters.

Rich draws tables and colours; it is handed `Text`, never markup, so that nothing a provider wrote can style or hide a line.
"""

import io
import shutil
import sys
import unicodedata
from collections.abc import Iterable, Mapping
from typing import cast

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from adapters.showing.exchanges import UNDOING
from domain.contradictions import contradiction_text
from domain.errors import MissingFault, missing_words
from domain.evidence import FROM_OUTSIDE, Json, bounded
from domain.standing import FINAL, counts_text, progress_text

EFFECT_MADE = {"none": "no", "possible": "possibly", "made": "yes"}
_HIDDEN = frozenset({"Cc", "Cf", "Zl", "Zp", "Cs", "Co"})
_STYLES = {"succeeded": "green", "failed": "red", "cancelled": "yellow", "denied": "red", "abandoned": "red"}


def inert(value: object) -> str:
    """Any value as one line that acts on nothing. Characters that would hide or reorder text are shown by their number."""
    return "".join(_shown(letter) for letter in (value if isinstance(value, str) else str(value)))


def _shown(letter: str) -> str:
    return f"\\u{ord(letter):04x}" if unicodedata.category(letter) in _HIDDEN else letter


def drawn(*parts: RenderableType) -> str:
    """Parts as the terminal takes them; plain where stdout is no terminal."""
    width = min(shutil.get_terminal_size().columns, 200) if sys.stdout.isatty() else 160
    console = Console(file=io.StringIO(), width=width, force_terminal=sys.stdout.isatty(), highlight=False, markup=False, emoji=False)
    with console.capture() as captured:
        for part in parts:
            console.print(part)
    lines = captured.get().splitlines()
    return "\n".join(line.rstrip() for line in lines).rstrip("\n")


def rows(pairs: Iterable[tuple[str, object]]) -> Table:
    """Names and values, without what has no value."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in pairs:
        if value not in (None, "", [], {}):
            table.add_row(Text(name), value if isinstance(value, Text) else Text(inert(value)))
    return table


def status_text(status: Mapping[str, Json], *, created: bool | None = None) -> str:
    """The status of one operation."""
    state = str(status["state"])
    head = Text.assemble(
        (inert(status["id"]), "bold"), "  ", (state, _STYLES.get(state, "yellow" if status["attention"] else "cyan")),
        "" if created is not False else "  (it was there already)",
    )  # fmt: skip
    attention = cast("Mapping[str, Json] | None", status["attention"])
    pairs: list[tuple[str, object]] = [
        ("effect", status.get("summary")),
        ("contract", f"{status['contract']}@{status['version']}"),
        ("waits for", status["waiting_for"]),
        ("since", attention["since"] if attention else None),
        ("why", status["why"]),
        ("provider says", provider_words(status)),
        ("job", status["remote_job_id"]),
        ("effect made", EFFECT_MADE[str(status["effect"])]),
        ("outcome", status["outcome"] if status["final"] and (status["outcome"] != "none" or status["items"]) else None),
        ("items", counts_text(status["items"]) or counts_text(status["counts"])),
        ("disagrees", "; ".join(disagreements(status["items"]))),
        ("next poll", status["next_poll_at"]),
        ("deadlines", "  ".join(f"{name} {moment}" for name, moment in cast("Mapping[str, Json]", status["deadlines"]).items())),
        ("flags", "; ".join(str(cast("Mapping[str, Json]", flag)["why"]) for flag in cast("list[Json]", status["flags"]))),
        ("result", _outputs(cast("Mapping[str, Json] | None", status["result"]))),
        ("retry of", status["retry_of"]),
        ("trace", status["trace_id"]),
        ("newest entry", _head(cast("Mapping[str, Json]", status["head"]))),
    ]
    commands = [Text(f"  {inert(command)}", style="bold") for command in cast("list[Json]", status["next"])]
    return drawn(head, rows(pairs), *([Text("next:", style="dim"), *commands] if commands else []))


def disagreements(items: object) -> list[str]:
    """What does not agree in an outcome, in words."""
    found = cast("Mapping[str, Json]", items).get("disagreements") if isinstance(items, Mapping) else None
    return [str(one) for one in found] if isinstance(found, list) else []


def provider_words(status: Mapping[str, Json]) -> str:
    """What the provider shows: its state, and progress."""
    return " ".join(str(part) for part in (status["remote_state"], progress_text(status["progress"])) if part)


def list_text(listed: Mapping[str, Json]) -> str:
    """A list of operations."""
    items = cast("list[dict[str, Json]]", listed["items"])
    if not items:
        return "no operations"
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("id", "state", "waits for", "provider says", "changed"):
        table.add_column(name, overflow="fold")
    for item in items:
        words = (item["id"], item["state"], item["waiting_for"] or "", provider_words(item), item["updated_at"])
        table.add_row(*(Text(inert(word)) for word in words))
    more = [Text(f"more: --after {inert(listed['next'])}", style="dim")] if listed["next"] else []
    return drawn(table, *more)


def evidence_text(evidence: Mapping[str, Json]) -> str:
    """The entries of an operation."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("seq", "at", "who", "what", "state", "says", "hash"):
        table.add_column(name, overflow="fold", no_wrap=name in {"seq", "hash"})
    shown = cast("list[dict[str, Json]]", evidence["entries"])
    for entry in shown:
        folded = cast("Mapping[str, Json] | None", entry.get("folded"))
        seq = f"{entry['seq']}-{folded['last_seq']}" if folded else str(entry["seq"])
        moved = f"{entry['from'] or 'new'} -> {entry['to']}" if entry["role"] == "move" else ("note" if entry["role"] == "note" else "")
        says = " ".join(part for part in (said(entry), beside(entry)) if part)
        words = (seq, str(entry["at"])[11:23], entry["actor"], entry["cause"], moved, says, str(entry["hash"])[:12])
        table.add_row(*(Text(inert(word)) for word in words))
    more = "; a note is recorded and moves no state" if any(entry["role"] == "note" for entry in shown) else ""
    more += "; --all shows unchanged readings one by one" if any(entry.get("folded") for entry in shown) else ""
    return drawn(table, Text(f"{evidence['total']} entries of {inert(evidence['id'])}{more}", style="dim"))


def said(entry: Mapping[str, Json]) -> str:
    """What an entry says, on one line."""
    body = cast("Mapping[str, Json]", entry["body"])
    http = cast("Mapping[str, Json]", body.get("http") or {})
    words = cast("Mapping[str, Json]", body.get("words") or {})
    violation = cast("Mapping[str, Json]", body.get("violation") or {})
    folded = cast("Mapping[str, Json] | None", entry.get("folded"))
    parts = [
        str(body.get("step") or ""),
        str(body.get("remote_state") or ""),
        progress_text(body.get("progress")) or "",
        counts_text(body.get("items")) or counts_text(body.get("counts")) or "",
        str(body.get("counts_problem") or ""),
        f"HTTP {http['status']}" if http.get("status") else str(http.get("no_answer") or ""),
        str(words.get("message") or words.get("reason") or words.get("code") or ""),
        str(body.get("why") or body.get("reason") or contradiction_text(violation) or ""),
        _missing(body) if entry["kind"] == "missing" else "",
        f"job {job['id']}" if isinstance(job := body.get("job"), dict) and "id" in job else "",
        f"attempt {body['attempt']}" if entry["kind"] == "intent" and body.get("attempt") else "",
        f"recovered: {body['recovered']}" if body.get("recovered") else "",
        bounded("; ".join([*map(str, cast("list[Json]", body.get("problems") or [])), *disagreements(body.get("items"))]), 120),
        f"({folded['count']} readings)" if folded else "",
    ]
    return " ".join(part for part in parts if part)


def beside(entry: Mapping[str, Json]) -> str:
    """What a fact is that came as a note: two readings in a row, of which one is such a note, are no contradiction."""
    planned = entry["kind"] == "step" and cast("Mapping[str, Json]", entry["body"])["meaning"] in UNDOING
    if entry["role"] != "note" or entry["kind"] not in FROM_OUTSIDE or planned:
        return ""
    if entry["from"] in FINAL:
        return "(after the end: changes nothing)"
    then = "the next step reads it" if entry["kind"] == "late" else "changes nothing"
    return f"(of a step that was replaced: {then})"


def _missing(body: Mapping[str, Json]) -> str:
    return missing_words(str(body["what"]), cast("MissingFault", body.get("fault", "absent")))


def result_text(result: Mapping[str, Json]) -> str:
    """A result: each output, and what each check found."""
    parts: list[RenderableType] = [Text(f"{inert(result['id'])}  {result['outcome']}", style="bold")]
    for output in cast("list[dict[str, Json]]", result["outputs"]):
        checks = cast("list[dict[str, Json]]", output.get("checks") or [])
        parts.append(
            rows(
                [
                    ("output", output["name"]),
                    ("bytes", output["size"]),
                    ("records", output.get("records")),
                    ("sha256", output["sha256"]),
                    ("media", output.get("media")),
                    ("checked", "  ".join(f"{check['check']}: {str(check['verdict']).replace('_', ' ')}" for check in checks)),
                ]
            )
        )
    parts += _items(result)
    if result.get("written"):
        parts.append(Text(f"written to {inert(result['written'])}"))
    return drawn(*parts)


def _items(result: Mapping[str, Json]) -> list[RenderableType]:
    """What came of each item: in numbers, and the first of those that did not succeed."""
    items = cast("Mapping[str, Json] | None", result["items"])
    if items is None:
        return []
    failed = cast("list[Mapping[str, Json]]", items.get("failed_items") or [])
    shown = [(str(one["outcome"]), _item(one)) for one in failed]
    more = cast("int", items.get("listed") or 0) - len(failed)
    last = [Text(f"and {more} more: result {inert(result['id'])} --failed-items", style="dim")] if more > 0 else []
    return [rows([("items", counts_text(items)), *(("disagrees", one) for one in disagreements(items)), *shown]), *last]


def _item(one: Mapping[str, Json]) -> str:
    where = f"{one['output']} {one['record']}" if one["output"] else ""
    says = f"the provider says: {one['error']}" if one["error"] else ""
    return "  ".join(part for part in (str(one["key"] or where), says) if part)


def _outputs(result: Mapping[str, Json] | None) -> str | None:
    if result is None:
        return None
    outputs = cast("list[dict[str, Json]]", result["outputs"])
    return "; ".join(f"{output['name']} ({output['size']} bytes, sha256 {str(output['sha256'])[:12]})" for output in outputs)


def _head(head: Mapping[str, Json]) -> str:
    return f"{head['seq']} {str(head['hash'])[:16]}"
