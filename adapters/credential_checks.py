"""What `doctor` says of credentials: which contracts want which, and whether each could be sent where they would send it.

* A credential is good if its record lets it go wherever a contract sends it, for the tenant of the settings: to the contract's base,
  under each set of target values that the contract may be run with, and to its hosts.
* A set of target values that is named like a provider is that provider's alone.
* Contracts come by the dozen and few are used: the credentials that are not there and that no operation ever needed are one line.
* Nothing that is said holds a secret. A file is named by its folder as the settings have it.
"""

import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from adapters.addresses import AddressRules, OriginPattern, parse_address, parse_origin, parse_pattern
from adapters.credential_records import Credential
from adapters.credentials import Credentials
from adapters.diagnosis import Finding
from adapters.settings import Settings, TargetSets
from domain.contract import Contract
from domain.errors import AddressError, CredentialError, SakshiError

ONE_BY_ONE = 3
"""So many that no operation ever needed are not yet too many to be said one by one."""


@dataclass(slots=True)
class Wanted:
    """One credential as contracts use it: by which, and where they send it. None stands for an address that can't be told yet."""

    places: dict[OriginPattern | None, set[str]] = field(default_factory=dict[OriginPattern | None, set[str]])

    @property
    def users(self) -> set[str]:
        """The contracts that use it, by name."""
        return set[str]().union(*self.places.values())


def credential_findings(
    contracts: Sequence[Contract], settings: Settings, sets: TargetSets, used: Collection[str] | None
) -> Iterator[Finding]:
    """All that is to be said. `used`: the contracts of which there ever was an operation; None where that can't be told."""
    credentials = Credentials(folder=settings.secrets, embedded=settings.embedded)
    rules = AddressRules(listed=frozenset(map(parse_origin, settings.allowed_origins)), loopback=settings.embedded)
    exposed: dict[Path, str] = {}
    absent: dict[str, Finding] = {}
    for (name, kind), wanted in sorted(wanted_by(contracts, sets).items()):
        try:
            said = credentials.check(name, kind)
            wrong = tuple(_wrong(credentials.record(name), wanted, settings.tenant, rules))
        except CredentialError as error:
            found = _note(error, wanted.users)
            if error.fault == "absent" and wanted.users.isdisjoint(used or ()):
                absent[name] = found
            else:
                yield found
            continue
        yield from wrong or [Finding("credentials", "good", f"{name} is there ({said})")]
        if (file := credentials.exposed(name)) is not None:
            exposed[file] = name
    for file, name in exposed.items():
        yield Finding("credentials", "note", f"the file of {name} lets others read or change it", f"chmod 600 {shlex.quote(str(file))}")
    yield from _never_needed(absent, settings.secrets, known=used is not None)


def wanted_by(contracts: Sequence[Contract], sets: TargetSets) -> Mapping[tuple[str, str], Wanted]:
    """The credentials that contracts want, by name and by how each is sent."""
    owners = {contract.provider.name for contract in contracts} | {"sim"}
    found: dict[tuple[str, str], Wanted] = {}
    for contract in contracts:
        own = {name: values for name, values in sets.items() if name == contract.provider.name or name not in owners}
        listed = ((parse_pattern(host), auth) for host, auth in contract.http.hosts.items())
        for place, auth in (*((base, contract.http.auth) for base in _bases(contract, own)), *listed):
            if auth.credential is not None:
                wanted = found.setdefault((auth.credential, auth.kind), Wanted())
                wanted.places.setdefault(place, set()).add(contract.contract)
    return found


def _bases(contract: Contract, sets: TargetSets) -> list[OriginPattern | None]:
    """The origins of the base, under every set of target values that fits; None alone where there is no such set."""
    fitting = [{name: values[name] for name in contract.target} for values in sets.values() if contract.target.keys() <= values.keys()]
    bases: list[OriginPattern | None] = []
    for values in fitting if contract.target else [dict[str, str]()]:
        try:
            bases.append(OriginPattern(parse_address(contract.base({**values})).origin, below=False))
        except SakshiError:
            continue  # `run` says what is wrong with it
    return bases or [None]


def _wrong(record: Credential, wanted: Wanted, tenant: str, rules: AddressRules) -> Iterator[Finding]:
    try:
        record.permit_tenant(tenant)
    except CredentialError as error:
        yield _note(error, wanted.users)
    for place, users in wanted.places.items():
        try:
            if place is not None:
                record.permit_any(place)
        except CredentialError as error:
            yield _note(error, users)
    if record.oauth is None:
        return
    try:
        rules.permit(record.oauth.token_address.origin)
    except AddressError as error:
        yield Finding("credentials", "note", f"credential {record.name} can get no token: {error.message}", error.hint)


def _note(error: SakshiError, users: Collection[str]) -> Finding:
    # Not wrong by itself: the command line needs none, and not every contract is used everywhere.
    return Finding("credentials", "note", f"{error.message}; used by {', '.join(sorted(users))}", error.hint)


def _never_needed(absent: Mapping[str, Finding], folder: Path, *, known: bool) -> Iterator[Finding]:
    if len(absent) <= ONE_BY_ONE:
        yield from absent.values()
        return
    of = "credentials of contracts that were never used" if known else "credentials"
    hint = f"whoever uses one sets SAKSHI_CREDENTIAL_NAME or writes {folder}/NAME; docs/settings.md says what a record holds"
    yield Finding("credentials", "note", f"{len(absent)} {of} are not there: {', '.join(absent)}", hint)
