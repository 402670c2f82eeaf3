"""Timeouts, retry policies and queues of every activity, as one table.

* Temporal is the only retrier. An expected "not yet" carries its own delay; the policies here are for what nobody expected.
* The activity owns its deadline. `schedule_to_close` is a backstop for "no executor alive" and lies past the deadline by more
  than any activity needs, because a retry delay that reaches past it would end the activity at once.
* *Local* means: try twice here, quickly; then the same function runs as an ordinary activity that is retried without end. A
  local activity that kept failing would grow the history instead.
* What an operation does most often, reading its status and fetching its result, is on the workflow's own queue: the server gives such
  an activity to the worker in its answer to the workflow task ("eager"), which saves a dispatch each. What must never wait for a free
  place among them, creates and cancels, has a queue of its own; so have lookups, which may take long.
"""

from dataclasses import dataclass
from datetime import timedelta

from temporalio.common import RetryPolicy
from temporalio.workflow import ActivityCancellationType

from domain.messages import QUEUE_EFFECTS, QUEUE_LEDGER, QUEUE_READS

HEARTBEAT_EVERY = timedelta(seconds=2)
HEARTBEAT_TIMEOUT = timedelta(seconds=10)
SEND_WITHIN = timedelta(seconds=5)
"""A create is sent within this span after its intent, or not at all."""
HOLD_LIMIT = timedelta(seconds=10)
"""A next delay up to this is waited for inside the activity; a longer one is handed back to the server."""
HOLD_FOR = timedelta(minutes=1)
"""An attempt older than this hands back any wait."""
APPEND_TIME = timedelta(seconds=20)
BACKSTOP_SLACK = timedelta(minutes=1)

LOCAL_TIMEOUT = timedelta(seconds=5)
LOCAL_THRESHOLD = timedelta(seconds=1)
LOCAL_RETRY = RetryPolicy(initial_interval=timedelta(milliseconds=200), maximum_attempts=2)
LEDGER_QUEUE = QUEUE_EFFECTS
"""Of what failed as a local activity: where nothing takes long, so that downloads without end never fill its places."""
LEDGER_TIMEOUT = timedelta(seconds=30)
LEDGER_RETRY = RetryPolicy(initial_interval=timedelta(seconds=1), maximum_interval=timedelta(seconds=30))
UNEXPECTED_RETRY = RetryPolicy(initial_interval=timedelta(seconds=1), backoff_coefficient=2.0, maximum_interval=timedelta(seconds=30))

UNREADABLE_TRIES = 10
"""What an operation needs and this version of a worker cannot read is tried so often, for two and a half minutes; then a human is asked."""


@dataclass(frozen=True, slots=True)
class StepOptions:
    """How one step's activity is scheduled. `summary`: its label in the Temporal UI; `longest`: what one attempt may take on
    top of one HTTP exchange."""

    summary: str
    queue: str
    cancellation: ActivityCancellationType
    longest: timedelta
    interrupted_by_decision: bool
    interrupted_by_wake: bool


STEPS: dict[str, StepOptions] = {
    # What may already be on the wire is waited for: its answer is worth more than the seconds.
    "create": StepOptions(
        "send the request that creates the job",
        QUEUE_EFFECTS,
        ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        APPEND_TIME,
        True,
        False,
    ),
    "cancel": StepOptions(
        "ask the provider to cancel", QUEUE_EFFECTS, ActivityCancellationType.WAIT_CANCELLATION_COMPLETED, APPEND_TIME, True, False
    ),
    # The operation has ended: no decision changes what is sent.
    "undo": StepOptions(
        "undo what was prepared for a job that was never created",
        QUEUE_EFFECTS,
        ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        APPEND_TIME,
        False,
        False,
    ),
    # A list may have many pages.
    "reconcile": StepOptions(
        "look for the job of an unanswered request", QUEUE_READS, ActivityCancellationType.TRY_CANCEL, timedelta(minutes=15), True, True
    ),
    # A status read is cheap to lose: what an old attempt still reads is kept as a note.
    "observe": StepOptions(
        "read the job's status until it ends",
        QUEUE_LEDGER,
        ActivityCancellationType.TRY_CANCEL,
        HOLD_FOR + HOLD_LIMIT + APPEND_TIME,
        True,
        True,
    ),
    # While a result is fetched every decision is refused, which needs no interruption.
    "collect": StepOptions(
        "fetch and verify the result", QUEUE_LEDGER, ActivityCancellationType.WAIT_CANCELLATION_COMPLETED, timedelta(hours=24), False, False
    ),
}


def start_to_close(step: str, http_total_ms: int) -> timedelta:
    """What one attempt may take."""
    return STEPS[step].longest + timedelta(milliseconds=http_total_ms)


def backstop(remaining: timedelta, http_total_ms: int) -> timedelta:
    """Schedule-to-close of a step whose deadline is `remaining` away."""
    return max(remaining, timedelta()) + BACKSTOP_SLACK + timedelta(milliseconds=http_total_ms) + APPEND_TIME
