"""A credential that can't be sent: nothing leaves, and whoever looks reads the one reason that holds, and no secret."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

import pytest

from activities.recording import unanswered
from domain.errors import CredentialFault
from domain.exchange import NoAnswer
from tests.workflows.stage import SECRET, stage

FAULTS: dict[str, tuple[dict[str, object] | None, str]] = {
    "not there": (None, "the credential is not there; `doctor`"),
    "not a record": ({"origins": "x"}, "the record of the credential can't be used; `doctor`"),
    "for another origin": ({"origins": ["https://elsewhere.example"]}, "the credential is not for http://127.0.0.1:"),
    "for another tenant": ({"tenants": ["another"]}, "the credential is not for this tenant; `doctor`"),
    "of another scheme": ({"scheme": "header"}, "the credential is of another scheme than the contract's; `doctor`"),
}


@pytest.mark.parametrize("name", FAULTS)
async def test_why_a_credential_was_not_sent_is_one_reason_and_mending_it_goes_on(tmp_path: Path, name: str) -> None:
    change, told = FAULTS[name]
    async with stage(tmp_path) as on:
        file = on.folder / "secrets" / "sim"
        good = file.read_text()
        if change is None:
            file.unlink()
        else:
            file.write_text(json.dumps(json.loads(good) | change))
        handle = await on.start()
        record = await on.soon(lambda one: one.standing.why is not None and "nothing was sent" in one.standing.why)
        assert str(record.standing.why).startswith(f"nothing was sent: {told}")
        assert SECRET not in str(record.standing.why)
        assert on.books.requests() == []
        file.write_text(good)
        assert (await handle.result()).state == "succeeded"
        await on.verified()


def test_every_fault_has_words_of_its_own():
    now = datetime(2026, 11, 30, tzinfo=UTC)
    outcomes = [NoAnswer("credential", sent=False, fault=fault, origin="https://x.example") for fault in get_args(CredentialFault)]
    told = {unanswered(outcome, now).reason for outcome in (*outcomes, NoAnswer("credential", sent=False))}
    assert len(told) == len(get_args(CredentialFault)) + 1
    assert all(str(reason).startswith("nothing was sent: the ") for reason in told)
    assert any("is not for https://x.example" in str(reason) for reason in told)
