"""The gate over the default bundle, over bundles that would fail open, and over bundles that do not hold."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.cedar_gate import CedarGate, bundle_digest
from domain.authority import Judgement, Question
from domain.errors import BadInput

DEFAULT = Path(__file__).resolve().parents[2] / "policies"
MONEY = {"minor": 1200, "currency": "EUR"}
Bundle = Callable[..., CedarGate]


def question(effect: dict[str, Any] | None = None, **changes: Any) -> Question:
    asked: dict[str, Any] = {
        "operation": "op-1",
        "tenant": "local",
        "principal": "ana",
        "requesters": ("ana",),
        "started_by": "human",
        "reason": "monthly report",
        "contract": "acme.reports.create",
        "contract_digest": "ab" * 32,
        "effect": {"class": "read", "resource": "account/7", "summary": "Read account 7"} | (effect or {}),
        "now": "2026-11-30T12:00:00.000Z",
        "embedded": True,
    }
    return Question(**(asked | changes))


@pytest.fixture(scope="module")
def gate() -> CedarGate:
    return CedarGate(DEFAULT, True, "ana")


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    def make(policies: str | None = None, *, schema: str | None = None, entities: str | None = None, embedded: bool = True) -> CedarGate:
        folder = tmp_path / "policies"
        shutil.copytree(DEFAULT, folder, dirs_exist_ok=True)
        for name, text in (("default.cedar", policies), ("schema.cedarschema", schema), ("entities.json", entities)):
            if text is not None:
                (folder / name).write_text(text, "utf-8")
        return CedarGate(folder, embedded, "ana")

    return make


PERMIT_ALL = '@id("all") permit (principal, action, resource);\n'

BY_CLASS = [
    ("read", "human", "unattended"),
    ("read", "agent", "unattended"),
    ("external_write", "human", "unattended"),
    ("external_write", "agent", "no"),
    ("money", "human", "no"),
    ("money", "agent", "no"),
    ("destructive", "human", "no"),
    ("destructive", "agent", "no"),
]


@pytest.mark.parametrize("embedded", [True, False])
@pytest.mark.parametrize(("cls", "started_by", "answer"), BY_CLASS)
def test_the_default_bundle_answers_by_class_and_by_who_started(cls: str, started_by: str, answer: str, embedded: bool) -> None:
    gate = CedarGate(DEFAULT, embedded, "ana")
    asked = question({"class": cls, "amount": MONEY, "recipient": "IBAN 1"}, started_by=started_by, embedded=embedded)
    said = gate.judge(asked)
    assert said.answer == answer
    assert said.bundle == gate.bundle
    assert said.policies
    assert (said.why is None) == (answer == "unattended")


@pytest.mark.parametrize(
    ("person", "verb", "embedded", "yes"),
    [
        ("ana", "cancel", True, True),
        ("ana", "resolve", True, True),
        ("ana", "view", True, True),
        ("ana", "approve", True, False),
        ("ana", "cancel", False, False),
        ("ana", "resolve", False, False),
        ("temporal-ui", "cancel", True, True),
        ("temporal-ui", "resolve", True, False),
        ("temporal-ui", "view", True, False),
        ("temporal-ui", "cancel", False, False),
        ("ben", "cancel", True, False),
        ('ana", "x', "cancel", True, False),
        ("ana", "execute", True, False),
        ("ana", "executeUnattended", True, False),
        ("ana", "delete everything", True, False),
        ("ana", "", True, False),
    ],
)
def test_the_default_bundle_lets_the_local_user_decide_and_the_temporal_ui_cancel(
    person: str, verb: str, embedded: bool, yes: bool
) -> None:
    said = CedarGate(DEFAULT, embedded, "ana").judge_decision(question(embedded=embedded), verb, person)
    assert said.answer == ("unattended" if yes else "no")
    assert bool(said.policies) == yes
    assert (said.why is None) == yes


PROBED = [
    *(
        (cls, "human", person, embedded, True)
        for cls in ("read", "external_write")
        for person in ("ana", "ben")
        for embedded in (True, False)
    ),
    *((cls, "human", "ana", True, False) for cls in ("money", "destructive")),
    *((cls, "human", "ben", True, False) for cls in ("money", "destructive")),
    *((cls, "human", "ana", False, False) for cls in ("money", "destructive")),
    *((cls, "agent", "ana", True, False) for cls in ("read", "external_write", "money", "destructive")),
]


@pytest.mark.parametrize(("cls", "started_by", "person", "embedded", "yes"), PROBED)
def test_the_default_bundle_lets_persons_probe_what_it_lets_them_run_and_agents_nothing(
    cls: str, started_by: str, person: str, embedded: bool, yes: bool
) -> None:
    asked = question({"class": cls, "amount": MONEY, "recipient": "IBAN 1"}, started_by=started_by, embedded=embedded)
    said = CedarGate(DEFAULT, embedded, "ana").judge_decision(asked, "probe", person)
    assert said.answer == ("unattended" if yes else "no")
    assert (said.why is None) == yes


def test_a_bundle_that_does_not_know_a_probe_permits_none(bundle: Bundle) -> None:
    schema = (DEFAULT / "schema.cedarschema").read_text("utf-8").replace(", view, probe", ", view")
    said = bundle(PERMIT_ALL, schema=schema).judge_decision(question(), "probe", "ana")
    assert said.answer == "no"


@pytest.mark.parametrize(("gate_embedded", "asked_embedded"), [(True, False), (False, True)])
def test_a_stack_is_embedded_only_if_gate_and_question_say_so(gate_embedded: bool, asked_embedded: bool) -> None:
    gate = CedarGate(DEFAULT, gate_embedded, "ana")
    assert gate.judge_decision(question(embedded=asked_embedded), "cancel", "temporal-ui").answer == "no"


def test_a_denial_says_which_prohibition_decided_and_in_whose_words(gate: CedarGate) -> None:
    said = gate.judge(question({"class": "destructive"}))
    assert said.policies == ("no-destruction",)
    assert said.why == "forbidden by no-destruction: This bundle lets no operation or probe destroy anything."


def test_a_denial_without_a_prohibition_says_that_nothing_permits_it(bundle: Bundle) -> None:
    gate = bundle('@id("reads") permit (principal, action, resource) when { context.class == "read" };')
    said = gate.judge(question({"class": "external_write"}))
    assert (said.answer, said.policies) == ("no", ())
    assert said.why == "no policy permits class external_write started by a human"


def test_a_policy_may_ask_for_a_human(bundle: Bundle) -> None:
    gate = bundle('@id("with-approval") permit (principal, action == Action::"execute", resource);')
    said = gate.judge(question({"class": "money", "amount": MONEY, "recipient": "IBAN 1"}))
    assert said.answer == "needs_human"
    assert said.policies == ("with-approval",)
    assert said.why == "no policy permits class money started by a human without a human"


def test_unattended_without_execute_is_a_denial(bundle: Bundle) -> None:
    gate = bundle('@id("odd") permit (principal, action == Action::"executeUnattended", resource);')
    assert gate.judge(question()).answer == "no"


def test_a_prohibition_that_fails_while_it_is_evaluated_denies(bundle: Bundle) -> None:
    trap = '@id("cap") forbid (principal, action, resource) when { context has cost && context.cost.minor * 1000000 > 5 };'
    gate = bundle(PERMIT_ALL + trap)
    assert gate.judge(question()).answer == "unattended"
    said = gate.judge(question({"cost": {"minor": 2**53 - 1, "currency": "EUR"}}))
    assert said.answer == "no"
    assert said.errors
    decided = gate.judge_decision(question({"cost": {"minor": 2**53 - 1, "currency": "EUR"}}), "cancel", "ana")
    assert decided.answer == "no"
    assert decided.errors


def test_a_failure_in_the_question_for_unattended_alone_denies(bundle: Bundle) -> None:
    trap = '@id("cap") forbid (principal, action == Action::"executeUnattended", resource) when { context.cost.minor * 1000000 > 5 };'
    gate = bundle(PERMIT_ALL + trap.replace("context.cost.minor", "(if context has cost then context.cost.minor else 0)"))
    assert gate.judge(question({"cost": {"minor": 2**53 - 1, "currency": "EUR"}})).answer == "no"


def test_an_attribute_that_is_not_there_denies(bundle: Bundle) -> None:
    policy = '@id("all") permit (principal, action, resource) when { resource.principal.team == "x" };'
    schema = (
        (DEFAULT / "schema.cedarschema").read_text("utf-8").replace("entity User in [Role];", "entity User in [Role] { team: String };")
    )
    said = bundle(policy, schema=schema, entities="[]", embedded=False).judge(question(principal="nobody", requesters=()))
    assert said.answer == "no"


@pytest.mark.parametrize("now", ["", "yesterday", "2026-11-30"[:7], "\ud800"])
def test_no_decision_is_a_denial(gate: CedarGate, now: str) -> None:
    said = gate.judge(question(now=now))
    assert said.answer == "no"
    assert said.errors
    assert gate.judge_decision(question(now=now), "cancel", "ana").answer == "no"


@pytest.mark.parametrize("name", ["cost", "amount"])
@pytest.mark.parametrize(
    "money",
    [
        None,
        "12",
        12,
        12.0,
        True,
        [],
        {},
        {"minor": 12},
        {"currency": "EUR"},
        {"minor": "12", "currency": "EUR"},
        {"minor": 12.0, "currency": "EUR"},
        {"minor": 12.5, "currency": "EUR"},
        {"minor": True, "currency": "EUR"},
        {"minor": None, "currency": "EUR"},
        {"minor": -1, "currency": "EUR"},
        {"minor": 2**53, "currency": "EUR"},
        {"minor": 12, "currency": ""},
        {"minor": 12, "currency": None},
        {"minor": 12, "currency": 978},
    ],
)
def test_money_that_is_not_whole_minor_units_of_a_currency_denies(bundle: Bundle, name: str, money: Any) -> None:
    said = bundle(PERMIT_ALL).judge(question({name: money}))
    assert said.answer == "no"
    assert said.why is not None
    assert name in said.why


@pytest.mark.parametrize(
    ("effect", "answer"),
    [
        ({"amount": MONEY, "recipient": "IBAN 1"}, "unattended"),
        ({"amount": {"minor": 1, "currency": "EUR"}, "recipient": "IBAN 1"}, "unattended"),
        ({"amount": {"minor": 0, "currency": "EUR"}, "recipient": "IBAN 1"}, "no"),
        ({"amount": MONEY}, "no"),
        ({"amount": MONEY, "recipient": ""}, "no"),
        ({"amount": MONEY, "recipient": None}, "no"),
        ({"amount": MONEY, "recipient": 7}, "no"),
        ({"recipient": "IBAN 1"}, "no"),
    ],
)
def test_class_money_needs_recipient_and_amount(bundle: Bundle, effect: dict[str, Any], answer: str) -> None:
    assert bundle(PERMIT_ALL).judge(question({"class": "money"} | effect)).answer == answer


def test_a_cost_that_is_unknown_is_told_apart_from_none_and_from_free(bundle: Bundle) -> None:
    gate = bundle('@id("free") permit (principal, action, resource) when { !context.cost_unknown && !(context has cost) };')
    assert gate.judge(question()).answer == "unattended"
    assert gate.judge(question({"cost": "unknown"})).answer == "no"
    assert gate.judge(question({"cost": {"minor": 0, "currency": "EUR"}})).answer == "no"
    assert bundle(PERMIT_ALL).judge(question({"cost": {"minor": 0, "currency": "EUR"}})).answer == "unattended"


@pytest.mark.parametrize(
    "effect",
    [
        {"class": "harmless"},
        {"class": None},
        {"class": ["read"]},
        {"data_leaving": "account id"},
        {"data_leaving": [1]},
        {"data_leaving": None},
        {"summary": 7},
        {"resource": {}},
    ],
)
def test_an_effect_that_policy_cannot_read_denies(bundle: Bundle, effect: dict[str, Any]) -> None:
    gate = bundle(PERMIT_ALL)
    assert gate.judge(question(effect)).answer == "no"
    assert gate.judge_decision(question(effect), "approve", "ana").answer == "no"


def test_names_are_values_and_never_policy_text(bundle: Bundle) -> None:
    gate = bundle('@id("ana-only") permit (principal == User::"ana", action, resource);')
    assert gate.judge(question()).answer == "unattended"
    for name in ('ana" || true || "', 'x", User::"ana', "ana\n", "ana\0", "Ana", "", 'User::"ana"'):
        assert gate.judge(question(principal=name, requesters=(name,))).answer == "no", name


def test_circumstances_reach_the_policies(bundle: Bundle) -> None:
    gate = bundle(
        """@id("exact") permit (principal, action, resource) when {
          context.tenant == "local" && resource.tenant == "local" && context.reason == "monthly report"
          && context.contract == "acme.reports.create" && context.about == "account/7" && context.summary == "Read account 7"
          && context.data_leaving.containsAll(["account id"]) && context.recipient == "ops@x.example" && !context.authenticated
          && context.now < datetime("2026-12-01") && resource in Contract::"%s" && resource.requesters.contains(User::"ben")
        };""".replace("context.recipient ==", "context has recipient && context.recipient ==").replace("%s", "ab" * 32)
    )
    effect = {"data_leaving": ["account id", "name"], "recipient": "ops@x.example"}
    asked = question(effect, requesters=("ana", "ben"))
    assert gate.judge(asked).answer == "unattended"
    assert gate.judge(asked.model_copy(update={"authenticated": True})).answer == "no"
    assert gate.judge(asked.model_copy(update={"now": "2026-12-02T00:00:00.000Z"})).answer == "no"


def test_a_bundle_may_approve_contracts_by_digest(bundle: Bundle) -> None:
    entities = [
        {"uid": {"type": "Contract", "id": "ab" * 32}, "attrs": {}, "parents": [{"type": "ContractSet", "id": "approved"}]},
        {"uid": {"type": "ContractSet", "id": "approved"}, "attrs": {}, "parents": []},
    ]
    gate = bundle('@id("approved") permit (principal, action, resource in ContractSet::"approved");', entities=json.dumps(entities))
    assert gate.judge(question()).answer == "unattended"
    assert gate.judge(question(contract_digest="cd" * 32)).answer == "no"


def test_roles_come_from_the_bundle_also_for_the_local_user(bundle: Bundle) -> None:
    entities = [
        {"uid": {"type": "User", "id": "ana"}, "attrs": {}, "parents": [{"type": "Role", "id": "operator"}]},
        {"uid": {"__entity": {"type": "User", "id": "ben"}}, "attrs": {}, "parents": []},
        {"uid": {"type": "Role", "id": "operator"}, "attrs": {}, "parents": []},
    ]
    policy = """@id("both") permit (principal in Role::"operator", action, resource) when { principal in Role::"local" };"""
    assert bundle(policy, entities=json.dumps(entities)).judge(question(requesters=("ben",))).answer == "unattended"
    assert bundle(policy, entities=json.dumps(entities), embedded=False).judge(question()).answer == "no"


BROKEN = [
    ("no policy at all", {"policies": "// nothing\n"}, "no policy"),
    ("an attribute that the schema does not have", {"policies": PERMIT_ALL.replace(";", " when { context.nope };")}, "nope"),
    ("an action that the schema does not have", {"policies": '@id("x") permit (principal, action == Action::"fly", resource);'}, "fly"),
    ("an optional attribute read without a question", {"policies": PERMIT_ALL.replace(";", " when { context.cost.minor < 5 };")}, "cost"),
    ("a syntax error", {"policies": "permit ("}, "unexpected end"),
    ("a policy without an id", {"policies": "permit (principal, action, resource);"}, "@id"),
    ("a policy with an empty id", {"policies": '@id("") permit (principal, action, resource);'}, "@id"),
    ("two policies of one id", {"policies": PERMIT_ALL * 2}, "@id"),
    ("a template alone", {"policies": '@id("t") permit (principal == ?principal, action, resource);'}, "no policy"),
    ("a broken schema", {"schema": "entity {"}, "schema"),
    ("entities that are not JSON", {"entities": "[{"}, "not JSON"),
    ("entities nested without end", {"entities": "[" * 100_000}, "not JSON"),
    ("entities that are not a list", {"entities": "{}"}, "a list of entities"),
    ("an entity that is not a map", {"entities": "[1]"}, "a list of entities"),
    ("an entity without a uid", {"entities": '[{"attrs": {}, "parents": []}]'}, "entit"),
    ("an entity of an unknown type", {"entities": '[{"uid": {"type": "Robot", "id": "r"}, "attrs": {}, "parents": []}]'}, "entit"),
]


@pytest.mark.parametrize(("change", "says"), [case[1:] for case in BROKEN], ids=[case[0] for case in BROKEN])
def test_a_bundle_that_does_not_hold_is_refused_with_what_is_wrong(bundle: Bundle, change: dict[str, str], says: str) -> None:
    with pytest.raises(BadInput) as refused:
        bundle(**change)
    assert says in refused.value.message
    assert refused.value.hint


def test_a_bundle_with_a_file_missing_or_unreadable_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"entities\.json"):
        CedarGate(tmp_path / "nowhere", True, "ana")
    folder = shutil.copytree(DEFAULT, tmp_path / "policies")
    (folder / "default.cedar").write_bytes(b"\xff")
    with pytest.raises(BadInput, match="not UTF-8"):
        CedarGate(folder, True, "ana")
    (folder / "default.cedar").unlink()
    with pytest.raises(BadInput, match="no policy"):
        CedarGate(folder, True, "ana")


def test_the_digest_of_a_bundle_changes_with_any_of_its_files(bundle: Bundle) -> None:
    first = bundle()
    assert first.bundle == CedarGate(DEFAULT, False, "ben").bundle == bundle_digest(first.files)
    assert len({first.bundle, bundle(PERMIT_ALL).bundle, bundle(entities="[]").bundle}) == 3


def test_an_engine_that_breaks_is_a_denial(gate: CedarGate, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> object:
        raise RuntimeError("secret")

    monkeypatch.setattr("adapters.cedar_gate.cedarpy.is_authorized_batch", broken)
    for said in (gate.judge(question()), gate.judge_decision(question(), "cancel", "ana")):
        assert (said.answer, said.errors) == ("no", ("RuntimeError",))
        assert "secret" not in said.model_dump_json()


def test_an_engine_that_answers_another_number_of_questions_is_a_denial(gate: CedarGate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adapters.cedar_gate.cedarpy.is_authorized_batch", lambda *_: [])
    assert gate.judge(question()).answer == "no"
    assert gate.judge_decision(question(), "cancel", "ana").answer == "no"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
KEYS = st.sampled_from(["class", "cost", "amount", "recipient", "data_leaving", "summary", "resource", "x"])


@given(effect=st.dictionaries(KEYS, JSON, max_size=6), person=st.text(), verb=st.text(), now=st.text())
def test_judging_never_raises_and_never_permits_by_accident(effect: dict[str, Any], person: str, verb: str, now: str) -> None:
    gate = _SHARED
    asked = question(now=now).model_copy(update={"effect": effect, "principal": person, "requesters": (person,), "tenant": person})
    for said in (gate.judge(asked), gate.judge_decision(asked, verb, person), gate.judge_decision(asked, "approve", person)):
        assert isinstance(said, Judgement)
        assert said.answer == "no"


_SHARED = CedarGate(DEFAULT, True, "ana")
