"""What people see of an operation in the Temporal UI: search attributes and a short Markdown card.

Values come from a provider or a person and are shown inert: control characters were made visible where they entered the
record; Markdown's own characters are escaped here. A search attribute has at most 200 characters (a longer Keyword
terminates the workflow): a longer value stands as prefix and digest.
"""

import hashlib
import re
from types import MappingProxyType

from domain.messages import Head

MAX_KEYWORD = 200
_TYPED = MappingProxyType({"adopt": "adopt JOB", "accept_succeeded": "accept succeeded", "accept_failed": "accept failed"})
_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>()#+\-.!|~])")


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
        "provider says": " ".join(part for part in (card.remote_state, card.progress) if part),
        "effect": card.effect,
        "why": card.why,
    }
    lines += [f"- {name}: {inert(value)}" for name, value in rows.items() if value]
    if head.attention:
        lines += ["", "This operation waits for a human:", ""]
        # Ids and choices are of letters, digits and `-_.@`: inert inside a code span, where a backslash would be shown.
        lines += [
            f"- `python starter.py resolve {operation} {_TYPED.get(choice, choice)} --by YOU --reason WHY`" for choice in card.choices
        ]
    elif not head.final:
        lines += ["", f"To stop it: `python starter.py cancel {operation} --by YOU --reason WHY`, or *Request Cancellation* here."]
    return "\n".join(lines)


def inert(text: str) -> str:
    """Text in which Markdown finds nothing to act on."""
    return _MARKDOWN.sub(r"\\\1", text)
