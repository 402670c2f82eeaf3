"""Secrets and sensitive values that come back in another form, on the way into everything that is kept or shown."""

import base64
import json
import logging
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest

from adapters.escalation import dossier_of, escalate
from adapters.showing.entries import evidence_of
from adapters.showing.probing import probe_text
from adapters.showing.status import status_of
from adapters.showing.story import timeline
from domain.evidence import Json
from domain.exchange import Answer as Answered
from domain.exchange import AuthUse, Request
from simulator import lies
from simulator.answer import Answer, Call, told
from simulator.provider import Provider
from tests.adapters.loopback import answer, policy, provider, says, serve
from tests.probing.ground import SECRET as SECRET_OF_PROBES
from tests.probing.ground import Told, probing
from tests.replay.stories import histories
from tests.workflows.stage import REPORT, SECRET, Stage, stage, variant

MAIL = "Ada.Planted-0123@example.org"


def in_hex(text: str) -> str:
    return text.encode().hex()


def in_base64(text: str) -> str:
    return base64.b64encode(f"user:{text}!".encode()).decode()


def in_base64url(text: str) -> str:
    return base64.urlsafe_b64encode(f"\u00ff\u00ff{text}".encode()).decode()


SPELLINGS: tuple[Callable[[str], str], ...] = (
    str,
    str.upper,
    lambda text: " ".join(text),
    lambda text: "".join(f"%{ord(letter):02x}" for letter in text),
    lambda text: "".join(f"&#{ord(letter)};" for letter in text),
    lambda text: "".join(f"\\u{ord(letter):04x}" for letter in text),
    in_hex,
    lambda text: in_hex(text).upper(),
    in_base64,
    in_base64url,
    lambda text: quote(in_base64(text), safe=""),
)


def telling(text: str) -> Iterator[bytes]:
    """Parts of a text by which anybody recognises it, in each of the forms, and in base64 of them, as a history or a payload has them."""
    part = text[4:14]
    plain = [spelling(part) for spelling in SPELLINGS if spelling.__name__ not in {"in_base64", "in_base64url"}][:-1]
    parts = [form.encode() for form in plain]
    parts += [form for alphabet in (b"+/", b"-_") for form in coded(part.encode(), alphabet)]
    for form in parts:
        yield form
        yield from coded(form, b"+/")


