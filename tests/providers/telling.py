"""Telling a story: the operation is opened and worked on as in production, and the double answers."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from temporalio.client import WorkflowHandle

from activities.case import Case
from activities.loading import Cases
from activities.ports import Opening, Question
from adapters.file_intake import taken_in
from domain.authority import Judgement
from domain.cases.models import Facts, Result, Story
from domain.cases.scope import Known, contents
from domain.chain import Entry
from domain.contract import Contract
from domain.evidence import Output
from domain.language.connection import Auth
from domain.language.expressions import Scope
from domain.opening import Asked, Drawn, opening
from domain.standing import FINAL, PARKED, Standing
from tests.providers.double import TOKEN_PATH, Double, double
from tests.providers.relocating import Moved, moved, origins_in, written
from tests.workflows.server_loss import story_ends
from tests.workflows.stage import Stage

TENANT = "t1"
MADE_UP = "made-up-secret"
LONGEST_STEP = 600.0
WITHIN = 180.0
"""Seconds of real time for a story, most of which take one: a bound that only matters where something hangs."""


class Consents:
    """A gate that lets everything happen: what may be done is not the story."""

    def judge(self, question: Question) -> Judgement:
        return Judgement(answer="unattended", bundle="0" * 64)

    def judge_decision(self, question: Question, verb: str, person: str) -> Judgement:
        return Judgement(answer="unattended", bundle="0" * 64)


@dataclass(frozen=True)
class Told:
    """How a story ended."""

    standing: Standing
    wrong: str | None
    left: list[str]
    causes: list[str]
    asked: list[str]
    reasons: list[str]

    def problems(self, story: Story) -> list[str]:
        """Why the story was not told: what came where what was due, and what the ledger says, which is most often why.

        Of one that was told: where the result is not what the story says.
        """
        found = [self.wrong] if self.wrong else []
        if self.standing.state != story.ends:
            found.append(f"it is {self.standing.state}, not {story.ends}")
        if self.left:
            found.append(f"nobody asked for {', '.join(map(repr, self.left))}")
        if not found:
            return list(_results(self.standing, story.result or Result()))
        said = [f"the ledger says: {reason}" for reason in self.reasons]
        return [*found, *said, f"what happened: {', '.join(self.causes)}", "what was asked:", *(f"  {one}" for one in self.asked)]


def _results(standing: Standing, result: Result) -> Iterator[str]:
    """Where the facts that the story names are not those of what was stored."""
    outputs = {output.name: output for output in standing.outputs}
    if result.model_fields_set & Facts.model_fields.keys():
        if len(outputs) == 1:
            yield from _facts(next(iter(outputs.values())), result)
        else:
            yield f"result: facts of the only output, and there are {sorted(outputs)}"
    for name, facts in result.outputs.items():
        yield from _facts(outputs[name], facts) if name in outputs else [f"result.outputs.{name}: stored were {sorted(outputs)}"]
    items = standing.items or {}
    for word, count in result.items.items():
        if items.get(word) != count:
            yield f"result.items.{word}: {count} is due, {items.get(word)} were counted"
    if result.outcome not in (None, standing.outcome):
        yield f"result.outcome: {result.outcome} is due, it is {standing.outcome}"


def _facts(output: Output, facts: Facts) -> Iterator[str]:
    found = {"records": output.records, "bytes": output.size, "sha256": output.sha256}
    for name in Facts.model_fields:
        if name in facts.model_fields_set and getattr(facts, name) != found[name]:
            yield f"{name} of {output.name}: {getattr(facts, name)} is due, stored is {found[name]}"


async def tell(on: Stage, path: Path, name: str, stream: str) -> Told:
    """Play one story of the contract to its end. One that went wrong never comes to rest: it is left as it is, and so is the stage."""
    story = written(path).story(name)
    async with double(origins_in(path, story)) as provider:
        what = moved(path, story, provider.origins)
        _credentials(on, what.contract, provider)

        async def learn() -> Known:
            return known(await Cases(on.world).load(stream, None))

        provider.plays(what, learn)
        await _open(on, what, stream)
        async with story_ends(WITHIN):
            standing = await _played(on, provider, what, stream)
        await on.verified(stream)
        if standing.state not in FINAL and provider.wrong is None:
            await _stopped(on, stream)
        entries = await on.entries(stream=stream)
        reasons = list(dict.fromkeys(reason for entry in entries for reason in _reasons(entry)))
        return Told(standing, provider.wrong, provider.script, [entry.cause for entry in entries], provider.asked, reasons)


def _reasons(entry: Entry) -> list[str]:
    """What an entry says of why: problems of a result, the provider's words, and reasons of ours."""
    found: list[object] = []
    for where in (entry.body, entry.body.get("items")):
        match where:
            case {"problems": [*problems]} | {"disagreements": [*problems]}:
                found += problems
            case _:
                pass
    match entry.body.get("words"):
        case dict() as words:
            found += [f"{name} {words[name]}" for name in ("code", "message", "reason") if words.get(name)]
        case _:
            pass
    return [f"{entry.cause}: {one}" for one in found]


