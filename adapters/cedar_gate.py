"""The gate: Cedar judges the exact effect.

* A bundle is read and validated once. What does not validate, holds no policy, or holds a policy without an `@id` of its own is
  refused: recorded decisions name policies by `@id`, and an empty bundle would say nothing.
* Permitted means: Cedar said Allow, and no policy failed. Cedar skips a policy that fails, a `forbid` too, so an Allow beside an
  error may be an Allow against a prohibition. Whatever goes wrong is `no`; judging never raises.
* Names go to Cedar as values, never as text of its language. Roles come from the bundle; only the wholly embedded stack puts
  its own user into the role `local`.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, cast

import cedarpy

from domain.authority import Answer, Judgement, Question
from domain.errors import BadInput
from domain.evidence import Json, bounded
from domain.fingerprint import canonical, sha256_hex

_BUNDLE: Final = b"sakshi/bundle/v1\0"
_SCHEMA, _POLICIES, _ENTITIES = "schema.cedarschema", "*.cedar", "entities.json"
_CLASSES: Final = frozenset({"read", "external_write", "money", "destructive"})
_DECISIONS: Final = frozenset({"approve", "cancel", "resolve", "view", "probe"})
_MAX_MINOR: Final = 2**53 - 1

Uid = tuple[str, str]
Entity = dict[str, object]


class _Unjudgeable(Exception):
    """The question can't be put to Cedar as it stands. The text says why."""


class CedarGate:
    """`activities.ports.Gate` over one bundle. Raises BadInput, with every finding, for a bundle that does not hold."""

    def __init__(self, bundle_dir: Path, embedded: bool, local_user: str) -> None:
        files = _files(bundle_dir)
        self.files: Mapping[str, bytes] = files
        self.bundle = bundle_digest(files)
        self._embedded = embedded
        texts = {name: _text(bundle_dir, name, data) for name, data in files.items()}
        policies = "\n".join(text for name, text in texts.items() if name.endswith(".cedar"))
        entities = _entities(bundle_dir, texts[_ENTITIES])
        if embedded:
            _give_role(entities, ("User", local_user), "local")
        self._known = frozenset(uid for entity in entities if (uid := _uid(entity)) is not None)
        part = _SCHEMA
        try:
            self._schema = cedarpy.Schema.from_str(texts[_SCHEMA])
            part = _POLICIES
            self._policies = cedarpy.PolicySet.from_str(policies)
            self._messages = _check_policies(bundle_dir, policies, self._schema, len(self._policies))
            part = _ENTITIES
            self._entities = cedarpy.Entities.from_json_str(json.dumps(entities), self._schema)  # pyright: ignore[reportUnknownMemberType]
        except ValueError as error:
            raise _refuse(bundle_dir, [f"{part}: {bounded(str(error))}"]) from None

    def judge(self, question: Question) -> Judgement:
        try:
            execute, unattended = self._ask(question, ("execute", "executeUnattended"), question.principal)
        except _Unjudgeable as why:
            return self._no(str(why))
        except Exception as error:  # noqa: BLE001 - whatever goes wrong while judging is "no"
            return self._no("judging failed", errors=(type(error).__name__,))
        return self._judgement(execute, unattended, question)

    def judge_decision(self, question: Question, verb: str, person: str) -> Judgement:
        if verb not in _DECISIONS:
            return self._no(f"no policy knows the verb {bounded(verb, 64)}")
        try:
            (result,) = self._ask(question, (verb,), person)
        except _Unjudgeable as why:
            return self._no(str(why))
        except Exception as error:  # noqa: BLE001 - whatever goes wrong while judging is "no"
            return self._no("judging failed", errors=(type(error).__name__,))
        if errors := _errors([result]):
            return self._no("a policy could not be evaluated", errors=errors, policies=_ids([result]))
        if not _allows(result):
            return self._no(self._why(result, f"no policy permits {verb} by {bounded(person, 200)}"), policies=_ids([result]))
        return Judgement(answer="unattended", policies=_ids([result]), bundle=self.bundle)

    def _judgement(self, execute: cedarpy.AuthzResult, unattended: cedarpy.AuthzResult, question: Question) -> Judgement:
        if errors := _errors([execute, unattended]):
            return self._no("a policy could not be evaluated", errors=errors, policies=_ids([execute, unattended]))
        effect = f"class {question.effect.get('class')} started by {'a human' if question.started_by == 'human' else 'an agent'}"
        if not _allows(execute):
            return self._no(self._why(execute, f"no policy permits {effect}"), policies=_ids([execute]))
        if not _allows(unattended):
            why = self._why(unattended, f"no policy permits {effect} without a human")
            return self._say("needs_human", policies=_ids([execute, unattended]), why=why)
        return self._say("unattended", policies=_ids([execute, unattended]))

    def _ask(self, question: Question, actions: Sequence[str], person: str) -> list[cedarpy.AuthzResult]:
        context = _context(question, self._embedded)
        entities = self._entities.with_added_json_str(json.dumps(self._delta(question, person)), self._schema)  # pyright: ignore[reportUnknownMemberType]
        operation = {"type": "Operation", "id": question.operation}
        requests = [
            {"principal": _user(person), "action": {"type": "Action", "id": action}, "resource": operation, "context": context}
            for action in actions
        ]
        results = cedarpy.is_authorized_batch(requests, self._policies, entities, self._schema)  # pyright: ignore[reportUnknownMemberType]
        if len(results) != len(actions):
            raise _Unjudgeable("the policy engine answered another number of questions than it was asked")
        return results

    def _delta(self, question: Question, person: str) -> list[Entity]:
        """What this question adds to the bundle's entities: the operation, and persons whom the bundle does not know."""
        people = dict.fromkeys([person, question.principal, *question.requesters])
        delta: list[Entity] = [{"uid": _user(name), "attrs": {}, "parents": []} for name in people if ("User", name) not in self._known]
        attributes = {
            "tenant": question.tenant,
            "principal": {"__entity": _user(question.principal)},
            "requesters": [{"__entity": _user(name)} for name in question.requesters],
        }
        contract = {"type": "Contract", "id": question.contract_digest}
        delta.append({"uid": {"type": "Operation", "id": question.operation}, "attrs": attributes, "parents": [contract]})
        return delta

    def _why(self, result: cedarpy.AuthzResult, otherwise: str) -> str:
        """In words: the prohibitions that decided, or that nothing permits it."""
        found = [f"{name}: {self._messages[name]}" if self._messages.get(name) else name for name in _ids([result])]
        return f"forbidden by {'; '.join(found)}" if found else otherwise

    def _no(self, why: str, *, errors: tuple[str, ...] = (), policies: tuple[str, ...] = ()) -> Judgement:
        return self._say("no", policies=policies, errors=errors, why=why)

    def _say(self, answer: Answer, *, policies: tuple[str, ...], errors: tuple[str, ...] = (), why: str | None = None) -> Judgement:
        return Judgement(answer=answer, policies=policies, errors=errors, bundle=self.bundle, why=None if why is None else bounded(why))


