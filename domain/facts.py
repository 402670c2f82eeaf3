"""What the life of an operation needs to know of its contract, and nothing else of it.

Entry 0 holds these facts, so that the tables can be applied to a stream without reading the contract.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict, JsonValue


class DeadlinesMs(BaseModel):
    """How long each clock runs, in milliseconds."""

    model_config = ConfigDict(frozen=True)
    create: int = 600_000
    result: int = 3_600_000
    cancel: int = 300_000
    collect: int = 600_000
    approval: int = 86_400_000

    @property
    def root(self) -> dict[str, JsonValue]:
        """The root `deadlines`, in seconds. Whole ones are integers: a header that says `7200.0` is refused by providers."""
        return {name: span // 1000 if span % 1000 == 0 else span / 1000 for name, span in self.model_dump().items()}


class ContractFacts(BaseModel):
    """A contract as the lifecycle sees it. Times are in milliseconds; `token_window_ms` is None only without a token.

    `undo`: the steps ahead of the create that can be undone. `before_ms`: what steps add to the longest that one attempt may take,
    by the name of the activity.
    """

    model_config = ConfigDict(frozen=True)
    collect_after: tuple[str, ...] = ("succeeded", "partial")
    collect_none: bool = False
    observe_none: bool = False
    cancel_none: bool = False
    cancel_repeatable: bool = False
    cancel_force: bool = False
    destroys_finished_jobs: bool = False
    terminal_is_final: bool = True
    partial: Literal["succeeded", "failed", "attention"] | None = None
    disagreement: Literal["attention", "record"] = "attention"
    one_time: bool = False
    token: bool = False
    token_window_ms: int | None = None
    http_total_ms: int = 90_000
    reconcile_entries: int = 0
    visible_within_ms: tuple[int, ...] = ()
    undo: tuple[str, ...] = ()
    before_ms: dict[str, int] = {}
    appears_within_ms: int = 60_000
    deadlines_ms: DeadlinesMs = DeadlinesMs()
    compare: bool = False
    sensitive: bool = False
