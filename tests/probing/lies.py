"""Every word of the simulator's vocabulary: which check of a probe names it, or why it is no lie about a contract."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.probing.ground import Told

REPORTS, PLAIN, LISTED, NAMED_ = "sim.reports.create", "sim.plain.create", "sim.listed.create", "sim.named.create"
SOON = {"appears_within: 10s": "appears_within: 300ms"}
SOON_LISTED = {"visible_within: 5s": "visible_within: 300ms"}
SOON_ENOUGH = {"visible_within: 5s": "visible_within: 2s"}
"""The seventh look finds what the first six did not: after two seconds at the earliest, and, on a slow machine, before six have passed."""
SHORT = {"deadlines: {create: 1m, result: 1h, cancel: 5m,": "deadlines: {create: 1m, result: 1s, cancel: 1s,"}
LINES: dict[str, Any] = {"input": {"properties": {"format": {"enum": ["csv", "jsonl"]}}}}
UNVERIFIED = dict.fromkeys(("content_type", "bytes", "sha256", "records", "required"))


def paged(**pages: Any) -> dict[str, Any]:
    """A result in pages of JSON."""
    request = {"method": "GET", "path": "/v1/jobs/${job.id}/rows", "query": {"cursor": "${page.next}", "size": 2}}
    return {**LINES, "collect": {"from": [{"request": request, "pages": pages}], "format": "jsonl", "verify": UNVERIFIED}}


CURSOR = paged(next="body.next", items="body.items", records="body.rows")
ADDRESS = paged(next_url="body.next_url", items="body.items")
TABLE = {
    "collect": {
        "from": [
            {
                "request": {"method": "GET", "path": "/v1/jobs/${job.id}/pages", "query": {"cursor": "${page.next}"}},
                "pages": {"next": "headers.x_next", "records": "headers.x_rows"},
            }
        ]
    }
}
PARTS = {
    "collect": {
        **dict.fromkeys(("from", "format", "verify")),
        "before": [
            {
                "step": "parts",
                "request": {"method": "GET", "path": "/v1/jobs/${job.id}/parts"},
                "answers": [{"when": {"status": 200}, "is": "done"}],
                "save": {"parts": "body.parts"},
            }
        ],
        "outputs": {
            "parts": {
                "each": "steps.parts.parts",
                "name": "${each.name}",
                "from": [{"request": {"method": "GET", "path": "/v1/jobs/${job.id}/parts/${each.name}"}}],
            }
        },
    }
}
ELEMENTS = {"collect": {"each": "observed.body.elements", "verify": UNVERIFIED}}


@dataclass(frozen=True)
class Case:
    """One lie told to one contract, and the check that has to name it. `mend`: what the suggested diff has to hold."""

    check: str
    told: Told
    contract: str = REPORTS
    changes: Mapping[str, Any] | None = None
    replaced: Mapping[str, str] | None = None
    more: Mapping[str, Any] = field(default_factory=dict)
    mend: str = ""


def lie(check: str, kind: str, word: str, contract: str = REPORTS, **more: Any) -> Case:
    told = {name: more.pop(name) for name in ("args", "nth", "times") if name in more}
    return Case(check, Told(kind, word, **told), contract, **more)


UNFAIR = ("negative", "hour", "past_date", "garbage")

NAMED: list[Case] = [
    lie("lookup.finds", "create", "accept_twice", LISTED),
    lie("create.token", "create", "new_id_for_same_token", mend="+  token: none"),
    lie("create.token", "create", "forget_token", mend="+  token: none"),
    lie("create.window", "create", "forget_token", nth=4, mend="+  token: {format: uuid, window: "),
    lie("create.taken", "create", "in_flight", nth=1),
    lie("create.taken", "create", "error_500_stored"),
    lie("create.taken", "create", "reject"),
    lie("status.known", "observe", "reject", replaced=SOON),
    lie("cancel.acknowledged", "cancel", "reject"),
    lie("result.there", "collect", "reject", replaced={"collect: 10m": "collect: 1s"}),
    lie("lookup.finds", "list", "reject", LISTED, replaced=SOON_LISTED),
    *(lie("hints", "create", "status_429", args={"retry_after": form}, nth=1) for form in UNFAIR),
    *(lie("hints", "observe", "status_503", args={"retry_after": form}, nth=1) for form in ("negative", "garbage")),
    lie("status.known", "observe", "never_visible", PLAIN, replaced=SOON),
    lie("lookup.finds", "list", "never_visible", LISTED, replaced=SOON_LISTED),
    lie("mark", "list", "never_visible", LISTED, replaced=SOON_LISTED),
    lie("lookup.finds", "list", "list_lag", LISTED, replaced=SOON_ENOUGH, times=6, mend="+    visible_within: "),
    lie("status.ends", "observe", "stale_status", PLAIN, replaced=SHORT),
    lie("status.progress", "observe", "state_backwards", nth=3, more={"polls": 3}),
    lie("status.final", "observe", "terminal_then_running", mend="terminal_is_final: false"),
    lie("status.states", "observe", "unknown_state", nth=2, mend='{when: {body.state: percolating}, is: "?"}'),
    lie("status.states", "observe", "needs_input", PLAIN, nth=2, mend='{when: {body.state: needs_input}, is: "?"}'),
    lie("status.known", "observe", "job_gone", nth=3, more={"polls": 3}),
    lie("result.there", "collect", "job_gone"),
    lie("cancel.confirmed", "cancel", "cancel_ignored"),
    lie("cancel.confirmed", "cancel", "cancel_acknowledged_and_ignored"),
    lie("cancel.acknowledged", "cancel", "cancel_refused"),
    lie("cancel.repeatable", "cancel", "cancel_refused", nth=3, mend="+  repeatable: false"),
    lie("cancel.confirmed", "cancel", "success_racing_cancel"),
    lie("cancel.confirmed", "cancel", "success_after_cancel"),
    lie("result.there", "collect", "result_expired"),
    lie("result.again", "collect", "result_one_time", mend="+  one_time: true"),
    lie("result.sha256", "collect", "result_of_another_job"),
    lie("result.sha256", "collect", "wrong_result_bytes", mend="-    sha256:"),
    lie("result.bytes", "collect", "truncated_result"),
    lie("result.records", "collect", "short_rows", PLAIN, mend="-    records:"),
    lie("result.content_type", "collect", "wrong_content_type"),
    lie("result.pages", "collect", "page_leads_back", changes=CURSOR),
    lie("result.pages", "collect", "page_never_last", changes=paged(next="body.next", items="body.items", limit=9)),
    lie("result.pages", "collect", "page_rows_wrong", changes=CURSOR),
    lie("addresses", "collect", "page_elsewhere", changes=ADDRESS, mend="https://elsewhere.example"),
    lie("result.pages", "collect", "page_columns_moved", nth=2, changes=TABLE),
    lie("result.there", "collect", "part_names", changes=PARTS),
    lie("result.there", "observe", "many_elements", changes=ELEMENTS),
    lie("addresses", "create", "redirect_elsewhere", mend="+  hosts: {"),
    lie("addresses", "observe", "redirect_elsewhere", nth=2),
    lie("addresses", "collect", "redirect_elsewhere", replaced={"collect: 10m": "collect: 1s"}),
    lie("addresses", "create", "location_elsewhere", PLAIN, mend="+  hosts: {"),
    lie("addresses", "observe", "location_elsewhere"),
    lie("addresses", "create", "location_metadata", PLAIN),
]

_TRAVELS = "about how an answer travels: a contract says what an answer means, and none is read before it is whole"
_LATE = "about time: a contract gives deadlines, and an answer that comes within them is as good as any"
_BYTES = "about bytes that nobody can read: no entry matches them, so the contract claims nothing of them"
_FIELDS = "about fields that the contract does not look at"

NOT_ABOUT_THE_CONTRACT: dict[str, str] = {
    "drop_before_accepting": _TRAVELS,
    "drop_after_accepting": _TRAVELS,
    "delay": _LATE,
    "hold": _LATE,
    "slow_headers": _LATE,
    "slow_body": _LATE,
    "status_500": "nothing is claimed of a 500 that is not stored: it is asked again",
    "unauthorized": "about the credential: the contract has a word for it, and it is that",
    "remote_failure": "jobs fail, and the contract maps that: it is a true answer",
    "remote_cancel": "somebody else may cancel a job, and the contract maps that: it is a true answer",
    "new_address": "the contract takes the address that the newest reading gives, and each of them leads to the result",
    "endless_body": _TRAVELS,
    "truncated_body": _TRAVELS,
    "gzip_bomb": _BYTES,
    "invalid_utf8": _BYTES,
    "deep_json": _BYTES,
    "huge_header": _TRAVELS,
    "huge_integer": _FIELDS,
    "nul_in_text": _FIELDS,
    "lone_surrogate": _FIELDS,
}

TOLD_ONCE: list[Told] = [
    Told("create", "drop_before_accepting", nth=1),
    Told("create", "drop_after_accepting", nth=1),
    Told("observe", "drop_after_accepting", nth=2),
    Told("collect", "drop_before_accepting", nth=1),
    Told("cancel", "drop_after_accepting", nth=2),
    Told("observe", "delay", {"seconds": 0.2}, nth=2),
    Told("observe", "slow_body", {"seconds": 0.2}, nth=2),
    Told("create", "status_500", nth=1),
    Told("observe", "status_500", nth=2),
    *(Told("observe", "status_429", {"retry_after": form}, nth=2) for form in ("none", "seconds", "fraction", "http_date", "zero")),
    Told("observe", "unauthorized", nth=2),
    Told("observe", "remote_failure"),
    Told("observe", "remote_cancel"),
    Told("observe", "new_address"),
    Told("observe", "truncated_body", nth=2),
    Told("observe", "gzip_bomb", nth=2),
    Told("observe", "invalid_utf8", nth=2),
    Told("observe", "deep_json", nth=2),
    Told("observe", "huge_header", nth=2),
    Told("create", "huge_integer"),
    Told("observe", "nul_in_text"),
    Told("observe", "lone_surrogate"),
]
