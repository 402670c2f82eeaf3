"""What each entry means, in words: the timeline of an operation for someone who has never seen one."""

from collections.abc import Mapping, Sequence
from typing import cast

from adapters.showing.entries import folded
from adapters.showing.markdown import code, table
from adapters.showing.text import beside, said
from domain.chain import Entry
from domain.evidence import Json

SENTENCES: dict[str, str] = {
    "opened.opened": "The operation was opened: what is asked is fixed, and nothing has been sent.",
    "owner.claimed": "A run of our workflow took the operation over.",
    "policy.unattended": "Our policy allowed the request without a human.",
    "policy.needs_human": "Our policy wants a human's consent first.",
    "policy.covered": "A human's consent covers the request.",
    "policy.no": "Our policy said no.",
    "decision.approve": "A human consented to the request.",
    "decision.reject": "A human rejected the request.",
    "decision.cancel": "A human asked for a cancel.",
    "decision.adopt": "A human named a job as this operation's.",
    "decision.look": "A human asked for another look at the provider.",
    "decision.replay": "A human asked for the same request with the same token once more.",
    "decision.retry_create": "A human asked for a new request under a new token.",
    "decision.resume": "A human set a new deadline: the status is read on.",
    "decision.recollect": "A human asked for the result to be fetched again.",
    "decision.accept_succeeded": "A human took the outcome as success.",
    "decision.accept_failed": "A human took the outcome as failure.",
    "decision.abandon": "A human gave the operation up.",
    "decision.accept_ledger": "A human accepted the record as it is.",
    "decision.stop": "A human asked for a stop.",
    "decision.wake": "Someone said that something may have changed.",
    "decision.refused": "What a human asked for was refused.",
    "intent.create": "We are about to send the request to create.",
    "intent.cancel": "We are about to ask for the cancel.",
    "intent.collect": "We are about to fetch the result.",
    "intent.lookup": "We are about to look whether a job exists.",
    "intent.step": "We are about to send a preparing request.",
    "intent.undo": "We are about to undo a preparing request.",
    "exchange.accepted": "The provider accepted the request and named the job.",
    "exchange.ambiguous": "No usable answer: whether the request was carried out is not known.",
    "exchange.stuck": "The provider repeated a stored error for this token.",
    "exchange.unnamed": "The provider accepted the request and named no job.",
    "exchange.finished": "The provider answered with the finished job.",
    "exchange.in_flight": "The provider says that an earlier sending is still being worked on.",
    "exchange.violation": "The provider's answer contradicts what was asked, or what is known.",
    "exchange.refused": "The provider refused the request.",
    "exchange.not_executed": "The provider did not carry the request out this time.",
    "exchange.not_sent": "The request was not sent.",
    "reading.going": "Status read: the job goes on.",
    "reading.not_visible": "Status read: the job is not shown yet.",
    "reading.held": "Status read: a state that the contract does not know; read on.",
    "reading.terminal": "Status read: the job has ended.",
    "reading.gone": "Status read: the provider no longer knows the job.",
    "reading.refused": "The status read was refused.",
    "reading.failed": "The status read gave no usable answer.",
    "reading.violation": "The status read contradicts what is known.",
    "cancel_answer.taken": "The provider took the cancel. That is no confirmation: only a status read is.",
    "cancel_answer.read_again": "The provider says that the job has ended already: the status decides.",
    "cancel_answer.unsure": "No usable answer to the cancel: whether it was taken is not known.",
    "cancel_answer.again": "The cancel was not carried out this time.",
    "cancel_answer.refused": "The provider refused the cancel.",
    "cancel_answer.violation": "The answer to the cancel is about something else than was asked.",
    "lookup.found": "Looked: exactly one job is ours.",
    "lookup.candidates": "Looked: jobs that may be ours were found, none for certain.",
    "lookup.none": "Looked: no job of ours is shown. That proves nothing.",
    "lookup.absent": "Looked: proof that no job was made.",
    "lookup.failed": "Looking gave no usable answer.",
    "lookup.violation": "Looking showed a contradiction.",
    "step.done": "A preparing request is done.",
    "step.refused": "A preparing request was refused.",
    "step.again": "A preparing request gave no usable answer.",
    "step.violation": "A preparing request was answered with a contradiction.",
    "step.undone": "What a preparing request left is undone.",
    "step.undo_again": "The undo of a preparing request was not taken this time.",
    "step.leftover": "What a preparing request left could not be undone: it stays at the provider.",
    "result.verified": "The result was fetched and is what was promised.",
    "result.none": "The contract has no result to fetch.",
    "result.empty": "There is no result to fetch in this case.",
    "result.invalid": "The result was fetched and is not what was promised.",
    "result.again": "The result could not be fetched this time.",
    "result.refused": "Fetching the result was refused.",
    "result.gone": "The result can't be had any more.",
    "callback.accepted": "The provider called us back and named the job.",
    "clock.approval": "The time for a human's consent is over.",
    "clock.create": "The time for creating is over: no request to create follows unless a human asks for one.",
    "clock.lookup": "The time for looking is over.",
    "clock.result": "The time for the job to end is over.",
    "clock.cancel": "The time for the cancel to be confirmed is over.",
    "clock.collect": "The time for fetching the result is over.",
    "regressed.accepted": "A human accepted that entries of this record were lost.",
    "refusals.counted": "Further refused requests were counted.",
    "linked.retried_by": "Another operation repeats this one.",
    "linked.retry_of": "This operation repeats another one.",
    "erased.erased": "Kept values were erased.",
    "pruned.pruned": "Retention removed kept values.",
    "missing.needed": "Something that is needed to go on cannot be had any more: nothing more is sent without it.",
}


def sentence(cause: str) -> str:
    """What an entry with this cause means."""
    if cause.startswith("late."):
        return "Late, after its sender had been replaced: " + SENTENCES[cause.replace("late.", "exchange.", 1)]
    return SENTENCES.get(cause, cause)


def timeline(entries: Sequence[Entry]) -> str:
    """The whole story as a table. Runs of status reads that showed the same are one line."""
    rows = [_row(entry) for entry in folded(entries)]
    return table(("entry", "at (UTC)", "who", "what", "state", "as recorded"), rows)


def _row(entry: Mapping[str, Json]) -> list[str]:
    run = cast("Mapping[str, Json] | None", entry.get("folded"))
    times = f" ({run['count']} times, the last at {str(run['last_at'])[11:23]})" if run else ""
    state = f"{entry['from'] or 'new'} → {entry['to']}" if entry["role"] == "move" else ("(note)" if entry["role"] == "note" else "")
    detail = said({name: value for name, value in entry.items() if name != "folded"})
    return [
        f"{entry['seq']}-{run['last_seq']}" if run else str(entry["seq"]),
        str(entry["at"])[:23].replace("T", " "),
        code(entry["actor"]),
        " ".join(part for part in (sentence(str(entry["cause"])) + times, beside(entry)) if part),
        state,
        code(detail) if detail else "",
    ]
