"""The report of a probe, as text for a terminal."""

from collections.abc import Mapping
from typing import Final, cast

from rich.table import Table
from rich.text import Text

from adapters.showing.text import drawn, inert

_SHOWN: Final = {
    "ok": ("ok", "green"),
    "differs": ("DIFFERS", "red"),
    "not_offered": ("not offered", "dim"),
    "not_tried": ("not tried", "yellow"),
}

Shown = Mapping[str, object]


def probe_text(report: Shown) -> str:
    """All that was found out, what is left, and what could be mended."""
    checks, exchanges = (cast("list[Shown]", report[name]) for name in ("checks", "exchanges"))
    table = Table(box=None, pad_edge=False, show_header=False)
    for _ in range(3):
        table.add_column(overflow="fold")
    by_number = {one["n"]: one for one in exchanges}
    for check in checks:
        word, style = _SHOWN[str(check["verdict"])]
        table.add_row(Text(word, style), Text(inert(check["name"])), Text(_what(check)))
        if check["verdict"] == "differs":
            for number in cast("list[int]", check["exchanges"])[:6]:
                table.add_row("", "", Text(_exchange(by_number[number]), "dim"))
    parts = [drawn(table), _head(report, checks)]
    if report["left"]:
        left = [f"  {inert(one['job'] or '?')}  {inert(one['what'])}: {inert(one['why'])}" for one in cast("list[Shown]", report["left"])]
        parts.append("left at the provider:\n" + "\n".join(left))
    if report["suggested_diff"]:
        notes = "".join(f"# {inert(note)}\n" for note in cast("list[str]", report["notes"]))
        parts.append(
            f"suggested, to be read before it is taken (a changed contract is a new version):\n{notes}{report['suggested_diff']}".rstrip()
        )
    return "\n\n".join(parts)


def _what(check: Shown) -> str:
    said = inert(check["question"])
    if check["verdict"] == "differs":
        return f"{said}\ncontract: {inert(check['contract_says'])}\nprovider: {inert(check['provider_did'])}"
    why = check["provider_did"] or check["contract_says"]
    return f"{said}: {inert(why)}" if why else said


def _exchange(one: Shown) -> str:
    came = one["status"] if one["status"] is not None else one["no_answer"]
    digest = str(one["body_sha256"] or "")[:12]
    read = f" read as {one['word']}" if one["word"] else ""
    return inert(f"#{one['n']} {one['call']}: {one['method']} {one['url']} -> {came}{read}" + (f", body {digest}" if digest else ""))


def _head(report: Shown, checks: list[Shown]) -> str:
    counts = {verdict: sum(check["verdict"] == verdict for check in checks) for verdict in _SHOWN}
    said = f"{inert(report['contract'])}@{report['version']}: {counts['ok']} ok, {counts['differs']} differ, "
    said += f"{counts['not_offered']} not offered, {counts['not_tried']} not tried"
    return said if report["ok"] else f"{said}\nnot ok: {inert(report['reason'])}"
