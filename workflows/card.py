"""What people see of an operation in the Temporal UI: search attributes and a short Markdown card.

Values come from a provider or a person and are shown inert: control characters were made visible where they entered the
record; Markdown's own characters are escaped here, and the colon, without which no bare address becomes a link. A search
attribute has at most 200 characters (a longer Keyword terminates the workflow): a longer value stands as prefix and digest.
"""

import hashlib
import re
from types import MappingProxyType

from domain.lifecycle import CHOICES
from domain.messages import Head

MAX_KEYWORD = 200
_TYPED = MappingProxyType({"adopt": "adopt JOB", "accept_succeeded": "accept succeeded", "accept_failed": "accept failed"})
_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>()#+\-.!|~:&])")
_OF = re.compile(r"(\d+)/(\d+)")
_ATTENTION = "python starter.py list --attention"
_STOP = "To stop it: `python starter.py cancel {operation} --by YOU --reason WHY`, or *Request Cancellation* here."
_READ = (
    "The status is being read. What it shows meanwhile stands at the pending activity and in `python starter.py status {operation}`: this "
    "card, and the search attributes, are those of the moment at which the reading began."
)
_ASKED = "A cancel was asked for. Only what the provider shows ends it."
_UNDER_WAY = MappingProxyType(
    {
        "cancel_requested": _ASKED,
        "cancelling": _ASKED,
        "result_collecting": "The job has ended: its result is fetched.",
        "undo": "It has ended, and no job was made: what was prepared for one is taken back.",
    }
)
"""What is said of a state, or a step, in which a cancel can't be asked for, or was."""


def keyword(text: str) -> str:
    """`text` within MAX_KEYWORD characters."""
    if len(text.encode()) <= MAX_KEYWORD:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()
    prefix = text.encode()[: MAX_KEYWORD - len(digest) - 1].decode("utf-8", "ignore")
    return f"{prefix}#{digest}"


def attributes_of(head: Head) -> dict[str, str | bool]:
    """Search attributes of an operation with that head."""
    values: dict[str, str | bool] = {"SakshiState": head.state, "SakshiAttention": head.attention}
    if head.card.contract:
        values |= {"SakshiContract": keyword(head.card.contract), "SakshiTenant": keyword(head.card.tenant)}
    if head.card.job:
        values["SakshiJob"] = keyword(head.card.job)
    return values


def details_of(operation: str, head: Head) -> str:
    """The card: state, why it waits, the exact effect, and what an operator may do."""
    card = head.card
    lines = [f"**{inert(head.state)}** {inert(card.summary)}", ""]
    rows = {
        "contract": card.contract,
        "job": card.job,
        "provider says": " ".join(part for part in (card.remote_state, _counted(card.progress)) if part),
        "items": card.counts,
        "effect": card.effect,
        "why": card.why,
    }
    lines += [f"- {name}: {inert(value)}" for name, value in rows.items() if value]
    if head.attention:
        lines += ["", "This operation waits for a human:", ""]
        # Ids and choices are of letters, digits and `-_.@`: inert inside a code span, where a backslash would be shown.
        lines += [
            f"- `python starter.py resolve {operation} {_TYPED.get(choice, choice)} --by YOU --reason WHY`: {CHOICES.get(choice, choice)}"
            for choice in card.choices
        ]
        lines += ["", f"All that waits, with jobs that may be meant: `{_ATTENTION}`. For the provider's support: `{_escalate(operation)}`."]
    elif not head.final:
        lines += ["", _READ.format(operation=operation)] if head.step == "observe" else []
        lines += ["", _UNDER_WAY.get("undo" if head.step == "undo" else head.state, _STOP.format(operation=operation))]
    return "\n".join(lines)


def _escalate(operation: str) -> str:
    return f"python starter.py escalate {operation} --output DIR"


def _counted(progress: str | None) -> str | None:
    """`5/5` would be drawn as a fraction."""
    return progress and _OF.sub(r"\1 of \2", progress)


def inert(text: str) -> str:
    """Text in which Markdown finds nothing to act on."""
    return _MARKDOWN.sub(r"\\\1", text)