async def _stopped(on: Stage, stream: str) -> None:
    """End the workflow at rest: the time-skipping server never skips again once a workflow is ended while its activity runs."""
    handle = on.client.get_workflow_handle(stream)
    async with asyncio.timeout(WITHIN):
        while await _works(handle):  # noqa: ASYNC110 - a server sets no event of ours
            await asyncio.sleep(0.02)
    await handle.terminate()


async def _works(handle: WorkflowHandle[Any, Any]) -> bool:
    described = (await handle.describe()).raw_description
    return bool(described.pending_activities) or described.HasField("pending_workflow_task")


def known(case: Case) -> Known:
    """What only this operation knows."""
    standing = case.standing
    first, last = standing.first_intent_at, standing.last_intent_at
    usual = Known()
    window = usual.window if first is None or last is None else (first, last)
    source = case.contract.create.token
    token = None if source is None or source.source else case.token(standing.generation)  # a step's is known by what the step saved
    return Known(mark=case.mark(standing.generation), token=token, operation=case.record.stream, window=window)


async def _open(on: Stage, what: Moved, stream: str) -> None:
    given = what.story.given.over(what.cases.example)
    contract = what.contract
    files = contents(contract, given, Scope(input=given.input, target=dict(given.target)))
    paths: dict[str, Path] = {}
    for name, data in files.items():
        if name in given.files:
            paths[name] = on.folder / f"{stream}-{name}"
            paths[name].write_bytes(data)
    asked = Asked(contract=contract, input=given.input, target=given.target, tenant=TENANT, principal="local")
    drawn = Drawn(stream.encode().ljust(32, b"s"), b"i" * 32, "0" * 32)
    taken = taken_in(on.results, contract, tenant=TENANT, input=given.input, target=given.target, paths=paths, stored={})
    async with taken as intake:
        evidence, payloads = opening(replace(asked, files=intake.files), drawn, at=on.clocks.now())
        await intake.keep()
    await on.tell((await on.ledger.open(Opening(stream, evidence, contract.canonical, payloads))).record)


async def _played(on: Stage, provider: Double, what: Moved, stream: str) -> Standing:
    """Let time pass until the story is told, or cannot be told any more."""
    step, still = 1.0, 0
    while True:
        standing = (await on.ledger.record(stream)).standing
        over = standing.state in FINAL | PARKED or standing.state == what.story.ends
        if provider.wrong or (standing.state == what.story.ends and not provider.script):
            return standing
        if provider.cancel_due and not provider.cancelled:
            provider.cancelled = True
            await on.cancel(stream, force=True) if what.story.force else await on.cancel(stream)
        still = still + 1 if over else 0
        if still > 20:
            return standing
        await on.pass_time(step)
        step = min(step * 1.3, LONGEST_STEP)


def _credentials(on: Stage, contract: Contract, provider: Double) -> None:
    """Records of the contract's own kinds, good for the double and nothing else."""
    for auth in (contract.http.auth, *contract.http.hosts.values()):
        if auth.credential is not None:
            path = on.folder / "secrets" / auth.credential
            path.write_text(json.dumps(_record(auth, list(provider.origins.values()))))
            path.chmod(0o600)


def _record(auth: Auth, origins: list[str]) -> dict[str, object]:
    common: dict[str, object] = {"origins": origins, "tenants": [TENANT], "account": "made-up"}
    match auth.kind:
        case "basic":
            return common | {"scheme": "basic", "username": "made-up", "password": MADE_UP}
        case "oauth2":
            token = {"token_url": origins[0] + TOKEN_PATH, "client_id": "made-up", "client_secret": MADE_UP}
            return common | {"scheme": "oauth2", **token}
        case "sigv4":
            return common | {"scheme": "sigv4", "access_key_id": "AKIAMADEUP", "secret_access_key": MADE_UP}
        case kind:
            schemes = {"headers": "header", "query": "query"}
            return common | {"scheme": schemes.get(kind, kind), "value": MADE_UP}