def coded(raw: bytes, alphabet: bytes) -> Iterator[bytes]:
    """What base64 makes of bytes wherever they stand, and of nothing else."""
    for lead in range(3):
        yield base64.b64encode(bytes(lead) + raw, alphabet)[(0, 2, 3)[lead] : 8 * (lead + len(raw)) // 6]


def test_what_is_looked_for_would_be_found() -> None:
    for text in (SECRET, MAIL):
        for spelling in SPELLINGS:
            for kept in (f"a {spelling(text)} b".encode(), base64.b64encode(f"and {spelling(text)}".encode())):
                assert any(part in kept for part in telling(text)), spelling(text)


def echo(said: str, *, state: bool = False) -> Callable[[Call, dict[str, Json], Provider], Answer]:
    """A provider that tells `said`, or what it was sent, in all forms and wherever a provider can tell anything."""

    def acted(call: Call, _args: dict[str, Json], provider: Provider) -> Answer:
        honest = provider.answer(call)
        fields = honest.fields() or {}
        token = said or call.headers.get("authorization", "").removeprefix("Bearer ")
        forms = [spelling(token) for spelling in SPELLINGS]
        more: dict[str, Json] = {f"note_{number}": form for number, form in enumerate(forms)}
        more |= {"words": " and ".join(forms), "forms": list(forms), "who": in_hex(token), "cut": f"{'x' * 1000}{forms[8]}"}
        headers = (
            ("x-request-id", forms[8]),
            ("location", f"/{forms[3]}"),
            ("server", forms[1]),
            ("content-disposition", f'attachment; filename="{forms[6]}.csv"'),
            (f"{token.lower()[:40]}-request-id".replace("@", "").replace(".", ""), "1"),
        )
        if state:
            more["state"] = forms[8]
        if said:
            more["mail"] = said if call.kind == "create" else None
        body = told(honest.status, {**fields, **more})
        return replace(body, headers=(*body.headers, *headers))

    return acted


async def everything(on: Stage, folder: Path) -> dict[str, bytes]:
    """All that is kept of an operation and all that is shown of it, by what it is."""
    found: dict[str, bytes] = {}
    for number, history in enumerate(await histories(on)):
        found[f"history {number}"] = history.to_json().encode()
        found[f"events {number}"] = b"".join(event.SerializeToString() for event in history.events)
    description = await on.client.get_workflow_handle("op-1").describe()
    found["card"] = description.raw_description.SerializeToString()
    dossier = await dossier_of(on.ledger, on.ledger_books, "op-1", on.clocks.now())
    assert (await escalate(dossier, on.results, folder / "escalated")).faults == ()
    entries = await on.entries()
    found["evidence"] = json.dumps(evidence_of("op-1", entries, fold=False)).encode()
    found["story"] = timeline(entries).encode()
    found["status"] = json.dumps(status_of(dossier.record, at=on.clocks.now(), last_entry=on.clocks.now(), by="local")).encode()
    return found | files(folder)


def files(folder: Path) -> dict[str, bytes]:
    """All that lies in files, and their names."""
    there = [path for path in folder.rglob("*") if path.parent.name != "secrets"]
    named = {f"name of {path.name}": path.name.encode() for path in there}
    return named | {str(path.relative_to(folder)): path.read_bytes() for path in there if path.is_file()}


CONTRACT: dict[str, object] = {
    "record": {"bodies": "keep"},
    "create": {"job": {"id": ["body.job_id"], "who": "body.who", "forms": "body.forms"}, "token": {"window": "5m"}},
    "observe": {"poll": {"first": "30s", "cap": "30m"}, "reason": "body.words", "at": "body.note_1"},
    "errors": {"message": "body.words", "code": "body.note_6", "request_id": "headers.x_request_id"},
}
KINDS: dict[str, tuple[str, ...]] = {
    "an accepted create and readings": ("create", "observe"),
    "readings and a cancel": ("observe", "cancel"),
}


@pytest.mark.parametrize("kinds", KINDS)
async def test_a_credential_that_comes_back_in_another_form_is_kept_and_shown_nowhere(
    tmp_path: Path, kinds: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setitem(lies.LIES, "echo", lies.Lie("Tells what it was sent.", lies.ANY, instead=echo("")))
    async with stage(tmp_path) as on:
        for kind in KINDS[kinds]:
            on.books.lie(kind, "echo")  # pyright: ignore[reportArgumentType]  # one of its kinds
        handle = await on.start(variant("sim.reports.create", CONTRACT), REPORT)
        if "cancel" in KINDS[kinds]:
            await on.until_state("observing")
            await on.cancel()
        await handle.result()
        assert len(await on.entries("reading")) >= 1
        kept = await everything(on, tmp_path)
        await on.verified()
    kept["logs"] = "\n".join(f"{one.getMessage()} {one.exc_text} {one.__dict__}" for one in caplog.records).encode()
    assert any(re.fullmatch(r"escalated/bodies/.*\.bin", name) for name in kept)
    for where, data in kept.items():
        for part in telling(SECRET):
            assert part not in data, (where, part)


async def test_a_sensitive_value_that_comes_back_in_another_form_is_recorded_and_shown_nowhere(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setitem(lies.LIES, "echo", lies.Lie("Tells who it is for.", lies.ANY, instead=echo(MAIL)))
    changes = {**CONTRACT, "record": {"bodies": "keep", "sensitive": ["body.mail"]}}
    async with stage(tmp_path) as on:
        for kind in ("create", "observe"):
            on.books.lie(kind, "echo")
        handle = await on.start(variant("sim.reports.create", changes), REPORT)
        await handle.result()
        assert len(await on.entries("reading")) >= 1
        kept = await everything(on, tmp_path)
        await on.verified()
    kept["logs"] = "\n".join(f"{one.getMessage()} {one.exc_text} {one.__dict__}" for one in caplog.records).encode()
    for where, data in kept.items():
        for part in telling(MAIL):
            assert part not in data, (where, part)


def typed(said: str) -> Callable[[Call, dict[str, Json], Provider], Answer]:
    """A provider that tells it in the media type of an honest result."""

    def acted(call: Call, _args: dict[str, Json], provider: Provider) -> Answer:
        honest = provider.answer(call)
        token = said or call.headers.get("authorization", "").removeprefix("Bearer ")
        media = next(value for name, value in honest.headers if name == "content-type")
        kept = [pair for pair in honest.headers if pair[0] != "content-type"]
        told_of = "; ".join(f"n{number}={spelling(token)}" for number, spelling in enumerate(SPELLINGS[:1] + SPELLINGS[6:]))
        return replace(honest, headers=(*kept, ("content-type", f"{media}; {told_of}"), ("etag", in_base64(token))))

    return acted


@pytest.mark.parametrize("value", [SECRET, MAIL])
async def test_the_media_type_of_a_result_tells_nothing(tmp_path: Path, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    said = MAIL if value == MAIL else ""
    monkeypatch.setitem(lies.LIES, "echo", lies.Lie("Tells who it is for.", lies.ANY, instead=echo(said)))
    monkeypatch.setitem(lies.LIES, "typed", lies.Lie("Tells it in a media type.", lies.ANY, instead=typed(said)))
    changes = CONTRACT if value != MAIL else {**CONTRACT, "record": {"sensitive": ["body.mail"]}}
    async with stage(tmp_path) as on:
        on.books.lie("create", "echo")
        on.books.lie("collect", "typed")
        handle = await on.start(variant("sim.reports.create", changes), REPORT)
        assert (await handle.result()).state == "succeeded"
        [output] = (await on.entries("result"))[-1].body["outputs"]  # pyright: ignore[reportGeneralTypeIssues]
        assert str(output["media"]).startswith("text/csv; n0=")  # pyright: ignore
        kept = await everything(on, tmp_path)
    for where, data in kept.items():
        for part in telling(value):
            assert part not in data, (where, part)


PROBED: dict[str, object] = {
    "create": CONTRACT["create"],
    "observe": CONTRACT["observe"],
    "errors": CONTRACT["errors"],
}


@pytest.mark.parametrize("value", [SECRET_OF_PROBES, MAIL])
async def test_a_report_of_a_probe_tells_no_secret_in_another_form_and_no_diff_suggests_one(
    tmp_path: Path, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = MAIL if value == MAIL else ""
    for name, act in (("echo", echo(said)), ("echo_state", echo(said, state=True))):
        monkeypatch.setitem(lies.LIES, name, lies.Lie("Tells what it knows.", lies.ANY, instead=act))
    changes = PROBED if value != MAIL else {**PROBED, "record": {"sensitive": ["body.mail"]}}
    told_by = [Told("observe", "echo_state", nth=2), *(Told(kind, "echo") for kind in ("create", "observe", "cancel", "list"))]
    async with probing("sim.reports.create", tmp_path, told_by, changes=changes, seconds=12) as probed:
        shown = json.dumps(probed.report.to_json()) + probe_text(probed.report.to_json())
    assert probed.report.findings.differs
    assert "when: {body.state:" in probed.report.diff
    assert len(probed.report.findings.exchanges) > 3
    for part in telling(value):
        assert part not in shown.encode(), part
    for name, data in files(tmp_path).items():
        assert not any(part in data for part in telling(value)), name


BASIC: dict[str, tuple[str, str]] = {
    "a key for a user name, a filler for a password": ("sk-planted-0123456789:X", "sk-planted-0123456789"),
    "a password": ("ada:planted-0123456789", "planted-0123456789"),
}


@pytest.mark.parametrize("kind", BASIC)
async def test_of_user_name_and_password_what_is_the_key_is_masked(kind: str) -> None:
    pair, key = BASIC[kind]
    body = json.dumps({"you": key, "pair": pair, "sent": base64.b64encode(pair.encode()).decode(), "ada": "ada"}).encode()
    async with serve(says(answer(body))) as server, provider({"SAKSHI_CREDENTIAL_PAIR": pair}) as door:
        exchange = await door.exchange(Request("GET", f"{server.origin}/"), policy(server.origin, AuthUse("basic", "pair")))
    assert isinstance(exchange.outcome, Answered)
    shown = json.loads(exchange.outcome.body)
    assert shown == {"you": "*" * len(key), "pair": "*" * len(pair), "sent": "*" * len(shown["sent"]), "ada": "ada"}


async def test_the_name_of_a_header_tells_no_secret() -> None:
    token = "sk-planted-0123456789"
    said = answer(b"", f"{token}-request-id: 1", f"X-{token.upper()}: 2", "X-Other: 3")
    async with serve(says(said)) as server, provider({"SAKSHI_CREDENTIAL_ACME": token}) as door:
        exchange = await door.exchange(Request("GET", f"{server.origin}/"), policy(server.origin, AuthUse("bearer", "acme")))
    assert isinstance(exchange.outcome, Answered)
    names = [name for name, _ in exchange.outcome.headers]
    assert "x-other" in names
    assert not any(token in name for name in names)
    assert f"{'*' * len(token)}-request-id" in names


async def test_a_large_answer_is_masked_off_the_loop_as_a_small_one_is_on_it() -> None:
    token = "sk-planted-0123456789"
    body = json.dumps({"rows": ["x" * 1000] * 100, "sent": token.upper()}).encode()
    async with serve(says(answer(body))) as server, provider({"SAKSHI_CREDENTIAL_ACME": token}) as door:
        exchange = await door.exchange(Request("GET", f"{server.origin}/"), policy(server.origin, AuthUse("bearer", "acme")))
    assert isinstance(exchange.outcome, Answered)
    assert json.loads(exchange.outcome.body)["sent"] == "*" * len(token)
