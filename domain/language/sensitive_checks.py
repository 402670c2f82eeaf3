"""What is wrong with what a contract calls sensitive: a job's id can't be, because everybody has to know it.

It stands in the search index, is looked up at the provider by people, and says which operation owns which job.
"""

from collections.abc import Iterator

from domain.contract import Contract
from domain.language.expressions import compile_expression
from domain.language.texts import Path


def check_sensitive(contract: Contract) -> Iterator[tuple[Path, str]]:
    """Every error, as path and what was expected."""
    ids = [text for job in (contract.create.job, *(lookup.job for lookup in contract.reconcile)) for text in (job or {}).get("id", ())]
    for index, text in enumerate(contract.record.sensitive):
        held = next((one for one in ids if _holds(text, one)), None)
        if held is not None:
            yield ("record", "sensitive", index), f"anything but the job's id, which is {held}"


def _holds(sensitive: str, job_id: str) -> bool:
    """Whether one expression gives the value of the other, or a value that has it inside."""
    outer, inner = compile_expression(sensitive).plain_path, compile_expression(job_id).plain_path
    return sensitive == job_id or (outer is not None and inner is not None and inner[: len(outer)] == outer)
