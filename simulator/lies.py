"""The vocabulary of lies: one word each, combinable, told only where a script says so.

* `instead` lies answer in the provider's place or do something first; the first that answers wins, the others still happen.
* `on_job` lies happen to the job that the call is about; for a create that is the job just made.
* `bend` lies change the answer, in the order of the script.
* `before` and `after` lies hold the call while its token counts as in flight: before it is looked at, or when the work is taken and
  the answer is due.
* A word has a closed set of arguments, each with a usual value that also fixes its type, and the kinds of call it makes sense
  for. A script that names anything else is refused: a lie that could never be told would look like an honest answer.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import get_args

from simulator import acting, bending
from simulator.acting import Instead
from simulator.answer import Json, Kind
from simulator.bending import Bend

ANY: frozenset[Kind] = frozenset(kind for kind in get_args(Kind) if kind != "unknown")
CREATE: frozenset[Kind] = frozenset({"create"})
OBSERVE: frozenset[Kind] = frozenset({"observe"})
CANCEL: frozenset[Kind] = frozenset({"cancel"})
COLLECT: frozenset[Kind] = frozenset({"collect"})
LIST: frozenset[Kind] = frozenset({"list"})
ON_JOBS = CREATE | OBSERVE | CANCEL
METADATA = "http://169.254.169.254/latest/meta-data/"


@dataclass(frozen=True, slots=True)
class Lie:
    """One word: what it means, where it can be told, its arguments with their usual values, and what it does."""

    sentence: str
    kinds: frozenset[Kind]
    args: Mapping[str, Json] = field(default_factory=dict[str, Json])
    choices: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    instead: Instead | None = None
    on_job: Instead | None = None
    bend: Bend | None = None
    holds: bool = False


_RETRY: Mapping[str, Json] = {"retry_after": "seconds", "seconds": 1}
_RETRY_FORMS = {"retry_after": frozenset(acting.RETRY_AFTER)}
_WHEN = {"when": frozenset({"before", "after"})}

LIES: dict[str, Lie] = {
    # The answer is lost or late
    "drop_before_accepting": Lie("The connection breaks and nothing was done.", ANY, instead=lambda _c, _a, _p: bending.dropped()),
    "drop_after_accepting": Lie(
        "The request is carried out and the connection breaks without an answer.", ANY, bend=bending.travels("drop")
    ),
    "delay": Lie(
        "The call is held for some seconds, before or after its work.", ANY, {"seconds": 1.0, "when": "before"}, _WHEN, holds=True
    ),
    "hold": Lie(
        "The call is held until POST /release, before or after its work.", ANY, {"seconds": 600.0, "when": "after"}, _WHEN, holds=True
    ),
    "slow_headers": Lie("The header lines come one by one.", ANY, {"seconds": 1.0}, bend=bending.travels("slow_headers")),
    "slow_body": Lie("The body comes in pieces.", ANY, {"seconds": 1.0, "pieces": 20}, bend=bending.travels("slow_body")),
    # Creating
    "accept_twice": Lie("One request makes two jobs; the answer tells of one.", CREATE, bend=bending.accept_twice),
    "new_id_for_same_token": Lie("A repeated token is answered with another id for its job.", CREATE, instead=acting.new_id),
    "forget_token": Lie("The token's memory is lost; the request counts as new.", CREATE, instead=acting.forget_token),
    "in_flight": Lie("The answer says that an earlier sending is still being worked on.", CREATE, instead=acting.in_flight),
    "error_500_stored": Lie(
        "A 500 that is kept and given again for the same token.", CREATE, {"created": False}, instead=acting.error_stored
    ),
    "reject": Lie("The request is refused for good.", ANY, instead=acting.said(422, "rejected", "we do not do this")),
    # Refused this time: another request may be taken
    "status_429": Lie("Too many requests, with Retry-After in the form named.", ANY, _RETRY, _RETRY_FORMS, acting.busy(429, "too_many")),
    "status_503": Lie("Not available, with Retry-After in the form named.", ANY, _RETRY, _RETRY_FORMS, acting.busy(503, "unavailable")),
    "status_500": Lie("An internal error; nothing was done.", ANY, instead=acting.said(500, "internal", "something broke")),
    "unauthorized": Lie("The credential is refused.", ANY, instead=acting.said(401, "unauthorized", "the credential is not accepted")),
    # Statuses
    "never_visible": Lie("The job is not there, although it was taken.", OBSERVE | LIST, instead=acting.never_visible),
    "list_lag": Lie("The newest jobs are not in the list yet, nor found by their reference.", LIST, {"newest": 1}, bend=bending.list_lag),
    "stale_status": Lie("The status as it was in the beginning.", OBSERVE, bend=bending.stale_status),
    "state_backwards": Lie("A running job is shown as queued again.", OBSERVE, bend=bending.state_backwards),
    "terminal_then_running": Lie("After its end was shown once, the job is shown as running.", OBSERVE, bend=bending.terminal_then_running),
    "unknown_state": Lie("A state word that nobody announced.", OBSERVE, {"state": "percolating"}, bend=bending.state("")),
    "needs_input": Lie("The job waits for somebody at the provider.", OBSERVE, bend=bending.state("needs_input")),
    "remote_failure": Lie("The job really fails.", ON_JOBS, on_job=acting.ends("failed")),
    "remote_cancel": Lie("The job is really cancelled, though nobody asked.", ON_JOBS, on_job=acting.ends("cancelled")),
    "job_gone": Lie("A job that was seen before is not known any more.", OBSERVE | COLLECT, instead=acting.gone),
    # Cancelling
    "cancel_ignored": Lie(
        "The cancel is answered with the state as it is, and nothing happens.", CANCEL, instead=acting.cancel_answered("")
    ),
    "cancel_acknowledged_and_ignored": Lie(
        "The cancel is answered with `cancelled`, and the job goes on.", CANCEL, instead=acting.cancel_answered("cancelled")
    ),
    "cancel_refused": Lie("The cancel is refused for good.", CANCEL, instead=acting.said(403, "cancel_refused", "cannot be cancelled")),
    "success_racing_cancel": Lie("The job succeeds in the moment of its cancel.", CANCEL, instead=acting.success_racing_cancel),
    "success_after_cancel": Lie("The job is cancelling for a while and then succeeds.", CANCEL, instead=acting.success_after_cancel),
    # Results
    "result_expired": Lie("The result is gone.", COLLECT, {"status": 410}, instead=acting.expired),
    "result_one_time": Lie("The result can be fetched once.", COLLECT, instead=acting.one_time),
    "result_of_another_job": Lie("The report of another account.", COLLECT, bend=bending.result_bytes(bending.of_another)),
    "wrong_result_bytes": Lie("One digit is another; the size is right.", COLLECT, bend=bending.result_bytes(bending.flipped)),
    "truncated_result": Lie("The first half, sent as if it were all.", COLLECT, bend=bending.result_bytes(bending.halved)),
    "short_rows": Lie("A well-formed report with half of the rows.", COLLECT, bend=bending.result_bytes(bending.shortened)),
    # Results in portions
    "page_leads_back": Lie("A page leads to one that was given before.", COLLECT, {"cursor": "2"}, bend=bending.page_leads_to),
    "page_never_last": Lie("Behind every page there is another one.", COLLECT, bend=bending.page_never_last),
    "page_rows_wrong": Lie("A page says that it has one row more.", COLLECT, bend=bending.page_rows_wrong),
    "page_elsewhere": Lie(
        "The next page is at another host.", COLLECT, {"to": "https://elsewhere.example/rows"}, bend=bending.page_elsewhere
    ),
    "page_columns_moved": Lie("The columns of a page stand in another order.", COLLECT, bend=bending.page_columns_moved),
    "part_names": Lie("Every part has this name.", COLLECT, {"name": "../../etc/passwd"}, bend=bending.part_names),
    "many_elements": Lie("The status lists this many elements.", OBSERVE, {"count": 100_000}, bend=bending.many_elements),
    "new_address": Lie("Each reading names another address of the result.", OBSERVE, bend=bending.new_address),
    # Bodies and headers
    "endless_body": Lie("The body never ends.", ANY, bend=bending.travels("endless")),
    "truncated_body": Lie("The connection breaks within the body.", ANY, {"share": 0.5}, bend=bending.travels("cut")),
    "gzip_bomb": Lie("A small body that unpacks to a huge one.", ANY, {"mebibytes": 64}, instead=acting.gzip_bomb),
    "invalid_utf8": Lie("Bytes that are not UTF-8.", ANY, bend=bending.invalid_utf8),
    "deep_json": Lie("JSON nested without reason.", ANY, {"depth": 100_000}, bend=bending.deep_json),
    "huge_header": Lie("A header line larger than clients take.", ANY, {"bytes": 262_144}, bend=bending.huge_header),
    "wrong_content_type": Lie("The right body under another name.", ANY, {"type": "text/html"}, bend=bending.wrong_content_type),
    "huge_integer": Lie("An integer of 2^60, and 1e400.", ANY, {"field": "note"}, bend=bending.huge_integer),
    "nul_in_text": Lie("A text with a NUL in it.", ANY, {"field": "note"}, bend=bending.planted(lambda _a: "a\x00b")),
    "lone_surrogate": Lie("A text with half of a surrogate pair.", ANY, {"field": "note"}, bend=bending.planted(lambda _a: "a\ud800b")),
    # Addresses
    "redirect_elsewhere": Lie(
        "The caller is sent to another host.", ANY, {"to": "https://elsewhere.example", "status": 307}, instead=acting.redirect
    ),
    "location_elsewhere": Lie(
        "Addresses in the answer name another host.", ANY, {"to": "https://elsewhere.example"}, bend=bending.elsewhere
    ),
    "location_metadata": Lie("Addresses in the answer name a metadata service.", ANY, {"to": METADATA}, bend=bending.elsewhere),
}
