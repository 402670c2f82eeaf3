"""Hiding what a contract calls sensitive, before anything is recorded of it.

* Each answer is looked through when it comes (`notice`). What was found is remembered with the operation for as long as that is in
  memory; a worker that comes to it later finds what later calls need in the ledger, and looks through the kept answer again.
* `veiled` is the one gate: whatever a provider did is recorded through `append_fact`, which calls it. It also gives the payload that keeps
  the hidden values of a job for later calls.
* An answer in which something sensitive was found is not kept as a body, whatever `record.bodies` says.
"""

import secrets
from collections.abc import Iterator
from typing import TypeVar

from pydantic import BaseModel

from activities.case import Case
from activities.ports import World
from domain.evidence import Fact, Ref
from domain.exchange import Answer, Exchange
from domain.fingerprint import SALT_BYTES, sha256_hex
from domain.kept import kept_answer
from domain.sensitive import Page, Veil, find, hidden_jobs

M = TypeVar("M", bound=BaseModel)
F = TypeVar("F", bound=Fact)


def notice(case: Case, exchange: Exchange) -> bool:
    """Remember what is sensitive in an answer; whether anything is."""
    return isinstance(exchange.outcome, Answer) and _notice(case, exchange.outcome)


def _notice(case: Case, answer: Answer) -> bool:
    if not case.contract.record.sensitive:
        return False
    found = find(case.contract, answer, case.scope(call_id=case.record.stream))
    case.asked.hidden.remember(found)
    return bool(found.texts) or not found.whole


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
    pages = case.asked.pages
    known = {(job, name): pair for page in pages.values() for job, values in page.jobs.items() for name, pair in values.items()}
    jobs = {
        job: fresh
        for job, values in hidden_jobs(fact, shown).items()
        if (fresh := {name: pair for name, pair in values.items() if known.get((job, name)) != pair})
    }
    if not jobs and (pages or shown == fact):
        return shown, ()
    page = Page(case.asked.hidden.salt, jobs)
    payload = page.to_bytes()
    ref = Ref(digest=sha256_hex(payload), size=len(payload))
    pages[ref.digest] = page
    return shown.model_copy(update={"sensitive": ref}), (payload,)


def _veil(case: Case, job: object) -> Veil:
    hidden, pages = case.asked.hidden, case.asked.pages
    if not hidden.salt:
        hidden.salt = next((page.salt for page in pages.values()), b"") or secrets.token_bytes(SALT_BYTES)
    given = job.get("id") if isinstance(job, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    job_id = str(given) if given is not None else case.standing.job_id  # pyright: ignore[reportUnknownArgumentType]
    return Veil(hidden.salt, _texts(case), job_id=job_id, blind=hidden.blind)


def _texts(case: Case) -> Iterator[str]:
    yield from case.asked.hidden.texts
    for page in case.asked.pages.values():
        yield from page.texts()


async def _notice_kept(world: World, case: Case) -> None:
    """Look through the answer that ended the waiting, where another worker saw it come."""
    verdict, hidden = case.standing.verdict, case.asked.hidden
    ref = verdict.observed if verdict is not None else None
    if ref is None or ref.digest in hidden.read or ref.digest not in case.standing.apart:
        return
    hidden.read.add(ref.digest)
    _notice(case, kept_answer(await world.ledger.payload(ref.digest))[1])