def bundle_digest(files: Mapping[str, bytes]) -> str:
    """SHA-256 over the names and digests of a bundle's files, in the order of their names."""
    return sha256_hex(_BUNDLE + canonical([[name, sha256_hex(data)] for name, data in sorted(files.items())]))


def _allows(result: cedarpy.AuthzResult) -> bool:
    return result.decision is cedarpy.Decision.Allow and not result.diagnostics.errors


def _errors(results: Iterable[cedarpy.AuthzResult]) -> tuple[str, ...]:
    """What failed while judging. No decision at all is a failure, whether or not it comes with words."""
    found: dict[str, None] = {}
    for result in results:
        words = list(result.diagnostics.errors)
        if result.decision is cedarpy.Decision.NoDecision and not words:
            words = ["no decision"]
        found.update((bounded(word), None) for word in words)
    return tuple(found)


def _ids(results: Iterable[cedarpy.AuthzResult]) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for result in results:
        names = cast("dict[str, str]", result.diagnostics.id_annotations_by_reason)  # pyright: ignore[reportUnknownMemberType]
        found.update((names[reason], None) for reason in sorted(result.diagnostics.reasons) if reason in names)
    return tuple(found)


def _context(question: Question, embedded: bool) -> dict[str, object]:
    """The circumstances as Cedar's values. Cedar has no null and no fractions: money that is not whole is not judgeable."""
    effect = question.effect
    cls = effect.get("class")
    if cls not in _CLASSES:
        raise _Unjudgeable("the effect has no class that policy knows")
    context: dict[str, object] = {
        "class": cls,
        "summary": _words(effect, "summary") or "",
        "about": _words(effect, "resource") or "",
        "contract": question.contract,
        "contract_digest": question.contract_digest,
        "tenant": question.tenant,
        "reason": question.reason,
        "started_by": question.started_by,
        "cost_unknown": effect.get("cost") == "unknown",
        "data_leaving": _names(effect.get("data_leaving", [])),
        "embedded": embedded and question.embedded,
        "authenticated": question.authenticated,
        "now": {"__extn": {"fn": "datetime", "arg": question.now}},
    }
    if "cost" in effect and effect["cost"] != "unknown":
        context["cost"] = _money(effect["cost"], "cost", least=0)
    if "amount" in effect:
        context["amount"] = _money(effect["amount"], "amount", least=1)
    if (recipient := _words(effect, "recipient")) is not None:
        context["recipient"] = recipient
    if cls == "money" and not (context.get("recipient") and "amount" in context):
        raise _Unjudgeable("an effect of class money needs a recipient and an amount")
    return context


