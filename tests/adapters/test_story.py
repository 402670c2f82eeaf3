"""Every entry that can be written has a sentence, and every way an answer is read has words."""

from typing import get_args

import pytest

from adapters.showing.exchanges import CALLS, READ_AS
from adapters.showing.markdown import code
from adapters.showing.story import SENTENCES, sentence
from domain.evidence import Evidence

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


@pytest.mark.parametrize("value", ["a`b", "a|b", "a\nb", "``` ", "\u202eabc", "<b>", "[x](y)"])
def test_a_code_span_cannot_be_left(value: str) -> None:
    shown = code(value)
    assert shown.startswith("`")
    assert shown.endswith("`")
    assert not set(shown[1:-1]) & {"`", "|", "\n", "\u202e"}


def test_nothing_is_said_to_be_empty() -> None:
    assert code(" ") == "(empty)"
