"""What `doctor` says of credentials: good only if they can be sent where contracts send them."""

import json
from pathlib import Path
from typing import Any

import pytest

from adapters.credential_checks import credential_findings
from adapters.diagnosis import Finding
from adapters.settings import Settings
from domain.contract import Contract
from tests.domain.sample_contract import sample

PLANTED = "sk-planted-0123456789"
BASE = "http://127.0.0.1:8177"
RECORD: dict[str, Any] = {"value": PLANTED, "scheme": "bearer", "account": "main", "origins": [BASE], "tenants": ["local"]}
SERVED: dict[str, Any] = {"target": {"server": {"kind": "origin"}}, "http__base": "${target.server}"}


def labels(name: str = "larder.labels.print", credential: str = "larder", **changes: Any) -> Contract:
    named = {"contract": name, "provider__name": name.partition(".")[0], "http__auth": {"bearer": credential}}
    return sample(**{"http__base": BASE, **named, **changes})


class Place:
    """A home with secrets, and what is said of them."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.secrets = home / "secrets"
        self.secrets.mkdir()

    def put(self, name: str = "larder", mode: int = 0o600, **changes: Any) -> Path:
        file = self.secrets / name
        file.write_text(json.dumps(RECORD | changes))
        file.chmod(mode)
        return file

    def say(self, *contracts: Contract, used: set[str] | None = frozenset(), sets: Any = None, **settings: Any) -> list[Finding]:  # pyright: ignore[reportArgumentType]
        found = list(credential_findings(contracts, Settings(home=self.home, tenant="local", **settings), sets or {}, used))
        assert all(one.what == "credentials" and one.level in {"good", "note"} for one in found)
        assert PLANTED not in repr(found)
        return found

    def lines(self, *contracts: Contract, **given: Any) -> list[str]:
        return [f"{one.level} {one.said}" for one in self.say(*contracts, **given)]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in (
        "TEMPORAL_ADDRESS",
        "TEMPORAL_PROFILE",
        "TEMPORAL_CONFIG_FILE",
        "SAKSHI_SECRETS_DIR",
        "SAKSHI_LEDGER_URL",
        "SAKSHI_RESULTS_URL",
    ):
        monkeypatch.delenv(name, raising=False)
    return Place(tmp_path)


def test_a_credential_that_may_go_where_its_contract_sends_it_is_good(place: Place):
    place.put()
    assert place.lines(labels()) == ["good larder is there (account main)"]


def test_one_for_another_origin_is_named_with_those_it_is_for(place: Place):
    place.put(origins=["http://localhost:8177"])
    [found] = place.say(labels())
    its = "its origins: http://localhost:8177"
    assert (found.level, found.said) == ("note", f"credential larder is not for {BASE} ({its}); used by larder.labels.print")
    assert found.hint == "the record's `origins` must list it"


def test_one_for_another_tenant_is_named_with_those_it_is_for(place: Place):
    place.put(tenants=["blue", "red"])
    assert place.lines(labels()) == [
        "note credential larder is not for the tenant local (its tenants: blue, red); used by larder.labels.print"
    ]


def test_hosts_count_too_and_a_pattern_needs_one_origin_below_it(place: Place):
    place.put(origins=[BASE, "https://*.eu.files.example"])
    hosts = {"https://*.files.example": {"bearer": "larder"}, "https://cdn.example": {"bearer": "larder"}, "https://open.example": "none"}
    [found] = place.say(labels(http__hosts=hosts))
    assert found.said.startswith("credential larder is not for https://cdn.example (its origins: ")
    place.put(origins=[BASE, "https://*.files.other.example", "https://cdn.example"])
    [found] = place.say(labels(http__hosts=hosts))
    assert found.said.startswith("credential larder is not for https://*.files.example (its origins: ")


def test_of_several_contracts_only_those_are_named_that_it_does_not_fit(place: Place):
    place.put()
    other = labels("larder.boxes.print", http__base="https://boxes.example")
    assert place.lines(labels(), other) == [
        f"note credential larder is not for https://boxes.example (its origins: {BASE}); used by larder.boxes.print"
    ]


def test_a_base_counts_with_each_target_set_that_can_be_its_own(place: Place):
    place.put(origins=["https://eu.example"])
    sets = {
        "larder": {"server": "https://eu.example"},
        "us": {"server": "https://us.example", "more": "x"},
        "prefect": {"server": "https://prefect.example"},
        "sim": {"server": "http://127.0.0.1:9"},
        "half": {"other": "x"},
        "odd": {"server": "no origin"},
    }
    elsewhere = labels("prefect.runs.create", credential="flows", **SERVED)
    place.put("flows", origins=["https://prefect.example", "https://us.example"])
    assert place.lines(labels(**SERVED), elsewhere, sets=sets) == [
        "good flows is there (account main)",
        "note credential larder is not for https://us.example (its origins: https://eu.example); used by larder.labels.print",
    ]
    assert place.lines(labels(**SERVED), sets={}) == ["good larder is there (account main)"]


def test_a_token_that_may_not_be_asked_for_makes_a_credential_no_good(place: Place):
    client: dict[str, Any] = {"scheme": "oauth2", "client_id": "c", "client_secret": PLANTED, "token_origins": ["http://login.example"]}
    record = {key: value for key, value in RECORD.items() if key != "value"} | client | {"token_url": "http://login.example/token"}
    (place.secrets / "larder").write_text(json.dumps(record))
    (place.secrets / "larder").chmod(0o600)
    contract = labels(http__auth={"oauth2": "larder"})
    [found] = place.say(contract)
    assert (found.level, found.said) == ("note", "credential larder can get no token: http://login.example is not https")
    [found] = place.say(contract, allowed_origins="http://login.example")
    assert (found.level, found.said) == (
        "good",
        "larder is there (account main, gets tokens from http://login.example by client_credentials)",
    )


def test_another_scheme_is_named_and_so_is_a_record_that_is_none(place: Place):
    place.put(scheme="header")
    assert place.lines(labels()) == ["note credential larder is header, and a contract uses it as bearer; used by larder.labels.print"]
    place.put(account="")
    [found] = place.say(labels())
    assert found.said.startswith("credential larder needs `account`")


def test_a_file_that_others_may_read_is_told_with_what_closes_it(place: Place):
    file = place.put(mode=0o644)
    good, note = place.say(labels())
    assert good.level == "good"
    assert (note.level, note.said) == ("note", "the file of larder lets others read or change it")
    assert note.hint == f"chmod 600 {file}"


def test_credentials_that_nobody_ever_needed_are_one_line_and_ones_own_is_not_among_them(place: Place):
    library = [labels(f"shop{number}.things.make", f"shop{number}") for number in range(5)]
    own, folded = place.say(*library, labels(), used={"larder.labels.print", "gone.things.make"})
    assert own.said == "credential larder is not there; used by larder.labels.print"
    assert own.hint == (
        f"set SAKSHI_CREDENTIAL_LARDER or write its record to {place.home}/secrets/larder; docs/settings.md says what a record holds"
    )
    names = "shop0, shop1, shop2, shop3, shop4"
    assert folded.said == f"5 credentials of contracts that were never used are not there: {names}"
    assert f"{place.home}/secrets/NAME" in folded.hint
    [unknown] = place.say(*library, used=None)
    assert unknown.said == f"5 credentials are not there: {names}"


def test_a_few_that_nobody_ever_needed_are_said_one_by_one(place: Place):
    assert place.lines(labels()) == ["note credential larder is not there; used by larder.labels.print"]


def test_what_is_there_and_wrong_is_said_although_nobody_needed_it_yet(place: Place):
    place.put(origins=["https://elsewhere.example"])
    library = [labels(f"shop{number}.things.make", f"shop{number}") for number in range(5)]
    first, folded = place.say(*library, labels())
    assert first.said.startswith("credential larder is not for ")
    assert "larder" not in folded.said
