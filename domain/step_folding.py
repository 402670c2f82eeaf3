"""What a step, or its undo, changes of a standing; and what a job that becomes known takes from what is left to undo.

* A step counts for the generation that it was done in, and only while that one is being created: what an attempt saved for a
  generation that is over is of no use to the next.
* What a step left can be undone until a job of its generation is known: that job may be at work with it.
* A step that is done by an attempt that no longer counts has left something all the same. It is undone like the rest where nothing can
  be at work with it; else nobody knows, for a provider may give the same thing twice: it is flagged and left.
"""

from domain.chain import Entry
from domain.evidence import Ref, StepOutcome
from domain.standing import Flag, Leftover, Standing


def stepped(standing: Standing, step: StepOutcome, entry: Entry) -> dict[str, object]:
    """A step of the present generation, or the undo of one; what an attempt saved for a generation that is over is of no use."""
    change: dict[str, object] = {"next_at": step.next_at, "tries": standing.tries + 1}
    match step.meaning:
        case "done" if step.saved is not None and step.generation == standing.generation and entry.to == "create_pending":
            # Two attempts that live at once may both do it: the first counts, and what the second left is there all the same.
            change |= {"steps": {step.step: step.saved} | standing.steps, "tries": 0}
            if step.step in standing.facts.undo:
                left = Leftover(generation=step.generation, step=step.step, steps=standing.steps | {step.step: step.saved})
                change["leftovers"] = (*standing.leftovers, left)
        case "done":
            change |= left_late(standing, step)
        case "undone" | "leftover":
            others = tuple(one for one in standing.leftovers if (one.generation, one.step, one.saved) != _named(step))
            # Another that was not taken has its own time.
            change |= {"leftovers": others, "next_at": standing.next_at if others and entry.role != "move" else None}
            if step.meaning == "leftover":
                why = f"what the step {step.step} left could not be undone: {step.words.message or step.words.reason or step.word}"
                change["flags"] = (*standing.flags, Flag(word="leftovers", since=step.at, why=why))
        case "violation":
            change["violation"] = step.violation
        case _:  # not yet, or never: why is all that changes
            change["why"] = step.words.message or step.words.reason or step.words.code or standing.why
    return change


def left_late(standing: Standing, step: StepOutcome) -> dict[str, object]:
    """What a step left that was done too late to count, or by whoever no longer owns the operation."""
    same = [*standing.leftovers, Leftover(generation=standing.generation, step=step.step, steps=standing.steps)]
    if step.saved is None or step.step not in standing.facts.undo:
        return {}
    if any((one.generation, one.step, one.saved) == _named(step) for one in same):
        return {}
    idle = standing.clean if standing.final else step.generation == standing.generation
    if idle and standing.effect != "made":
        steps = standing.steps if step.generation == standing.generation else {}
        left = Leftover(generation=step.generation, step=step.step, steps=steps | {step.step: step.saved})
        return {"leftovers": (*standing.leftovers, left)}
    why = f"the step {step.step} was done by an attempt that no longer counted, and what it left is not undone"
    return {"flags": (*standing.flags, Flag(word="leftovers", since=step.at, why=why))}


def _named(step: StepOutcome) -> tuple[int, str, Ref | None]:
    return step.generation, step.step, step.saved


def committed(standing: Standing, generation: int) -> tuple[Leftover, ...]:
    """What may still be undone, now that a job of this generation is known: it works with what its steps left."""
    return tuple(one for one in standing.leftovers if one.generation != generation)
