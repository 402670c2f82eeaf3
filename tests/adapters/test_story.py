"""Every entry that can be written has a sentence, and every way an answer is read has words."""

from typing import Any, get_args

import pytest

from adapters.showing.entries import entry_shape, evidence_of
from adapters.showing.exchanges import CALLS, READ_AS
from adapters.showing.markdown import code
from adapters.showing.story import SENTENCES, sentence, timeline
from adapters.showing.text import beside, evidence_text
from domain.evidence import Evidence
from tests.domain.growing import told

KINDS = {one.model_fields["kind"].default: get_args(one.model_fields["meaning"].annotation) for one in get_args(Evidence)}


@pytest.mark.parametrize(("kind", "meaning"), [(kind, meaning) for kind, meanings in KINDS.items() for meaning in meanings])
def test_every_kind_of_entry_has_a_sentence(kind: str, meaning: str) -> None:
    said = sentence(f"{kind}.{meaning}")
    assert said.endswith(".")
    assert f"{kind}.{meaning}" != said


def test_no_sentence_is_left_over() -> None:
    assert set(SENTENCES) <= {f"{kind}.{meaning}" for kind, meanings in KINDS.items() for meaning in meanings}


def test_every_way_to_read_an_answer_has_words() -> None:
    assert {meaning for kind in CALLS for meaning in KINDS[kind]} <= set(READ_AS)


def test_a_reading_that_came_as_a_note_says_on_its_line_that_it_is_one() -> None:
    stream = told("policy.unattended", "intent.create", ("exchange.accepted", {"job": {"id": "job-1"}}), "reading.going", "decision.cancel")
    seen: dict[str, Any] = {"remote_state": "running", "word": "running", "meaning": "going"}
    stream.hear("reading.going", owned=False, **seen)
    stream.hear("reading.going", **seen)
    stream.hear("reading.terminal", verdict="cancelled")
    stream.hear("reading.terminal", verdict="succeeded")
    stream.hear("decision.refused", owned=False)
    text = evidence_text(evidence_of("op-1", stream.entries, fold=True))
    lines = {int(line.split()[0]): line for line in text.splitlines() if line.split()[0].isdigit()}
    assert [number for number, line in lines.items() if "(of a step that was replaced: changes nothing)" in line] == [6]
    assert [number for number, line in lines.items() if "(after the end: changes nothing)" in line] == [9]
    assert timeline(stream.entries).count("changes nothing)") == 2


def test_what_a_note_is_stands_below_the_entries_where_there_is_one() -> None:
    stream = told("policy.unattended")
    assert "a note is" not in evidence_text(evidence_of("op-1", stream.entries, fold=True))
    stream.hear("decision.refused", owned=False)
    assert "entries of op-1; a note is recorded and moves no state" in evidence_text(evidence_of("op-1", stream.entries, fold=True))


@pytest.mark.parametrize(("key", "then"), [("late.accepted", "the next step reads it"), ("step.undone", "")])
def test_what_came_late_and_is_read_later_is_not_said_to_change_nothing(key: str, then: str) -> None:
    stream = told("policy.unattended", "intent.create", "exchange.ambiguous")
    stream.hear(key, owned=False)
    said = beside(entry_shape(stream.entries[-1]))
    assert (then in said, bool(said)) == (True, bool(then))


@pytest.mark.parametrize("value", ["a`b", "a|b", "a\nb", "``` ", "\u202eabc", "<b>", "[x](y)"])
def test_a_code_span_cannot_be_left(value: str) -> None:
    shown = code(value)
    assert shown.startswith("`")
    assert shown.endswith("`")
    assert not set(shown[1:-1]) & {"`", "|", "\n", "\u202e"}


def test_nothing_is_said_to_be_empty() -> None:
    assert code(" ") == "(empty)"
