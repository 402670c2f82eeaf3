"""A contract and its cases, moved to loopback: every origin of the provider becomes one of the double's."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import urlsplit

from pydantic import JsonValue

from adapters.contract_files import cases_beside, parse_yaml
from domain.cases.models import Cases, Story
from domain.contract import Contract
from domain.errors import AddressError
from domain.language.loading import parse_contract, validated
from domain.origins import covers, origin_of, origin_pattern

_ADDRESS: Final = re.compile(r"https?://[A-Za-z0-9._-]+(?::[0-9]+)?")


@dataclass(frozen=True)
class Moved:
    """What the story is played with."""

    contract: Contract
    cases: Cases
    story: Story


@dataclass(frozen=True)
class Written:
    """A contract and the cases beside it: what the files hold, which nobody changes, and what it means."""

    document: JsonValue
    contract: Contract
    beside: JsonValue
    cases: Cases

    def story(self, name: str) -> Story:
        """The story of that name."""
        return next(story for story in self.cases.stories if story.name == name)


def written(path: Path) -> Written:
    """What is written there now. The same bytes are read once, however many stories they have."""
    return _read(path, path.read_bytes(), cases_beside(path).read_bytes())


@cache
def _read(path: Path, data: bytes, beside: bytes) -> Written:
    one, other = parse_yaml(data, str(path)), parse_yaml(beside, str(cases_beside(path)))
    contract = parse_contract(one.document, file=str(path), positions=one.positions)
    cases = validated(Cases, other.document, file=str(cases_beside(path)), positions=other.positions)
    return Written(one.document, contract, other.document, cases)


def origins_in(path: Path, story: Story) -> list[str]:
    """Every origin that the contract calls: its base, its hosts, and what its cases name below a host's pattern. The base is first."""
    there = written(path)
    contract, cases = there.contract, there.cases
    base = str(origin_of(contract.base(_target(cases, story))))
    named = set(_ADDRESS.findall(json.dumps(there.beside)))
    below = [host for host in contract.http.hosts if "*" in host]
    found = [host for host in contract.http.hosts if "*" not in host]
    found += sorted(str(origin_of(one)) for one in named if any(_covers(host, one) for host in below))
    return list(dict.fromkeys([base, *found]))


def moved(path: Path, story: Story, to: Mapping[str, str]) -> Moved:
    """The contract and the cases with `to` in place of the provider's origins."""
    there = written(path)
    contract = there.contract
    base = contract.base(_target(there.cases, story))
    document = cast("dict[str, Any]", _replaced(there.document, to))
    document["http"]["base"] = to[str(origin_of(base))] + urlsplit(base).path
    hosts = {str(name): auth for name, auth in document["http"].get("hosts", {}).items()}
    patterns = [(host, hosts[host]) for host in contract.http.hosts if "*" in host]
    for origin, ours in to.items():
        hosts.update((ours, auth) for host, auth in patterns if _covers(host, origin))
    document["http"]["hosts"] = hosts
    document["version"] = 0  # each story has other ports: a draft is pinned to no content
    beside = _replaced(there.beside, to)
    told = validated(Cases, beside, file=path.name, positions={})
    return Moved(parse_contract(document, file=path.name, positions={}), told, next(one for one in told.stories if one.name == story.name))


def _target(cases: Cases, story: Story) -> dict[str, JsonValue]:
    return dict(story.given.over(cases.example).target)


def _covers(pattern: str, address: str) -> bool:
    try:
        return covers(origin_pattern(pattern), origin_of(address))
    except AddressError:
        return False


def _replaced(node: JsonValue, to: Mapping[str, str]) -> JsonValue:
    """Every text with the origins replaced; one that goes on (`https://a.example.org` for `https://a.example`) is another."""
    match node:
        case str():
            return _ADDRESS.sub(lambda found: to.get(found[0], found[0]), node)
        case list():
            return [_replaced(one, to) for one in node]
        case dict():
            return {cast("str", _replaced(name, to)): _replaced(one, to) for name, one in node.items()}
        case _:
            return node
