"""Sensitive values are found in answers and hidden in whatever is recorded, in any form in which they may stand there."""

import base64
import json
import re
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.evidence import CancelAnswer, Check, CreateExchange, Http, Lookup, Observation, Output, Ref, ResultOutcome, Words, bounded
from domain.exchange import Answer
from domain.fingerprint import commitment, commitment_payload
from domain.language.expressions import Scope
from domain.sensitive import MAX_VALUES, Found, HiddenValues, find, hidden_jobs, real_job
from domain.veil import HIDDEN, Veil
from tests.domain.sample_contract import problems, sample

AT = datetime(2026, 11, 30, tzinfo=UTC)
SALT = b"s" * 32
MAIL = "ada@example.org"


def shown(text: str) -> str:
    return "sha256:" + commitment(commitment_payload(SALT, text))


def said(*expressions: str, body: object = None, headers: tuple[tuple[str, str], ...] = ()) -> Found:
    raw = json.dumps(body).encode()
    return find(
        sample(record={"sensitive": list(expressions)}), Answer(200, (("content-type", "application/json"), *headers), raw), Scope()
    )


def test_every_expression_counts_and_whatever_a_value_holds() -> None:
    body = {"user": {"mail": MAIL, "phones": ["0123", 4567], "vip": True, "none": None, "blank": " "}, "n": 2**70}
    found = said("body.user", "body.n", "headers.x_who", "body.nothing", body=body, headers=(("x-who", "ada"),))
    assert found == Found((MAIL, "0123", "4567", str(2**70), "ada"))


def test_what_could_not_all_be_found_is_said() -> None:
    assert not said("body[].x", body=[{"x": str(n)} for n in range(MAX_VALUES + 1)]).whole
    assert said("body[].x", body=[{"x": str(n)} for n in range(MAX_VALUES)]).whole
    assert not said("body[].[@[]][]", body=[[1]] * 100_000).whole


@pytest.mark.parametrize(
    "form",
    [
        MAIL,
        quote(MAIL, safe=""),
        f"mail of {MAIL} is unknown",
        f"/users/{quote(MAIL, safe='')}/x",
        f"{MAIL}{MAIL}",
        f"cut off {MAIL[:9]}\u2026",
    ],
)
def test_a_value_is_hidden_in_every_form(form: str) -> None:
    hidden = Veil(SALT, [MAIL]).text(form)
    assert MAIL[:6] not in hidden
    assert quote(MAIL, safe="")[:8] not in hidden


def test_what_stands_for_a_value_is_a_salted_commitment() -> None:
    veil = Veil(SALT, [MAIL, "abc", "1234"])
    assert veil.text(f"to {MAIL}") == f"to {shown(MAIL)}"
    assert veil.text("abc") == shown("abc")
    assert veil.text("the abc of it") == "the abc of it"  # too short to be looked for inside
    assert veil.tree({"a": ["abc", 1234, 12345], "b": None, "c": True}) == {"a": [shown("abc"), 1234, 12345], "b": None, "c": True}
    assert veil.job({"id": "1234", "phone": 1234, "who": [MAIL]}) == {"id": "1234", "phone": shown("1234"), "who": [shown(MAIL)]}
    assert veil.job("abc") == shown("abc")
    assert not Veil(SALT, [])
    assert Veil(b"t" * 32, [MAIL]).text(MAIL) != veil.text(MAIL)


def test_an_address_stands_without_its_query_and_the_values_in_it_by_themselves() -> None:
    address = "https://files.example/a?sig=0123456789abcdef&job=rep_1234567&n=1"
    veil = Veil(SALT, [address], job_id="rep_1234567")
    assert veil.text(f"see {address}") == "see https://files.example/a?..."
    assert veil.text("sig 0123456789abcdef of rep_1234567") == f"sig {shown('0123456789abcdef')} of rep_1234567"
    assert veil.text("https://files.example/a") == "https://files.example/a"
    assert Veil(SALT, ["https://files.example/secret-path"]).text("https://files.example/secret-path").startswith("sha256:")
    blank = "https://x.example/?x=%20%20%20%20%20%20%20%20"
    assert Veil(SALT, [blank]).text(blank) == "https://x.example/?..."
    assert Veil(SALT, ["https://[broken?x=12345678"]).text("https://[broken?x=12345678") == "https://[broken?..."


def http() -> Http:
    return Http(
        method="GET",
        url=f"https://x.example/u/{quote(MAIL, safe='')}",
        began=AT,
        ended=AT,
        headers={"location": f"/{MAIL}"},
        body_sha256="ab",
    )


