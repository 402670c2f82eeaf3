"""Hiding what a contract calls sensitive, before anything is recorded of it.

* Each answer is looked through when it comes (`notice`). What was found is remembered with the operation for as long as that is in
  memory; a worker that comes to it later finds what later calls need in the ledger, and looks through the kept answer again.
* `veiled` is the one gate: whatever a provider did is recorded through `append_fact`, which calls it. It also gives the payload that keeps
  the hidden values of a job for later calls.
* An answer in which something sensitive was found, or what an earlier one gave stands in any spelling, is not kept as a body, whatever
  `record.bodies` says.
"""

import asyncio
import secrets
from collections.abc import Iterator
from typing import TypeVar, cast

from pydantic import BaseModel, JsonValue

from activities.case import Case
from activities.ports import World
from domain.errors import NotFound, Tampered
from domain.evidence import Fact, Ref, StepOutcome
from domain.exchange import Answer, Exchange
from domain.fingerprint import SALT_BYTES, sha256_hex
from domain.kept import kept_answer
from domain.sensitive import HiddenValues, find, hidden_jobs, hidden_saved
from domain.veil import Veil

M = TypeVar("M", bound=BaseModel)
F = TypeVar("F", bound=Fact)


def notice(case: Case, exchange: Exchange) -> bool:
    """Remember what is sensitive in an answer; whether anything is, and its body is not to be kept."""
    return isinstance(exchange.outcome, Answer) and _notice(case, exchange.outcome)


def _notice(case: Case, answer: Answer) -> bool:
    if not case.contract.record.sensitive:
        return False
    found = find(case.contract, answer, case.scope(call_id=case.record.stream))
    case.asked.hidden.remember(found)
    return bool(found.texts) or not found.whole or (case.contract.record.bodies == "keep" and _tells(case, answer.body))


def _tells(case: Case, body: bytes) -> bool:
    """Whether a body holds what an earlier answer gave: the expressions of the contract find nothing in an error that quotes it."""
    return Veil(bytes(SALT_BYTES), _texts(case), job_id=case.standing.job_id).stands_in(body)


def hide(case: Case, model: M) -> M:
    """A piece of evidence, or a part of one, without the values that are known to be sensitive."""
    veil = _veil(case, None)
    return veil.model(model) if veil else model


async def veiled(world: World, case: Case, fact: F) -> tuple[F, tuple[bytes, ...]]:
    """A fact as it is recorded, and the payload that it then names."""
    if not case.contract.record.sensitive:
        return fact, ()
    await _notice_kept(world, case)
    veil = _veil(case, getattr(fact, "job", None))
    case.asked.hidden.blind = False
    shown = veil.model(fact) if veil else fact
    apart = case.asked.apart
    known = {(job, name): pair for one in apart.values() for job, values in one.jobs.items() for name, pair in values.items()}
    jobs = {
        job: fresh
        for job, values in hidden_jobs(fact, shown).items()
        if (fresh := {name: pair for name, pair in values.items() if known.get((job, name)) != pair})
    }
    saved = _saved(case, fact)
    if not jobs and not saved and (apart or shown == fact):
        return shown, ()
    kept = HiddenValues(case.asked.hidden.salt, jobs, saved)
    payload = kept.to_bytes()
    ref = Ref(digest=sha256_hex(payload), size=len(payload))
    apart[ref.digest] = kept
    return shown.model_copy(update={"sensitive": ref}), (payload,)


def _saved(case: Case, fact: Fact) -> tuple[str, ...]:
    """What is sensitive in the values that a step saved: another worker sends them on, and did not see the answer that they are from."""
    if not isinstance(fact, StepOutcome) or fact.saved is None:
        return ()
    known = {text for one in case.asked.apart.values() for text in one.saved}
    found = hidden_saved(_texts(case), cast("JsonValue", dict(case.saved.get(fact.saved.digest, {}))))
    return tuple(text for text in found if text not in known)


def _veil(case: Case, job: object) -> Veil:
    hidden, apart = case.asked.hidden, case.asked.apart
    if not hidden.salt:
        hidden.salt = next((one.salt for one in apart.values()), b"") or secrets.token_bytes(SALT_BYTES)
    given = job.get("id") if isinstance(job, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    job_id = str(given) if given is not None else case.standing.job_id  # pyright: ignore[reportUnknownArgumentType]
    return Veil(hidden.salt, _texts(case), job_id=job_id, blind=hidden.blind)


def _texts(case: Case) -> Iterator[str]:
    # Copies: an answer may be looked through in a thread meanwhile.
    yield from tuple(case.asked.hidden.texts)
    for found in tuple(case.asked.hidden.read.values()):
        yield from found.texts
    for one in tuple(case.asked.apart.values()):
        yield from one.texts()


async def _notice_kept(world: World, case: Case) -> None:
    """Look through the answers that ended the waiting and renewed its addresses, which another worker may have seen come."""
    standing, hidden = case.standing, case.asked.hidden
    for kept in (standing.verdict, standing.renewed):
        ref = None if kept is None else kept.observed
        if ref is not None and ref.digest not in hidden.read and ref.digest in standing.apart:
            try:
                answer = kept_answer(await world.ledger.payload(ref.digest))[1]
            except (NotFound, Tampered):
                hidden.blind = True  # what nobody can look through any more may have held anything
                continue
            hidden.read[ref.digest] = await asyncio.to_thread(find, case.contract, answer, case.scope(call_id=case.record.stream))
        if ref is not None and ref.digest in hidden.read:
            hidden.blind = hidden.blind or not hidden.read[ref.digest].whole
