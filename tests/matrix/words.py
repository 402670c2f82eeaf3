"""What each lie does to the truth, and what it lets a caller see: one row for each word of the simulator.

* `carried`: the request is carried out, whatever is said about it.
* `status`: what can be known before the body. `own`: the honest status and headers. `two_hundred`: 200, whatever is the honest one.
  `none`: no answer. `unclear`: one that says neither yes nor no. `later`: it was not carried out, come again. `refused`: for good.
* `body`: `whole`, `cut` (it ends early), or `other` (not the body that was meant, or one that cannot be read).
* `truth`: what really became of the job behind the caller's back.
* `twist`: what is special about a word; a rule of `oracle.py` each. A word without a twist is judged by the columns alone.
* `forms`: arguments that are told apart; told always, only the first, which leaves the pace to us.
* `once_only`: told again and again it would show nothing else, or cost real time.
* `nth`: which create or status read it is told to where it is told once; `after`: the lie that the first one meets.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from simulator.acting import RETRY_AFTER
from simulator.answer import Json

Status = Literal["own", "two_hundred", "none", "unclear", "later", "refused"]
Body = Literal["whole", "cut", "other"]
Twist = Literal[
    "", "busy", "stored", "twice", "forgotten", "unseen", "goes_on", "moved", "gone", "only_words", "late_success", "spoiled", "one_time",
]  # fmt: skip
Form = Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Word:
    """One row."""

    carried: bool = True
    status: Status = "own"
    body: Body = "whole"
    truth: Literal["", "failed", "cancelled", "succeeded"] = ""
    twist: Twist = ""
    forms: tuple[tuple[str, Form], ...] = (("", {}),)
    once_only: bool = False
    nth: int = 1
    after: str = ""


def _retry(*names: str) -> tuple[tuple[str, Form], ...]:
    return tuple((name, {"retry_after": name, "seconds": 2}) for name in names)


_ELSEWHERE: tuple[tuple[str, Form], ...] = (("", {"to": "ELSEWHERE"}),)
_HONEST = Word()
_NOT_DONE = Word(carried=False, status="later")
_UNREADABLE = Word(body="other")

WORDS: dict[str, Word] = {
    "drop_before_accepting": Word(carried=False, status="none"),
    "drop_after_accepting": Word(status="none"),
    "delay": Word(forms=(("before", {"seconds": 0.05, "when": "before"}), ("after", {"seconds": 0.05, "when": "after"})), once_only=True),
    "hold": Word(status="none", twist="busy", forms=(("", {"seconds": 600.0, "when": "after"}),), once_only=True),
    "slow_headers": Word(forms=(("", {"seconds": 0.01}),), once_only=True),
    "slow_body": Word(forms=(("", {"seconds": 0.01, "pieces": 4}),), once_only=True),
    "accept_twice": Word(twist="twice"),
    "new_id_for_same_token": Word(after="drop_after_accepting", nth=2, once_only=True),
    "forget_token": Word(after="drop_after_accepting", nth=2, twist="forgotten", once_only=True),
    "in_flight": Word(carried=False, status="unclear", twist="busy"),
    "error_500_stored": Word(
        carried=False, status="unclear", twist="stored", forms=(("nothing made", {"created": False}), ("made", {"created": True}))
    ),
    "reject": Word(carried=False, status="refused"),
    "status_429": Word(carried=False, status="later", forms=_retry("none", "seconds", "http_date", "hour", "garbage")),
    "status_503": Word(carried=False, status="later", forms=_retry("negative", "zero", "fraction", "past_date")),
    "status_500": Word(carried=False, status="unclear"),
    "unauthorized": _NOT_DONE,
    "never_visible": Word(twist="unseen"),
    "list_lag": Word(twist="unseen"),
    "stale_status": Word(twist="goes_on"),
    "state_backwards": _HONEST,
    "terminal_then_running": _HONEST,
    "unknown_state": Word(twist="goes_on"),
    "needs_input": Word(twist="goes_on"),
    "remote_failure": Word(truth="failed"),
    "remote_cancel": Word(truth="cancelled"),
    "job_gone": Word(carried=False, twist="gone", nth=2),
    "cancel_ignored": Word(carried=False, twist="only_words"),
    "cancel_acknowledged_and_ignored": Word(carried=False, twist="only_words"),
    "cancel_refused": Word(carried=False, status="refused"),
    "success_racing_cancel": Word(carried=False, truth="succeeded", twist="only_words"),
    "success_after_cancel": Word(carried=False, twist="late_success"),
    "result_expired": Word(carried=False, twist="gone"),
    "result_one_time": Word(twist="one_time"),
    "result_of_another_job": Word(twist="spoiled"),
    "wrong_result_bytes": Word(twist="spoiled"),
    "truncated_result": Word(twist="spoiled"),
    "short_rows": Word(twist="spoiled"),
    "endless_body": _UNREADABLE,
    "truncated_body": Word(body="cut"),
    "gzip_bomb": Word(status="two_hundred", body="other", forms=(("", {"mebibytes": 2}),)),
    "invalid_utf8": _UNREADABLE,
    "deep_json": Word(body="other", forms=(("", {"depth": 20_000}),)),
    "huge_header": Word(status="none"),
    "wrong_content_type": _UNREADABLE,
    "huge_integer": _HONEST,
    "nul_in_text": _HONEST,
    "lone_surrogate": _HONEST,
    "redirect_elsewhere": Word(carried=False, status="unclear", forms=(("", {"to": "ELSEWHERE", "status": 307}),)),
    "location_elsewhere": Word(twist="moved", forms=_ELSEWHERE),
    "location_metadata": Word(twist="moved"),
    # About portions, which no contract of the matrix asks for: what it does ask for stays as it is.
    **dict.fromkeys(
        ("page_leads_back", "page_never_last", "page_rows_wrong", "page_elsewhere", "page_columns_moved", "part_names"), _HONEST
    ),
    "many_elements": Word(forms=(("", {"count": 1000}),)),
    "new_address": _HONEST,
}

FORMS_OF_RETRY_AFTER = frozenset(RETRY_AFTER)