FACTS: dict[str, Any] = {
    "create": CreateExchange(
        at=AT,
        actor="worker:w",
        meaning="accepted",
        job={"id": "j-1", "who": MAIL},
        http=http(),
        words=Words(reason=MAIL, request_id=f"r-{MAIL}"),
    ),
    "reading": Observation(
        at=AT, actor="w", meaning="going", remote_state=MAIL, provider_at=MAIL, began=AT, words=Words(message=MAIL, code=MAIL), http=http()
    ),
    "cancel": CancelAnswer(at=AT, actor="w", meaning="violation", violation={"why": f"of {MAIL}"}),
    "lookup": Lookup(at=AT, actor="w", meaning="candidates", candidates=({"id": "j-1", "who": MAIL}, {"id": "j-2", "who": {"mail": MAIL}})),
    "result": ResultOutcome(
        at=AT,
        actor="w",
        meaning="invalid",
        problems=(f"expected {MAIL}",),
        outputs=(
            Output(
                name=f"out/{MAIL}",
                key="t/o/ab",
                sha256="ab",
                size=1,
                checks=(Check(check="sha256", verdict="differs", expected=MAIL, found=MAIL),),
            ),
        ),
    ),
}


@pytest.mark.parametrize("kind", FACTS)
def test_every_free_text_of_a_fact_is_hidden_and_nothing_else(kind: str) -> None:
    fact = FACTS[kind]
    hidden = Veil(SALT, [MAIL, "going", "w", "accepted", "ab", "worker:w"]).model(fact)
    raw = json.dumps(hidden.body())
    assert MAIL not in raw
    assert quote(MAIL, safe="") not in raw
    assert (hidden.key, hidden.actor, hidden.at) == (fact.key, fact.actor, fact.at)
    assert type(fact).model_validate(hidden.model_dump()) == hidden


def test_a_cut_that_ends_in_something_else_stays_and_lists_are_hidden_too() -> None:
    veil = Veil(SALT, [MAIL])
    assert veil.text("cut off here\u2026") == "cut off here\u2026"
    fact = ResultOutcome(at=AT, actor="w", meaning="invalid", items={"failed": [MAIL, {"why": f"of {MAIL}"}], "n": 2})
    assert veil.model(fact).items == {"failed": [shown(MAIL), {"why": f"of {shown(MAIL)}"}], "n": 2}


def test_a_job_without_anything_to_hide_needs_nothing_kept() -> None:
    lookup = Lookup(at=AT, actor="w", meaning="candidates", candidates=({"id": "j-1", "who": MAIL}, {"id": "j-2", "who": "bo"}))
    assert set(hidden_jobs(lookup, Veil(SALT, [MAIL]).model(lookup))) == {"j-1"}


def test_where_the_values_are_not_known_all_texts_are_hidden() -> None:
    hidden = Veil(SALT, [], blind=True).model(FACTS["create"])
    assert hidden.words == Words(reason=HIDDEN, request_id=HIDDEN)
    assert hidden.job == {"id": "j-1", "who": HIDDEN}
    assert hidden.meaning == "accepted"


def test_what_later_calls_need_is_kept_by_job_and_name_and_comes_back() -> None:
    job = {"id": "j-1", "url": "https://x.example/j?sig=0123456789", "plain": "p", "big": 2**60, "list": [MAIL, 1.5]}
    fact = CreateExchange(at=AT, actor="w", meaning="accepted", job=job)  # pyright: ignore[reportArgumentType]
    hidden = Veil(SALT, [str(job["url"]), str(2**60), MAIL]).model(fact)
    page = HiddenValues(SALT, hidden_jobs(fact, hidden))
    again = HiddenValues.from_bytes(page.to_bytes())
    assert set(again.jobs["j-1"]) == {"url", "big", "list"}
    assert real_job(hidden.job, [again]) == job
    assert sorted(again.texts()) == sorted([str(job["url"]), str(2**60), MAIL, "1.5"])
    assert MAIL not in json.dumps(hidden.job)
    # Another job, and a value that a human gave in its place, stay as they are.
    assert real_job({"id": "j-2", "url": hidden.job["url"]}, [again]) == {"id": "j-2", "url": hidden.job["url"]}  # pyright: ignore[reportOptionalSubscript]
    assert real_job({"id": "j-1", "url": "https://given.example/"}, [again]) == {"id": "j-1", "url": "https://given.example/"}
    assert real_job(None, [again]) is None


def test_a_candidate_that_is_adopted_as_it_is_shown_is_the_one_that_was_hidden() -> None:
    lookup = FACTS["lookup"]
    hidden = Veil(SALT, [MAIL]).model(lookup)
    page = HiddenValues(SALT, hidden_jobs(lookup, hidden))
    assert real_job(hidden.candidates[1], [page]) == {"id": "j-2", "who": {"mail": MAIL}}


