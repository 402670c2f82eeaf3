import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from adapters.contract_files import ContractFolder
from domain.errors import BadInput
from domain.evidence import FileFacts, Json
from domain.fingerprint import SALT_BYTES, commitment, fingerprint, sha256_hex
from domain.language.loading import parse_contract
from domain.opening import Asked, Drawn, check_asked, check_callers_id, opening

CONTRACTS = ContractFolder(Path(__file__).parents[2] / "contracts")
AT = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
DRAWN = Drawn(salt=b"s" * SALT_BYTES, input_salt=b"i" * SALT_BYTES, trace_id="0" * 32)
INPUT: dict[str, Json] = {"account": "acct-7", "range": {"start": "2026-01-01", "end": "2026-01-31"}, "format": "csv"}
TARGET: Mapping[str, str] = {"server": "http://127.0.0.1:8090"}


def asked(**changes: object) -> Asked:
    given = Asked(CONTRACTS.get("sim.reports.create"), INPUT, TARGET, "local", "ada", key="k-1", reason="month end", account="simulator")
    return replace(given, **changes)


def test_entry_0_says_what_is_asked_of_whom_for_whom():
    opened, payloads = opening(asked(), DRAWN, at=AT)
    assert (opened.contract, opened.version, opened.tenant, opened.principal) == ("sim.reports.create", 1, "local", "ada")
    assert opened.origin == "http://127.0.0.1:8090"
    assert opened.credential == {"name": "sim", "account": "simulator"}
    assert opened.requesters == ("ada",)
    assert opened.effect["class"] == "external_write"
    assert "acct-7" in str(opened.effect["summary"])
    assert opened.salt.digest == sha256_hex(payloads[0])
    assert opened.input.ref == sha256_hex(payloads[1])


def test_the_input_stands_behind_a_commitment_and_can_be_read_back_from_its_payload():
    opened, payloads = opening(asked(), DRAWN, at=AT)
    assert opened.input.commit == commitment(payloads[1])
    assert json.loads(payloads[1][SALT_BYTES:]) == INPUT


def test_an_effect_without_optional_parts_and_a_contract_that_needs_no_account_are_opened_too():
    opened, _ = opening(asked(account=None, key=None, reason=None), DRAWN, at=AT)
    assert opened.credential == {"name": "sim"}
    assert opened.key_ is None
    assert opened.reason is None


def test_an_operation_of_a_contract_without_a_credential_names_none():
    contract = CONTRACTS.get("ogc.processes.execute")
    value: Json = {"process": "hello-world", "inputs": {"name": "x"}}
    target = dict.fromkeys(contract.target, "http://127.0.0.1:5000")
    opened, _ = opening(asked(contract=contract, input=value, target=target, account=None), DRAWN, at=AT)
    assert opened.credential.get("name") == contract.http.auth.credential


def test_the_same_ask_under_the_same_salt_has_the_same_fingerprint_and_any_change_another():
    first, _ = opening(asked(), DRAWN, at=AT)
    again, _ = opening(asked(reason="other words", key="k-2"), replace(DRAWN, input_salt=b"j" * SALT_BYTES), at=AT)
    assert first.fingerprint == again.fingerprint
    other_input, _ = opening(asked(input=INPUT | {"account": "acct-8"}), DRAWN, at=AT)
    other_target, _ = opening(asked(target={"server": "http://127.0.0.1:8091"}), DRAWN, at=AT)
    other_salt, _ = opening(asked(), replace(DRAWN, salt=b"t" * SALT_BYTES), at=AT)
    assert len({first.fingerprint, other_input.fingerprint, other_target.fingerprint, other_salt.fingerprint}) == 4


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"tenant": "a.b"}, "tenant"),
        ({"key": "with.dot"}, "key"),
        ({"key": ""}, "key"),
        ({"principal": ""}, "principal"),
        ({"principal": "a\nb"}, "principal"),
        ({"others": ("x" * 129,)}, "principal"),
        ({"reason": "r" * 1025}, "reason"),
        ({"target": {}}, "target"),
        ({"target": {"server": "ftp://x"}}, "server"),
        ({"input": INPUT | {"n": 2**53}}, "2^53"),
        ({"input": INPUT | {"format": "pdf"}}, "format"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_anything_is_made(changes: dict[str, object], words: str):
    with pytest.raises(BadInput) as refused:
        check_asked(asked(**changes))
    assert words in refused.value.message


FACTS = FileFacts(sha256="ab" * 32, bytes=10, media="application/jsonl", records=2)


def with_file(**changes: object) -> Asked:
    """An ask under a contract that takes one file."""
    wanted = {"media": "application/jsonl", "max_bytes": "10B", "max_records": 2} | changes
    document = json.loads(CONTRACTS.get("sim.reports.create").canonical) | {"files": {"rows": wanted}}
    document["effect"]["summary"] = "Send ${files.rows.records} rows, ${files.rows.sha256}"
    return asked(contract=parse_contract(document, file="changed", positions={}))


def test_files_stand_in_entry_0_in_the_effect_and_in_the_fingerprint():
    opened, _ = opening(replace(with_file(), files={"rows": FACTS}), DRAWN, at=AT)
    assert opened.body()["files"] == {"rows": {"sha256": "ab" * 32, "bytes": 10, "media": "application/jsonl", "records": 2}}
    assert opened.effect["summary"] == f"Send 2 rows, {'ab' * 32}"
    other, _ = opening(replace(with_file(), files={"rows": FACTS.model_copy(update={"sha256": "cd" * 32})}), DRAWN, at=AT)
    assert other.fingerprint != opened.fingerprint


def test_without_files_entry_0_and_the_fingerprint_are_what_they_were():
    opened, _ = opening(asked(), DRAWN, at=AT)
    assert "files" not in opened.body()
    assert opened.fingerprint == fingerprint(
        DRAWN.salt, contract=opened.contract, version=1, contract_digest=opened.contract_digest, target=TARGET, origin=opened.origin,
        credential="sim", input=INPUT, files={},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({}, "needs the file rows"),
        ({"rows": FACTS, "other": FACTS}, "takes no file other"),
        ({"rows": FACTS.model_copy(update={"bytes": 11})}, "more than 10 bytes"),
        ({"rows": FACTS.model_copy(update={"records": 3})}, "3 records"),
        ({"rows": FACTS.model_copy(update={"records": None})}, "no records that can be counted"),
    ],
)
def test_files_that_are_not_as_the_contract_names_them_are_refused(files: dict[str, FileFacts], words: str):
    with pytest.raises(BadInput, match=words):
        opening(replace(with_file(), files=files), DRAWN, at=AT)


@pytest.mark.parametrize("text", ["a", "A-1_b", "9" * 64])
def test_callers_ids_may_be_letters_digits_dash_and_underscore(text: str):
    assert check_callers_id(text, "an id") == text


@pytest.mark.parametrize("text", ["", "-a", "_a", "a.b", "a@1", "a/b", "x" * 65, "ä", "a\n"])
def test_dots_at_signs_and_whatever_else_are_not_for_callers(text: str):
    with pytest.raises(BadInput):
        check_callers_id(text, "an id")