def _money(value: Json, name: str, *, least: int) -> dict[str, object]:
    match value:
        # `bool` is an `int` to Python, and never money.
        case {"minor": int(minor), "currency": str(currency)} if not isinstance(minor, bool) and least <= minor <= _MAX_MINOR and currency:
            return {"minor": minor, "currency": currency}
        case _:
            raise _Unjudgeable(f"the effect's {name} is not a whole number of minor units with a currency")


def _words(effect: Mapping[str, Json], name: str) -> str | None:
    if name not in effect:
        return None
    match effect[name]:
        case str(text):
            return text
        case _:
            raise _Unjudgeable(f"the effect's {name} is not text")


def _names(value: Json) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise _Unjudgeable("the effect's data_leaving is not a list of texts")
    return cast("list[str]", value)


def _user(name: str) -> dict[str, str]:
    return {"type": "User", "id": name}


def _files(folder: Path) -> dict[str, bytes]:
    """The bundle's files by name: schema, entities, and every policy file, in the order of their names."""
    try:
        names = sorted([_SCHEMA, _ENTITIES, *(path.name for path in folder.glob(_POLICIES))])
        return {name: (folder / name).read_bytes() for name in names}
    except OSError as error:
        raise _refuse(folder, [f"{Path(str(error.filename or folder)).name}: {error.strerror}"]) from None


def _text(folder: Path, name: str, data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _refuse(folder, [f"{name}: not UTF-8 at byte {error.start}"]) from None


def _entities(folder: Path, text: str) -> list[Entity]:
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _refuse(folder, [f"{_ENTITIES}: not JSON: {bounded(str(error), 200)}"]) from None
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in cast("list[object]", value)):
        raise _refuse(folder, [f"{_ENTITIES}: a list of entities was expected"])
    return cast("list[Entity]", value)


def _uid(entity: Entity) -> Uid | None:
    match entity.get("uid"):
        case {"type": str(kind), "id": str(name)} | {"__entity": {"type": str(kind), "id": str(name)}}:
            return kind, name
        case _:
            return None


def _give_role(entities: list[Entity], uid: Uid, role: str) -> None:
    """Put one user into one role, whether or not the bundle knows the user."""
    parent = {"type": "Role", "id": role}
    for entity in entities:
        if _uid(entity) == uid:
            parents = entity.get("parents")
            entity["parents"] = [*(cast("list[object]", parents) if isinstance(parents, list) else []), parent]
            return
    entities.append({"uid": {"type": uid[0], "id": uid[1]}, "attrs": {}, "parents": [parent]})


def _check_policies(folder: Path, text: str, schema: cedarpy.Schema, count: int) -> dict[str, str]:
    """Each policy's `@message` by its `@id`, of policies that fit the schema. Raises BadInput."""
    if not count:
        raise _refuse(folder, ["no policy: an empty bundle decides nothing"])
    result = cedarpy.validate_policies(text, schema)  # pyright: ignore[reportUnknownMemberType]
    names = cast("dict[str, str]", result.id_annotations_by_policy_id)  # pyright: ignore[reportUnknownMemberType]
    findings = [f"{names.get(error.policy_id, error.policy_id)}: {bounded(error.error)}" for error in result.errors]
    if findings or not result.validation_passed:
        raise _refuse(folder, findings or ["the policies do not fit the schema"])
    parsed = cast("dict[str, dict[str, dict[str, object]]]", json.loads(cedarpy.policies_to_json_str(text)))
    notes = [cast("dict[str, str | None]", policy.get("annotations") or {}) for policy in parsed["staticPolicies"].values()]
    ids = [note.get("id") or "" for note in notes]
    if "" in ids or len(set(ids)) != len(ids):
        raise _refuse(folder, ["each policy needs an @id of its own: decisions are recorded under it"])
    return {name: note.get("message") or "" for name, note in zip(ids, notes, strict=True)}


def _refuse(folder: Path, findings: Sequence[str]) -> BadInput:
    lines = [f"the policy bundle in {folder} does not hold", *(f"  {finding}" for finding in findings)]
    return BadInput("\n".join(lines), hint="README.md beside the default bundle says what a bundle consists of")
