"""The states of a draft: which answers of the status operation there are, and what their words commonly mean.

* Words that the document lists come one by one, each with its common meaning or a hole. Where no word shows the state, the status may.
* What every contract wants and no word of the document is (how a job succeeds, fails, is cancelled) is a hole of its own.
"""

from typing import Final

from adapters.drafting import reading
from adapters.drafting.asking import literal
from adapters.drafting.openapi import Operation
from adapters.drafting.text import Said, Tree, hole
from domain.language.holes import HOLE

_STATES: Final = "waiting, running, needs_input, cancelling, succeeded, partial, ended, failed, cancelled or gone"
_WANTED: Final = (("succeeded", "succeeded"), ("failed", "failed"), ("cancelled", "was cancelled"))


def states_of(status: Operation, *, cancels: bool) -> list[Tree]:
    """The entries of `observe.states`."""
    found = reading.state(status)
    meanings = {word: _meaning(word) for word in found.words} if found else {}
    states: list[Tree]
    if found and meanings:
        states = [{"when": {found.key: _compared(word)}, "is": meaning} for word, meaning in meanings.items()]
    elif len(status.good) > 1:
        states = [{"when": {"status": wanted_status(code)}, "is": hole(_STATES + status.described(code))} for code in status.good]
    elif found:
        remark = f"{reading.BY_NAME}; the document does not list the words: one entry for each"
        states = [{"when": {found.key: hole(remark)}, "is": hole(_STATES)}]
    else:
        states = [{"when": hole("where the answer shows the state, as {body.status: done}"), "is": hole(_STATES)}]
    if "404" in status.responses:
        states.append({"when": {"status": 404}, "is": hole(f"gone; or waiting, with phase: fresh in when{status.described('404')}")})
    return states + _missing({str(meaning.value) for meaning in meanings.values()}, cancels=cancels)


def taken_for_state(status: Operation) -> str:
    """What a person should know of where the states come from."""
    found = reading.state(status)
    return f"{found.key} is taken for the state, {reading.BY_NAME}." if found and found.words else ""


def wanted_status(code: str) -> Tree:
    """A status of the document as a match compares with it."""
    return int(code) if code.isdigit() else code.lower()


def _meaning(word: str | int | bool) -> Said:
    meaning = reading.meaning_of(word)
    return Said(meaning, "by the word alone") if meaning else hole(_STATES)


def _compared(word: str | int | bool) -> Tree:
    """A word as a match compares with it."""
    if not isinstance(word, str):
        return word
    return {"pattern": "[?]"} if word == HOLE else literal(word)


def _missing(known: set[str], *, cancels: bool) -> list[Tree]:
    """What no word of the document is. Where a word or all words wait for their meaning, it may be among them."""
    if not known or HOLE in known:
        return []
    wanted = [(word, said) for word, said in _WANTED if word not in known and (cancels or word != "cancelled")]
    return [{"when": hole(f"what shows that a job {said}"), "is": word} for word, said in wanted]
