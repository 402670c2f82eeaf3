"""Opening an operation: from what is asked to entry 0 and the payloads behind it. Pure: what is random or clock is handed in.

* Everything that can be wrong with what is asked is found here, before anything is stored or started: the target, the input
  against the contract's schema, the effect's own template, ids and names.
* Files are stored before: what is asked has their facts, one for each file that the contract names, within the contract's bounds.
* Entry 0 holds no input: it stands as a salted commitment, its bytes in `payloads`. The fingerprint commits to what is asked
  under the stream's salt; asked again, the salt of the existing stream gives the same fingerprint, and nothing else does.
* Ids that a caller gives have no dot and no `@`: those are kept for ids that are made here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import cast

from domain.contract import Contract, validate_input
from domain.effects import effect_preview
from domain.errors import BadInput
from domain.evidence import Commitment, FileFacts, Json, Opened, Ref, bounded, recordable
from domain.files import files_root
from domain.fingerprint import commitment, commitment_payload, fingerprint, requesters_of, sha256_hex
from domain.language.patterns import pattern
from domain.messages import CALLERS_ID, MAX_REASON, PERSON
from domain.rendering import origin

_CALLERS_ID = pattern(CALLERS_ID)
_PERSON = pattern(PERSON)


@dataclass(frozen=True, slots=True)
class Asked:
    """What someone asks for, parsed. `account` is the credential's account where it is known; `files` are stored already."""

    contract: Contract
    input: Json
    target: Mapping[str, str]
    tenant: str
    principal: str
    key: str | None = None
    reason: str | None = None
    account: str | None = None
    retry_of: str | None = None
    others: tuple[str, ...] = ()
    files: Mapping[str, FileFacts] = field(default_factory=dict[str, FileFacts])


@dataclass(frozen=True, slots=True)
class Drawn:
    """What was drawn for one operation: the stream's salt (an existing stream's, if there is one), the input's, a trace id."""

    salt: bytes
    input_salt: bytes
    trace_id: str


def check_callers_id(text: str, what: str) -> str:
    """`text` if a caller may use it as an id or key. Raises BadInput."""
    if not _CALLERS_ID.matches(text):
        raise BadInput(f"{what} must match {CALLERS_ID}", hint="dots and @ are kept for ids that are made here")
    return text


def check_asked(asked: Asked) -> None:
    """Everything that can be wrong with what is asked. Raises BadInput, InputInvalid, RenderError, AddressError."""
    check_callers_id(asked.tenant, "a tenant")
    if asked.key is not None:
        check_callers_id(asked.key, "a key")
    for person in (asked.principal, *asked.others):
        if not _PERSON.matches(person):
            raise BadInput("a principal is text of 1 to 128 characters without control characters")
    if asked.reason is not None and len(asked.reason) > MAX_REASON:
        raise BadInput(f"a reason has at most {MAX_REASON} characters")
    asked.contract.check_target(cast("Mapping[str, Json]", asked.target))
    validate_input(asked.contract, asked.input)


def opening(asked: Asked, drawn: Drawn, *, at: datetime) -> tuple[Opened, tuple[bytes, ...]]:
    """Entry 0 and its payloads. Raises what `check_asked` raises, and BadInput where a file is missing."""
    check_asked(asked)
    contract = asked.contract
    check_files(contract, asked.files)
    files = files_root(asked.files)
    target = cast("dict[str, Json]", dict(asked.target))
    where = origin(contract, target)
    kept = commitment_payload(drawn.input_salt, asked.input)
    opened = Opened(
        at=at,
        actor=f"human:{asked.principal}",
        key_=asked.key,
        contract=contract.contract,
        version=contract.version,
        contract_digest=contract.digest,
        facts=cast("dict[str, Json]", contract.facts().model_dump(mode="json")),
        target=dict(asked.target),
        origin=where,
        credential=_credential(asked),
        tenant=asked.tenant,
        principal=asked.principal,
        requesters=requesters_of(asked.principal, asked.others),
        reason=None if asked.reason is None else bounded(asked.reason, MAX_REASON),
        trace_id=drawn.trace_id,
        fingerprint=_fingerprint(asked, drawn.salt, where, files),
        salt=Ref(digest=sha256_hex(drawn.salt), size=len(drawn.salt)),
        input=Commitment(commit=commitment(kept), ref=sha256_hex(kept), size=len(kept)),
        effect=_effect(contract, asked.input, target, files),
        retry_of=asked.retry_of,
        files=dict(asked.files),
    )
    return opened, (drawn.salt, kept)


def _fingerprint(asked: Asked, salt: bytes, where: str, files: Mapping[str, object]) -> str:
    contract = asked.contract
    return fingerprint(
        salt,
        contract=contract.contract,
        version=contract.version,
        contract_digest=contract.digest,
        target=asked.target,
        origin=where,
        credential=contract.http.auth.credential or "",
        input=asked.input,
        files=files,
    )


def _credential(asked: Asked) -> dict[str, str]:
    """Its name and account, as far as there are any."""
    said = {"name": asked.contract.http.auth.credential, "account": asked.account}
    return {key: value for key, value in said.items() if value}


def check_files(contract: Contract, files: Mapping[str, FileFacts]) -> None:
    """Raise BadInput unless there is each file that the contract names, and no other, within the bounds that it sets."""
    for name in files:
        check_file_name(contract, name)
    for name, wanted in contract.files.items():
        facts = files.get(name)
        if facts is None:
            made = " (or what it is made of in the input)" if wanted.source else ""
            raise BadInput(f"{contract.contract} needs the file {name}{made}", hint=f"--file {name}=PATH")
        if facts.bytes > wanted.max_bytes:
            raise BadInput(f"the file {name} has more than {wanted.max_bytes} bytes, the most that {contract.contract} takes")
        if wanted.max_records is not None and facts.records is None:
            raise BadInput(f"the file {name} has no records that can be counted, and {contract.contract} bounds them")
        if wanted.max_records is not None and (facts.records or 0) > wanted.max_records:
            raise BadInput(f"the file {name} has {facts.records} records; {contract.contract} takes {wanted.max_records}")


def check_file_name(contract: Contract, name: str) -> None:
    """Raise BadInput unless the contract names such a file."""
    if name not in contract.files:
        there = f"it takes: {', '.join(contract.files)}" if contract.files else "it takes none"
        raise BadInput(f"{contract.contract} takes no file {name[:100]}", hint=there)


def _effect(contract: Contract, value: Json, target: Mapping[str, Json], files: Mapping[str, Json]) -> dict[str, Json]:
    """The effect's preview in the words of the contract language."""
    preview = effect_preview(contract, value, target, files).model_dump(mode="json", exclude_none=True)
    named = {"class" if name == "cls" else name: part for name, part in preview.items()}
    return cast("dict[str, Json]", recordable(named))
