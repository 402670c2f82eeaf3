"""What a step saved is the same value before and after a crash, whatever the provider sent."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from domain.exchange import Answer
from domain.language.expressions import Scope
from domain.language.templates import fill_text
from domain.steps import StepRead, kept_values, read_step, token_of, values_of
from tests.domain.sample_contract import sample

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


def saved(body: bytes, expression: str = "body.v") -> StepRead:
    step = {
        "step": "upload",
        "request": {"method": "POST", "path": "/files"},
        "answers": [{"is": "done"}],
        "save": {"v": expression},
    }
    contract = sample(create__before=[step])
    answer = Answer(200, (("content-type", "application/json"),), body)
    return read_step(contract, contract.create.before[0], answer, Scope(), NOW)


HOSTILE: list[Any] = [
    "1.0", "-0.0", "1e2", "1E400", "9" * 400, "9" * 999, "9" * 5000, "9007199254740993", "0.1", "5e-324", '"../"', '"${input.x}"',
    '"a\\u0000b"', '"\\ud800"', '"a\\r\\nb"', "[1.0, [2.0]]", '{"b": 1.0, "a": {}}', "true", '""', "[]",
]  # fmt: skip


@pytest.mark.parametrize("sent", HOSTILE)
def test_a_saved_value_is_what_it_is_after_it_was_kept(sent: str) -> None:
    found = saved(f'{{"v": {sent}}}'.encode())
    assert found.meaning == "done", found.reason
    again = values_of(kept_values(b"s" * 32, "op-1", 1, "upload", found.saved))
    assert repr(again) == repr(found.saved)
    assert token_of(("steps.upload.v",), {"upload": again}) == token_of(("steps.upload.v",), {"upload": found.saved})
    if not isinstance(again["v"], list | dict):
        texts = {fill_text("<${steps.upload.v}>", Scope(steps={"upload": values})) for values in (again, found.saved)}
        assert len(texts) == 1


def test_text_that_keeps_its_slashes_is_text_once_it_is_saved() -> None:
    found = saved(b'{"v": "a/b"}', "keep_slashes(body.v)")
    assert type(found.saved["v"]) is str


@pytest.mark.parametrize("size", [60_000, 10_000_000])
def test_a_value_beyond_the_bound_leaves_the_step_undone(size: int) -> None:
    found = saved(json.dumps({"v": "x" * size}).encode())
    assert found.meaning == ("done" if size < 64 * 1024 else "again")
    assert found.saved == {} or found.meaning == "done"
