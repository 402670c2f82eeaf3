"""An approval names the exact action: any change of it is another hash."""

import hashlib
from typing import Any

import pytest

from domain.authority import Requirement, action_hash
from domain.errors import BadInput
from domain.fingerprint import canonical

ACTION: dict[str, Any] = {
    "ledger_id": "5ac3" * 8, "operation": "reports-1", "tenant": "default", "principal": "asha", "requesters": ("asha", "ben"),
    "contract": "sim.reports.create", "version": 1, "contract_digest": "a" * 64, "fingerprint": "f" * 64, "origin": "https://api.example",
    "credential": {"name": "acme", "account": "main"}, "effect": {"class": "external_write", "cost": {"minor": 12, "currency": "EUR"}},
    "requirement": Requirement(roles=("approver",), count=1), "round": 1, "generation": 1, "expires_at": "2026-12-01T12:00:00.000Z",
}  # fmt: skip


def hash_of(change: dict[str, Any]) -> str:
    return action_hash(**(ACTION | change))


def test_the_hash_is_the_one_that_is_documented() -> None:
    spelled = ACTION | {"requesters": ["asha", "ben"], "requirement": {"roles": ["approver"], "count": 1, "four_eyes": True}}
    assert hash_of({}) == hashlib.sha256(b"sakshi/action/v1\0" + canonical(spelled)).hexdigest()


@pytest.mark.parametrize(
    "change",
    [
        {"ledger_id": "5ac4" * 8}, {"operation": "reports-2"}, {"tenant": "other"}, {"principal": "ben"}, {"requesters": ("asha",)},
        {"requesters": ("ben", "asha")}, {"contract": "sim.reports.make"}, {"version": 2}, {"contract_digest": "b" * 64},
        {"fingerprint": "e" * 64}, {"origin": "https://api2.example"}, {"credential": {"name": "acme", "account": "other"}},
        {"credential": {"name": "other", "account": "main"}}, {"credential": {}},
        {"effect": {"class": "external_write", "cost": {"minor": 13, "currency": "EUR"}}}, {"effect": {}},
        {"requirement": Requirement(roles=("approver",), count=2)}, {"requirement": Requirement(roles=("owner",), count=1)},
        {"requirement": Requirement(roles=("approver",), count=1, four_eyes=False)}, {"round": 2}, {"generation": 2},
        {"expires_at": "2026-12-01T12:00:00.001Z"}, {"expires_at": None},
    ],
    ids=lambda change: next(iter(change)),
)  # fmt: skip
def test_any_change_of_the_action_is_another_hash(change: dict[str, Any]) -> None:
    assert hash_of(change) != hash_of({})


def test_only_name_and_account_of_a_credential_are_of_the_action() -> None:
    more = {"credential": {"account": "main", "name": "acme", "scheme": "bearer"}}
    assert hash_of(more) == hash_of({})


def test_an_effect_that_canonical_json_cannot_carry_has_no_hash() -> None:
    with pytest.raises(BadInput):
        hash_of({"effect": {"cost": 2**53}})
