"""JSON that a command writes is shown on terminals too: whatever a provider named a job, nothing in it acts on one."""

import io
import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands.output import write_json
from domain.printable import printable_json

HOSTILE = ["\x9b31mred", "\x1b]0;title\x07", "a\u202eb", "\u2028", "\U000e0041", "\udce4", "\x00", "\x7f", "\u200b", 'q"\\']


def test_what_would_act_on_a_terminal_or_cannot_be_encoded_is_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="\n")
    monkeypatch.setattr(sys, "stdout", out)
    write_json({"job": HOSTILE, "plain": "ä 文", **dict.fromkeys(HOSTILE, 1)})
    out.seek(0)
    line = out.read()
    assert line.endswith("}\n")
    assert line[:-1].isprintable()
    assert "ä 文" in line
    assert json.loads(line) == {"job": HOSTILE, "plain": "ä 文", **dict.fromkeys(HOSTILE, 1)}


@given(st.text(st.characters(), max_size=40))
def test_it_is_the_same_json(text: str) -> None:
    shown = printable_json(json.dumps({text: [text]}, ensure_ascii=False))
    assert shown.isprintable()
    assert json.loads(shown) == {text: [text]}
