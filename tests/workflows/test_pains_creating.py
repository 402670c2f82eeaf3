"""What people who do this job complain about when they create: each complaint, and that it does not happen here.

The project and the number of the complaint stand in a comment, so that the case can be read.
"""

from pathlib import Path

import pytest

from adapters.contract_files import ContractFolder
from domain.errors import InputInvalid
from domain.opening import Asked, check_asked
from tests.workflows.losing import create_intents, ends_with_one_job, sent
from tests.workflows.stage import REPORT, ROOT, stage, variant


# ComfyUI 16204: a POST was retried on a dropped connection; 732 submissions in a week, 426 of them billed.
async def test_a_dropped_connection_does_not_make_a_paid_request_be_sent_again(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("create", "drop_after_accepting")
        await on.start("sim.plain.create")
        await on.until(lambda one: one.standing.attention)
        await on.env.sleep(7 * 86_400)
        assert (len(sent(on)), len(on.books.jobs())) == (1, 1)
        await on.verified()


# ComfyUI 16204: only what was proven not sent may be sent again.
async def test_a_refused_connection_is_tried_again_because_nothing_was_sent(tmp_path: Path) -> None:
    async with stage(tmp_path, work=False) as on:
        record = await on.open(variant("sim.plain.create", {"http": {"base": "http://127.0.0.1:9"}, "deadlines": {"create": "30s"}}))
        async with on.working():
            await on.tell(record)
            await on.until_state("failed")
        assert {entry.cause for entry in await on.entries("exchange")} == {"exchange.not_sent"}
        assert (await on.standing()).effect == "none"
        assert len(await create_intents(on)) > 2
        await on.verified()


# comfy-python-sdk 79: the key was minted inside the retry loop, and the body was built anew.
async def test_a_retry_has_the_token_and_the_bytes_of_the_first_attempt(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("create", "drop_after_accepting", times=4)
        await on.start()
        await ends_with_one_job(on)
        assert len(sent(on)) == 5
        assert len(set(sent(on))) == 1


# Airflow 68974: the run id lived in worker memory; a crash started a second paid run and orphaned the first.
async def test_a_worker_that_dies_after_the_job_is_known_leaves_it_to_the_next_one(tmp_path: Path) -> None:
    async with stage(tmp_path, work=False) as on:
        async with on.working():
            await on.start("sim.plain.create")
            await on.soon(lambda one: one.standing.job is not None)
        job = (await on.standing()).job
        async with on.working():
            await ends_with_one_job(on)
        assert (await on.standing()).job == job
        assert len(sent(on)) == 1


# Airflow 68974: the handle is durable before anything else happens.
async def test_a_worker_that_dies_before_the_answer_came_leaves_an_intent_to_the_next_one(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        await on.tell(await on.intend_and_die("sim.listed.create"))
        await ends_with_one_job(on)
        assert [intent.generation for intent in await create_intents(on)] == [1, 2]


# Airflow 69625: a token that was fixed for ever replayed the failed run when people wanted a new one.
async def test_an_intended_retry_has_a_new_token_and_makes_a_new_job(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("create", {"word": "error_500_stored", "args": {"created": False}}, times=2)
        await on.start()
        await on.until(lambda one: one.standing.attention)
        await on.resolve("retry_create")
        await ends_with_one_job(on)
        assert len({token for token, *_ in sent(on)}) == 2


# Airflow 64828: a replayed answer was taken for the state of the job.
async def test_after_a_replayed_answer_the_jobs_own_state_is_read(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("create", "remote_failure", "drop_after_accepting", times=1)
        handle = await on.start()
        assert (await handle.result()).state == "failed"
        assert len(set(sent(on))) == 1
        assert (await on.story())[-2:] == ["exchange.accepted", "reading.terminal"]
        assert len(on.books.jobs()) == 1
        await on.verified()


# Square MCP server 31: the text of the tool told the model to invent a key.
@pytest.mark.parametrize("name", ["token", "idempotency_key", "Idempotency-Key"])
def test_whoever_plans_cannot_choose_a_token(name: str) -> None:
    contract = ContractFolder(ROOT / "contracts").get("sim.reports.create")
    asked = Asked(contract, {**REPORT, name: "mine"}, {"server": "http://127.0.0.1:1"}, "t1", "local")
    with pytest.raises(InputInvalid):
        check_asked(asked)


# fleet-sdk 135: the server answered a replay with a refusal that pointed to the job, and it was taken for a failure.
async def test_an_answer_that_points_to_the_job_of_an_earlier_sending_is_followed(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("create", "drop_after_accepting", times=1)
        await on.start("sim.named.create")
        job = await ends_with_one_job(on)
        [word] = [entry.body["word"] for entry in await on.entries("exchange") if entry.cause == "exchange.accepted"]
        assert (word, job.reads > 0) == ("exists", True)


# Prefect 6411: a token that was scoped too widely dropped the second, distinct job in silence.
async def test_two_operations_with_the_same_input_have_two_tokens_and_two_jobs(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        for stream in ("op-1", "op-2"):
            assert (await (await on.start(stream=stream)).result()).state == "succeeded"
        assert len({token for token, *_ in sent(on)}) == 2
        assert {job.token for job in on.books.jobs()} == {token for token, *_ in sent(on)}
        assert len(on.books.jobs()) == 2


# Netflix Conductor 386, 2070: a slow request was taken for a lost one by a visibility timeout, and carried out several times.
async def test_a_request_that_is_slow_beyond_every_timeout_is_not_sent_again(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("create", "hold")
        await on.start(variant("sim.plain.create", {"http": {"timeouts": {"total": "3s"}}}))
        await on.soon(lambda one: one.standing.attention)
        on.release()
        await on.env.sleep(3600)
        [attempt] = await on.entries("exchange")
        assert (attempt.cause, attempt.body["word"]) == ("exchange.ambiguous", "timeout")
        assert (len(sent(on)), len(on.books.jobs())) == (1, 1)
        await on.verified()
