"""Values that are nobody's business, in forms and places in which they might still be told."""

import json
import re
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from activities.authority import AuthorityActivities
from activities.case import CHARACTERS_KEPT, TEXTS_KEPT, Hidden
from activities.provider import ProviderActivities
from adapters.escalation import dossier_of, escalate
from domain.evidence import Json
from domain.exchange import Answer
from domain.language.expressions import Scope
from domain.messages import StepInput
from domain.results.pieces import safe_name
from domain.sensitive import MAX_CHARACTERS, MAX_VALUE, MAX_VALUES, Found, HiddenValues, find
from domain.veil import Veil
from simulator import lies
from simulator.answer import Answer as Told
from simulator.answer import Call
from simulator.provider import Provider
from tests.domain.sample_contract import sample
from tests.workflows.dying import Died, Mortal
from tests.workflows.stage import PLAIN, REPORT, acting_for, stage, variant
from tests.workflows.test_steps import plain, upload

SALT = b"s" * 32
NAMES = ["ada~lovelace@example.org", ".ada@example.org", "李小龙" * 5, "ada lovelace " * 10, "Jürgen Groß", 'a"b/c d+e\\f', "a&b=c%20d"]


WHO = "planted-who-0123456789"


def named(call: Call, _args: dict[str, Json], provider: Provider) -> Told:
    """The honest answer, and who it is for."""
    honest = provider.answer(call)
    return replace(honest, headers=(*honest.headers, ("x-request-id", WHO)))


@pytest.fixture(autouse=True)
def a_provider_that_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(lies.LIES, "named", lies.Lie("Tells who asked.", lies.ANY, instead=named))


def hidden(value: str, text: str) -> str:
    return Veil(SALT, [value]).text(text)


def in_small_letters(text: str) -> str:
    return re.sub("%..", lambda found: found.group().lower(), quote(text, safe=""))


@pytest.mark.parametrize("value", NAMES)
@pytest.mark.parametrize("form", [safe_name, quote_plus, in_small_letters, lambda text: json.dumps(text)[1:-1]])
def test_a_value_is_hidden_as_a_name_an_address_or_an_escaped_text_has_it(value: str, form: Any) -> None:
    written = form(value)
    shown = hidden(value, f"parts/{written}: expected 1, found 2")
    assert shown.startswith("parts/sha256:")
    assert shown.endswith(": expected 1, found 2")
    assert written[:12] not in shown


def test_a_long_name_that_was_cut_tells_neither_the_beginning_of_a_value_nor_a_digest_of_it() -> None:
    value = "李小龙" * 3
    name = safe_name(f"{value}-of-march-and-of-april-and-more")
    assert "~" in name
    shown = hidden(value, f"the elements 1 and 2 have one name, parts/{name}")
    assert quote("李") not in shown
    assert name[-16:] not in shown
    begun = safe_name("report of " + "李小龙" * 5)
    assert quote("李") not in hidden("李小龙" * 5, begun)
    assert begun[-16:] not in hidden("李小龙" * 5, begun)
    other = safe_name("x" * 200)
    assert hidden(value, other) == other


def test_the_keys_of_what_names_a_job_are_texts_of_the_provider_too() -> None:
    veil = Veil(SALT, ["ada@example.org"])
    assert "ada@" not in str(veil.job({"id": "j-1", "owners": {"ada@example.org": [{"ada@example.org": 1}]}}))


@given(st.lists(st.text("ab~%é", min_size=4, max_size=9), min_size=1, max_size=6), st.text("ab~%é", max_size=40))
def test_no_value_is_left_in_a_text_and_the_rest_of_it_is_as_it_was(values: list[str], text: str) -> None:
    shown = Veil(SALT, values).text(text)
    left = "".join(shown.split("sha256:"))
    assert not any(value.strip() and value in shown for value in values if "sha256" not in value)
    assert shown == text or len(left) >= 64


@pytest.mark.parametrize("value", ["a" * 900 + "{}", "é" * 900 + "{}", "x" * (MAX_VALUE - 4) + "{}", "{} of many"])
def test_hiding_as_many_long_values_as_a_provider_can_send_holds_nothing_up(value: str) -> None:
    memory = Hidden()
    for answer in range(8):
        body = json.dumps({"all": [value.format(f"{answer:02d}{number:03d}") for number in range(MAX_VALUES)]}).encode()
        found = find(sample(record={"sensitive": ["body.all"]}), Answer(200, (("content-type", "application/json"),), body), Scope())
        assert sum(map(len, found.texts)) <= MAX_CHARACTERS
        assert found.whole == (sum(map(len, json.loads(body)["all"])) <= MAX_CHARACTERS)
        memory.remember(found)
    assert len(memory.texts) <= TEXTS_KEPT
    assert sum(map(len, memory.texts)) <= CHARACTERS_KEPT
    began = time.process_time()
    veil = Veil(SALT, memory.texts)
    veil.text("é" * 500 + "a" * 499 + "\N{HORIZONTAL ELLIPSIS}")
    assert time.process_time() - began < 15


