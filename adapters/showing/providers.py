"""Contracts, as text for a terminal."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import cast

from rich.table import Table
from rich.text import Text

from adapters.showing.text import drawn, inert, rows


def contracts_text(items: Sequence[Mapping[str, object]]) -> str:
    """A list of contracts, a line each: the first sentence of what it is, as far as the line goes."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("contract", "class", "about"):
        table.add_column(name, overflow="fold")
    for item in items:
        words = (
            (item["contract"], "-", "can't be loaded: `contracts check` says why")
            if "broken" in item
            else (f"{item['contract']}@{item['version']}", item["class"], _first_sentence(str(item["about"])))
        )
        *named, about = (Text(inert(word)) for word in words)
        table.add_row(*named, Text(about.plain, no_wrap=True, overflow="ellipsis"))
    whole = Text("`contracts show NAME` says what it promises, and what it can't", style="dim")
    return drawn(table, whole) if items else "no contracts"


def _first_sentence(text: str) -> str:
    found = _SENTENCE.match(text)
    return found[0] if found else text.rstrip(".")


def contract_text(shown: Mapping[str, object]) -> str:
    """One contract: what a person who wants to run it needs."""
    document = cast("Mapping[str, Mapping[str, object]]", shown["document"])
    effect = document["effect"]
    target = cast("Mapping[str, Mapping[str, str]]", shown["target"])
    pairs = [
        ("about", shown["about"]),
        ("digest", shown["digest"]),
        ("class", effect.get("class")),
        ("summary", effect.get("summary")),
        ("cost", _said(effect.get("cost"))),
        ("data leaving", ", ".join(cast("list[str]", effect.get("data_leaving") or []))),
        ("after a cancel", effect.get("after_cancel")),
        ("target", ", ".join(f"{name} ({kind['kind']}) {kind['about']}" for name, kind in target.items())),
        ("deadlines", _said(document.get("deadlines"))),
        ("taken knowingly", _said(document.get("accepts"))),
        ("verified on", document["provider"].get("verified_on")),
    ]
    schema = Text(json.dumps(shown["input"], indent=2, ensure_ascii=False))
    return drawn(Text(f"{inert(shown['contract'])}@{shown['version']}", style="bold"), rows(pairs), Text("input:", style="dim"), schema)


def checked_text(shown: Mapping[str, object]) -> str:
    """What `contracts check` found: a line for each finding, what to do about it, and a verdict."""
    findings = cast("Sequence[Mapping[str, object]]", shown["findings"])
    lines: list[str] = []
    for one in findings:
        place = f"{one['file']}:{one['line']}:{one['column']}"
        said = ": ".join(inert(part) for part in (place, one["key"], one["expected"]) if part)
        lines.append(said if one["kind"] == "error" else f"{said} [{one['code']}]")
        if one["remedy"]:
            lines.append(f"    {inert(one['remedy'])}")
    counts = [(kind, sum(one["kind"] == kind for one in findings)) for kind in ("error", "unsafe", "advice")]
    many = ", ".join(f"{count} {_KINDS[kind]}" for kind, count in counts if count)
    files, cases, stories = len(cast("Sequence[str]", shown["files"])), shown["cases"], shown["stories"]
    verdict = ("good" if shown["ok"] else "not good") + (f": {many}" if many else "")
    lines.append(f"{files} file(s), {cases} case(s) run, {stories} story(s) read: {verdict}")
    return "\n".join(lines)


_SENTENCE = re.compile(r".{12,}?(?=[.;:]\s)")
"""Not as far as an abbreviation at the very beginning."""
_KINDS = {"error": "wrong", "unsafe": "unsafe and not accepted", "advice": "to think about"}


def _said(value: object) -> object:
    """A value of the file as a person writes it."""
    match value:
        case dict():
            return "  ".join(f"{name} {one}" for name, one in cast("dict[str, object]", value).items())
        case list():
            return "; ".join(str(_said(one)) for one in cast("list[object]", value))
        case _:
            return value
