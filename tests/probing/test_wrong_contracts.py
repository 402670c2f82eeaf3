"""An honest provider, and a contract that is wrong about it: the same questions find that out."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from adapters.addresses import AddressRules
from adapters.contract_files import load
from adapters.credentials import Credentials
from adapters.http_provider import HttpProvider
from adapters.probing.consent import consent_for
from adapters.probing.naming import Asked
from adapters.probing.probe import probe
from adapters.result_store import ObstoreResults
from simulator.serve import running
from tests.probing.ground import CONTRACTS, SECRET, WITHIN, Told, input_of, probing

REPORTS, PLAIN, LISTED, NAMED = "sim.reports.create", "sim.plain.create", "sim.listed.create", "sim.named.create"


@dataclass(frozen=True)
class Wrong:
    """What a contract says wrongly, the check that finds it, and what the suggested diff has to hold."""

    check: str
    contract: str
    replaced: Mapping[str, str]
    mend: str = ""
    told: tuple[Told, ...] = ()


WRONG = [
    Wrong(
        "create.token",
        PLAIN,
        {
            "path: /v1/plain/reports\n": 'path: /v1/plain/reports\n    headers: {Idempotency-Key: "${token}"}\n',
            "token: none": "token: {window: 24h}",
        },
        "+  token: none",
    ),
    Wrong("create.replayed", REPORTS, {'replayed: {headers.idempotent_replayed: "true"}': 'replayed: {headers.x_again: "1"}'}),
    Wrong("create.compare", NAMED, {'compare: {body.account: "${input.account}"}': 'compare: {body.account: "${input.range.end}"}'}),
    Wrong("create.taken", PLAIN, {"is: accepted}": "is: unsure}, {when: {status: 203}, is: accepted}"}),
    Wrong("status.states", REPORTS, {"    - {when: {body.state: queued}, is: waiting}\n": ""}, '{when: {body.state: queued}, is: "?"}'),
    Wrong("status.same", REPORTS, {'same: {body.job_id: ["${job.id}", ~]}': 'same: {body.account: ["${job.id}", ~]}'}),
    Wrong(
        "status.unknown",
        PLAIN,
        {"    - {when: {status: 404, phase: fresh}, is: waiting}\n    - {when: {status: [404, 410]}, is: gone}\n": "",
         "[400, 403, 404, 413, 422]": "[400, 403, 413, 422]"},
        "+    - {when: {status: 404, phase: [seen, cancelling]}, is: gone}",
    ),
    Wrong(
        "lookup.finds",
        LISTED,
        {'match: {item.reference: "${mark}"}': 'match: {item.account: "${mark}"}', "visible_within: 5s": "visible_within: 0s"},
    ),
    Wrong("lookup.absent", NAMED, {"body.error: no_such_job}, is: absent": "body.error: nowhere}, is: absent"}),
    Wrong("result.records", REPORTS, {'records: "${observed.body.rows}"': 'records: "${observed.body.size}"'}, "-    records:"),
    Wrong("result.format", REPORTS, {"format: csv\n  verify": "format: json\n  verify"}, "+  format: binary"),
    Wrong("result.content_type", PLAIN, {"content_type: application/x-ndjson": "content_type: text/plain"}, "-    content_type:"),
    Wrong("cancel.acknowledged", PLAIN, {"{when: {status: 202}, is: acknowledged}": "{when: {status: 202}, is: already_terminal}"}),
    Wrong("cancel.acknowledged", PLAIN, {"{when: {status: 202}, is: acknowledged}": "{when: {status: 299}, is: acknowledged}"}),
    Wrong(
        "cancel.finished",
        PLAIN,
        {},
        "+  destroys_finished_jobs: true",
        (Told("observe", "job_gone", nth=6), Told("observe", "job_gone", nth=7)),
    ),
    Wrong(
        "status.known",
        PLAIN,
        {"appears_within: 10s": "appears_within: 100ms"},
        "+  appears_within: ",
        (Told("observe", "never_visible", times=3),),
    ),
]  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: f"{wrong.check}-{wrong.contract}")
async def test_a_contract_that_is_wrong_is_found_out(wrong: Wrong, tmp_path: Path):
    async with probing(wrong.contract, tmp_path, wrong.told, replaced=wrong.replaced) as probed:
        assert wrong.check in probed.differs, probed.report.to_json()
        assert wrong.mend in probed.report.diff, probed.report.diff


async def test_jobs_of_a_token_that_is_none_are_cancelled(tmp_path: Path):
    async with probing(PLAIN, tmp_path, replaced=WRONG[0].replaced, polls=1000, seconds=6.0) as probed:
        assert len(probed.books.jobs()) == 2
        assert (probed.going, probed.report.left) == ([], [])


async def test_a_probe_that_is_broken_off_cancels_what_it_made(tmp_path: Path):
    path = CONTRACTS / f"{PLAIN}.yaml"
    contract, input = load(path), input_of(PLAIN, polls=1000)
    async with running() as sim:
        store = ObstoreResults(tmp_path / "files")
        asked = Asked(contract, {"server": sim.url}, "local", "ada", input)
        provider = HttpProvider(Credentials({"SAKSHI_CREDENTIAL_SIM": SECRET}, embedded=True), AddressRules(loopback=True), files=store)
        begun = asyncio.Event()
        consent = consent_for(asked, lambda credential: credential, WITHIN)

        def said(what: str) -> None:
            if what.startswith("watching"):
                begun.set()

        task = asyncio.create_task(probe(asked, consent, provider, store, file=path.name, text=path.read_text(), said=said))
        await begun.wait()
        task.cancel()
        report = await task
        await provider.aclose()
        assert report.broken_off
        assert report.left == []
        assert [job.ended for job in sim.books.jobs()] == ["cancelled"]


async def test_what_a_contract_calls_sensitive_is_not_in_the_report(tmp_path: Path):
    replaced = {"accepts:": "record: {sensitive: [body.state, body.error]}\naccepts:"}
    state = Told("observe", "unknown_state", {"state": "pat-4711-waits"}, nth=2)
    async with probing(PLAIN, tmp_path, [state], replaced=replaced) as probed:
        text = str(probed.report.to_json())
        assert "status.states" in probed.differs
        assert "pat-4711" not in text