def test_a_fact_without_values_stays_what_it_is() -> None:
    fact = CancelAnswer(at=AT, actor="w", meaning="taken", sensitive=Ref(digest="ab", size=1))
    assert Veil(SALT, [MAIL]).model(fact) is fact


@given(value=st.text(min_size=4, max_size=60), around=st.text(max_size=30))
def test_whatever_the_value_nothing_raises_and_it_is_gone(value: str, around: str) -> None:
    veil = Veil(SALT, [value])
    hidden = veil.text(bounded(f"{around}{value}{around}"))
    if value.strip() and bounded(value) not in around and value not in "sha256:0123456789abcdef...":
        assert bounded(value) not in hidden or len(bounded(value)) < 4
    json.dumps(veil.tree({value: [value]}))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        lambda one: st.lists(one) | st.dictionaries(st.text(), one),
    )
)
def test_whatever_an_answer_holds_it_can_be_looked_through_and_hidden(body: object) -> None:
    found = said("body.all", body={"all": body})
    veil = Veil(SALT, found.texts, blind=not found.whole)
    json.dumps(veil.tree(body))  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("expression", ["body.job_id", "body"])
def test_the_id_of_a_job_is_never_sensitive(expression: str) -> None:
    job = {"create__job": {"id": ["body.job_id"]}}
    wanted = "anything but the job's id, which is body.job_id"
    assert ("record.sensitive.0", wanted) in problems(record={"sensitive": [expression]}, **job)
    assert problems(record={"sensitive": ["body.job_idea", "headers.x_secret"]}, **job) == []


SPELT = {
    "capitals": MAIL.upper(),
    "blanks": "ada @ example . org",
    "base64": base64.b64encode(MAIL.encode()).decode(),
    "base64 in something longer": base64.b64encode(f"user:{MAIL};".encode()).decode(),
    "base64url in an address": quote(base64.urlsafe_b64encode(f"?>{MAIL}".encode()).decode(), safe=""),
    "hexadecimal": MAIL.encode().hex(),
    "HTML": MAIL.replace("@", "&#64;"),
    "JSON": MAIL.replace("@", "\\u0040"),
}


@pytest.mark.parametrize("spelling", SPELT)
def test_a_value_is_hidden_in_every_other_spelling_and_the_rest_stays(spelling: str) -> None:
    veil = Veil(SALT, ["another value", MAIL])
    beside = "[A-Za-z0-9%]{0,7}" if "base64" in spelling else ""
    assert re.fullmatch(f"größer als {beside}{shown(MAIL)}{beside}, é", veil.text(f"größer als {SPELT[spelling]}, é"))
    assert re.fullmatch(f"größer als {beside}\u2026", veil.text(f"größer als {SPELT[spelling][:-6]}\u2026"))
    assert re.fullmatch(f"{beside}{shown(MAIL)}{beside}", veil.text(SPELT[spelling]))
    assert veil.stands_in(f'{{"é": "{SPELT[spelling]}"}}'.encode())


def test_a_short_value_is_hidden_as_it_is_alone() -> None:
    veil = Veil(SALT, ["anna b", "x"])
    assert veil.text("of anna b") == f"of {shown('anna b')}"
    coded = base64.b64encode(b"anna b").decode()
    assert veil.text(f"of ANNA B, annab, {coded}") == f"of ANNA B, annab, {coded}"
    assert veil.stands_in(b"of anna b")
    assert not veil.stands_in(f"of ANNA B, annab, {coded}".encode())
    assert not Veil(SALT, []).stands_in(b"of anna b")


def test_the_jobs_id_stands_however_it_is_spelt() -> None:
    veil = Veil(SALT, ["REP_1234567", "rep_1234567"], job_id="rep_1234567")
    assert veil.text("rep_1234567 and rep_1234567") == "rep_1234567 and rep_1234567"
    assert veil.text("of REP_1234567") == f"of {shown('REP_1234567')}"


@given(
    value=st.text(min_size=4, max_size=30),
    around=st.text(max_size=20),
    spelling=st.sampled_from([str.upper, str.swapcase, repr, json.dumps]),
)
def test_whatever_the_value_and_its_spelling_nothing_raises(value: str, around: str, spelling: Any) -> None:
    veil = Veil(SALT, [value, f"{value}%C3", around])
    for text in (spelling(value), f"{around}{spelling(value)}é", f"{around}%C3%A9\u2026", f"{value}%C3é"):
        veil.text(text).encode("utf-8", "surrogatepass")
        veil.stands_in(text.encode("utf-8", "surrogatepass"))
