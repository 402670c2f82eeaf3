"""What is kept apart because it is sensitive is remembered with its operation, and pruned when nothing more has to be done."""

from typing import Any

import pytest

from domain.chain import make_entry
from domain.evidence import Evidence, Pruned, Ref
from domain.folding import apply
from domain.pruning import pruning
from domain.standing import Leftover, Standing
from tests.domain.growing import LEDGER, STREAM, at, said, standing

PAGE, KEPT = "1" * 64, "2" * 64
REF = {"digest": KEPT, "size": 1}
FROZEN = {"method": "POST", "url": "https://api.example/", "body_sha256": "5" * 64, "body_bytes": 2, "ref": KEPT}
SENSITIVE = {"sensitive": True}
SAVED = {"steps": {"upload": Ref(digest="3" * 64, size=1)}}


def after(one: Standing, evidence: Evidence, role: Any = "stay") -> Standing:
    entry = make_entry(
        evidence, ledger_id=LEDGER, stream=STREAM, seq=9, prev="0" * 64, role=role, epoch=0, turn=0, from_=one.state, to=one.state
    )
    return apply(one, entry)


HOLDERS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "the whole answer to the create": ("exchange.finished", {"observed": REF}, {}),
    "the same, late": ("late.finished", {"observed": REF}, {}),
    "the whole status": ("reading.terminal", {"observed": REF}, {}),
    "what a step saved": ("step.done", {"saved": REF}, {}),
    "a cancel": ("intent.cancel", {"request": FROZEN}, {}),
    "a create that steps were before": ("intent.create", {"request": FROZEN}, SAVED),
}


@pytest.mark.parametrize("what", HOLDERS)
def test_whatever_may_hold_a_sensitive_value_is_kept_apart(what: str) -> None:
    key, fields, changes = HOLDERS[what]
    assert after(standing("observing", SENSITIVE, **changes), said(key, **fields)).apart == (KEPT,)
    assert after(standing("observing", {}, **changes), said(key, **fields)).apart == ()  # nothing is sensitive there


def test_a_create_that_is_made_of_the_input_alone_is_not() -> None:
    assert after(standing("create_pending", SENSITIVE), said("intent.create", request=FROZEN)).apart == ()


@pytest.mark.parametrize("role", ["stay", "note"])
def test_a_page_of_hidden_values_is_needed_later_whoever_brought_it(role: str) -> None:
    fact = said("exchange.accepted", job={"id": "j"}, sensitive={"digest": PAGE, "size": 1})
    once = after(standing("create_pending", SENSITIVE), fact, role)
    twice = after(once, fact, role)
    assert (twice.sensitive, twice.apart) == ((PAGE,), (PAGE,))
    pruned = after(twice, said("pruned.pruned", refs=(PAGE,)), "note")
    assert (pruned.sensitive, pruned.apart) == ((), ())


def test_nothing_is_pruned_before_all_is_done() -> None:
    last = said("result.verified")
    held = {"apart": (PAGE, KEPT), "state_since": at(0)}
    due = pruning(standing("succeeded", SENSITIVE, **held), last)
    assert due == Pruned(at=last.at, actor=last.actor, refs=(PAGE, KEPT))
    assert pruning(standing("succeeded", SENSITIVE), last) is None
    assert pruning(standing("result_collecting", SENSITIVE, **held), last) is None
    assert pruning(standing("outcome_undecided", SENSITIVE, **held), last) is None
    undone = {"leftovers": (Leftover(generation=1, step="upload"),)}
    assert pruning(standing("failed", SENSITIVE, **held, **undone), last) is None


@pytest.mark.parametrize("key", ["reading.failed", "cancel_answer.again", "lookup.failed", "result.again", "exchange.not_sent"])
def test_a_quota_that_is_used_up_is_why_it_waits(key: str) -> None:
    words = {"reason": "nothing was sent: the provider's quota is used up until then"}
    assert after(standing("observing"), said(key, word="quota", words=words)).why == words["reason"]
    assert after(standing("observing", why="before"), said("reading.failed", word="timeout", words=words)).why == "before"