async def test_what_the_answer_that_ended_the_waiting_told_is_hidden_however_many_answers_come_after_it() -> None:
    from activities.veiling import veiled
    from domain.evidence import Output, ResultOutcome
    from domain.kept import kept_bytes
    from tests.domain.test_sensitive import AT

    told = (("content-type", "application/json"),)
    answers = {
        word: kept_bytes("observe", Answer(200, told, json.dumps({"who": f"{word}@example.org"}).encode())) for word in ("first", "newer")
    }

    class Ledger:
        async def payload(self, digest: str) -> bytes:
            return answers[digest]

    def kept(word: str) -> Any:
        return SimpleNamespace(observed=SimpleNamespace(digest=word))

    case = SimpleNamespace(
        contract=sample(record={"sensitive": ["body.who"]}),
        standing=SimpleNamespace(verdict=kept("first"), renewed=kept("newer"), apart=("first", "newer"), job_id="j-1"),
        asked=SimpleNamespace(hidden=Hidden(), apart={}),
        record=SimpleNamespace(stream="op-1"),
        saved={},
        scope=lambda **_: Scope(),
    )
    world = SimpleNamespace(ledger=Ledger())
    digest = "0" * 64
    outputs = tuple(
        Output(name=f"parts/{word}%40example.org", key=f"t/op-1/{digest}", sha256=digest, size=1) for word in ("first", "newer")
    )
    fact = ResultOutcome(at=AT, actor="w", meaning="verified", outputs=outputs)
    for _ in range(2):
        shown, _hidden = await veiled(cast("Any", world), cast("Any", case), fact)
        assert "example" not in shown.model_dump_json()
        case.asked.hidden.remember(Found(tuple(f"row-{number}@example.com" for number in range(TEXTS_KEPT + 1))))


async def test_another_worker_hides_what_a_step_saved_in_the_address_that_it_goes_to(tmp_path: Path) -> None:
    second = {
        "step": "second",
        "request": {"method": "DELETE", "path": "/v1/uploads/${steps.upload.id}"},
        "answers": [{"when": {"status": 204}, "is": "done"}],
    }
    contract = plain(upload(undo=None), cast("Any", second), record={"sensitive": ["body.id"]})
    async with stage(tmp_path, work=False) as on:
        owner = acting_for("run-1")
        await on.open(contract, PLAIN)
        await owner.run(AuthorityActivities(on.world).judge, StepInput(id="op-1", turn=1))
        dying = ProviderActivities(replace(on.world, provider=Mortal(on.world.provider, 1)))
        with pytest.raises(Died):
            await owner.run(dying.create, StepInput(id="op-1", turn=2))
        await acting_for("run-1", attempt=2).run(ProviderActivities(on.world).create, StepInput(id="op-1", turn=2))
        [one] = on.books.uploads()
        assert one.removed
        intents = [entry for entry in await on.entries("intent") if entry.body.get("step") == "second"]
        assert len(intents) == 2
        assert len({json.dumps(entry.body["request"]) for entry in intents}) == 1
        assert one.id not in await recorded_entries(on)
        await on.verified()


async def recorded_entries(on: Any) -> str:
    return "\n".join(json.dumps(entry.body) for entry in await on.entries())


async def test_what_the_headers_of_a_result_tell_is_hidden_though_it_is_larger_than_an_answer_is_looked_at(tmp_path: Path) -> None:
    changes: dict[str, Any] = {
        "record": {"sensitive": ["headers.x_request_id"]},
        "http": {"limits": {"response_bytes": "2KiB"}},
    }
    async with stage(tmp_path) as on:
        on.books.lie("collect", "named")
        await on.start(variant("sim.reports.create", changes), {**REPORT, "rows": 500})
        await on.until_state("succeeded", step=0.5)
        [result] = await on.entries("result")
        http = cast("dict[str, Any]", result.body["http"])
        assert http["body_bytes"] > 2048
        assert "x-request-id" in http["headers"]
        assert WHO not in await recorded_entries(on)
        await on.verified()


async def test_an_operation_whose_hidden_values_are_gone_can_still_be_shown_verified_and_asked_for_again(tmp_path: Path) -> None:
    changes: dict[str, Any] = {
        "record": {"bodies": "keep", "sensitive": ["headers.x_request_id", "body.account"]},
        "create": {"job": {"id": "body.job_id", "who": "headers.x_request_id"}},
    }
    async with stage(tmp_path) as on:
        for kind in ("create", "observe", "collect"):
            on.books.lie(kind, "named")
        await on.start(variant("sim.reports.create", changes))
        await on.until_state("succeeded", step=0.5)
        dossier = await dossier_of(on.ledger, on.ledger_books, "op-1", on.clocks.now())
        told = await escalate(dossier, on.results, tmp_path / "told")
        assert told.faults == ()
        for path in (tmp_path / "told").rglob("*"):
            assert not path.is_file() or WHO.encode() not in path.read_bytes()
        assert await on.ledger_books.rebuild("op-1") == []
        await on.verified()


def test_a_page_of_what_a_step_saved_comes_back_as_it_was_and_one_of_before_has_none() -> None:
    page = HiddenValues(SALT, {"j-1": {"door": ("sha256:x", "d")}}, ("up_1", "\ud800"))
    assert HiddenValues.from_bytes(page.to_bytes()) == page
    assert list(page.texts()) == ["up_1", "\ud800", "d"]
    assert b"saved" not in HiddenValues(SALT).to_bytes()
    assert HiddenValues.from_bytes(HiddenValues(SALT).to_bytes()).saved == ()
