"""What is kept for an operation because it needs it, in words: of these it is said what is missing, where one of them is.

* What a step saved and the request that was recorded belong to one generation: whoever creates again makes them anew. All else belongs
  to the operation, and without it nothing is ever sent for it again.
* A job that is known is gone on with without the request that made it.
"""

from typing import Final

CONTRACT: Final = "the contract it was pinned to"
INPUT: Final = "its input"
SALT: Final = "the salt that its names are made with"
HIDDEN: Final = "what was hidden in its record"
REQUEST: Final = "the request that was recorded"
ANSWER: Final = "the answer that showed the end of the job"

_SAVED: Final = "what the step "


def saved_by(step: str) -> str:
    """What a step saved."""
    return f"{_SAVED}{step} saved"


def made_anew(missing: str) -> bool:
    """Whether a new create makes what is missing anew. `missing`: in the words of its entry, and how it is missing."""
    return missing.startswith((_SAVED, REQUEST))


def job_needs(missing: str) -> bool:
    """Whether a job that is found could not be gone on with either."""
    return not missing.startswith(REQUEST)
