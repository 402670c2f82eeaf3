"""What must hold in every cell, whatever was expected of it, and then what was expected of it.

* A state is a fact of the provider's books: `succeeded` has the very bytes, `cancelled` and `failed` a job that ended so, or none.
* Every create in the books has an intent that is older, and one generation never sends two things.
* Each is a sentence about what is wrong; nothing wrong is no sentence.
"""

import json
import zlib
from collections.abc import Iterator
from itertools import chain

from domain.evidence import Intent, Json
from simulator.jobs import Job
from tests.matrix.oracle import expected
from tests.matrix.playing import Left
from tests.workflows.stage import REPORT


def faults(left: Left) -> list[str]:
    """Everything that is wrong with a cell."""
    found = list(chain(_facts(left), _sendings(left), _expectations(left)))
    return [f"{left.cell.name}: {one}; {' '.join(left.story)}" for one in found]


def _facts(left: Left) -> Iterator[str]:
    standing, books = left.standing, left.stage.books
    job = books.provider.find(str(standing.job["id"])) if standing.job else None
    if standing.job is not None and job is None:
        yield f"it has a job that the books do not know: {standing.job}"
    match standing.state:
        case "succeeded":
            if left.result != _true_result(left, job):
                yield "what is kept is not what the provider made"
        case "cancelled" | "failed" as state:
            if books.jobs() and (job is None or job.ended != state):
                yield f"{state} is not what the books say: {[one.ended for one in books.jobs()]}"
        case _:
            if not standing.attention:
                yield f"it rests in {standing.state} and nobody is asked"
    if standing.effect == "none" and books.jobs():
        yield "it says that nothing was made, and something was"


def _true_result(left: Left, job: Job | None) -> bytes | None:
    if not left.cell.kind.at_once:
        return None if job is None or job.ended != "succeeded" else b"".join(job.report.pieces())
    if left.result is None:
        return None
    told = json.loads(left.result)
    span: dict[str, Json] = REPORT["range"]  # pyright: ignore[reportAssignmentType]
    count = zlib.crc32(f"{REPORT['account']}|{span['start']}|{span['end']}".encode()) % 10_000
    return left.result if (told["account"], told["count"]) == (REPORT["account"], count) else None


def _sendings(left: Left) -> Iterator[str]:
    sent = [one for one in left.stage.books.requests() if one.kind in ("create", "read")]
    intents = [entry.evidence for entry in left.entries if isinstance(entry.evidence, Intent) and entry.evidence.meaning == "create"]
    if len(sent) > len(intents):
        yield f"{len(sent)} creates were sent for {len(intents)} intents"
    bytes_by_generation = {(one.generation, one.request.body_sha256) for one in intents if one.request}
    if len(bytes_by_generation) != len({generation for generation, _ in bytes_by_generation}):
        yield "one generation has two bodies"
    if {one.body_digest for one in sent} - {digest for _, digest in bytes_by_generation}:
        yield "bytes were sent that no intent names"
    cancels = len(left.stage.books.requests("cancel"))
    if cancels > left.story.count("intent.cancel"):
        yield f"{cancels} cancels were sent for {left.story.count('intent.cancel')} intents"
    if left.cell.phase != "cancel" and cancels:
        yield "a cancel was sent that nobody asked for"
    if cancels > 1 and not left.cell.kind.cancels_again and not _asked_again(left):
        yield f"a cancel that may not be repeated was sent {cancels} times"


def _asked_again(left: Left) -> bool:
    return "cancel_answer.again" in left.story


def _expectations(left: Left) -> Iterator[str]:
    wanted, standing, books = expected(left.cell), left.standing, left.stage.books
    if standing.state != wanted.state:
        yield f"expected {wanted.state}, is {standing.state}"
    if len(books.jobs()) != wanted.jobs:
        yield f"expected {wanted.jobs} jobs in the books, there are {len(books.jobs())}"
    if standing.attention != wanted.human:
        yield f"a human is {'not ' if wanted.human else ''}asked"
    sent = len([one for one in books.requests() if one.kind in ("create", "read")])
    if sent < wanted.least_sent or (wanted.most_sent is not None and sent > wanted.most_sent):
        yield f"expected {wanted.least_sent} to {wanted.most_sent} creates, {sent} were sent"
