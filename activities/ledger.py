"""Read the head, and record what needs no HTTP. Both run as local activities."""

from temporalio import activity

from activities.failures import as_failures
from activities.heads import head_of
from activities.owning import append_as_owner
from activities.ports import World
from domain.evidence import Clock, Evidence
from domain.messages import ClockInput, Head, StepInput
from domain.standing import Standing


class LedgerActivities:
    """The ledger activities of one worker."""

    def __init__(self, world: World) -> None:
        self._world = world

    @activity.defn(name="look")
    async def look(self, step: StepInput) -> Head:
        """The newest head. Fails for good if the ledger does not hold what the workflow knows."""
        with as_failures():
            record = await self._world.ledger.record(step.id, known=step.known)
            return head_of(record, self._world.clocks.now())

    @activity.defn(name="record_clock")
    async def record_clock(self, clock: ClockInput) -> Head:
        """Record a deadline that passed while the operation waited for people, if it did pass."""
        world = self._world

        def decide(standing: Standing) -> list[Evidence]:
            deadline = standing.deadlines.get(clock.clock)
            now = world.clocks.now()
            if standing.state != "awaiting_approval" or deadline is None or now < deadline:
                return []
            return [Clock(at=now, actor="clock", meaning=clock.clock, deadline=deadline)]

        with as_failures():
            record = await append_as_owner(world, clock.id, decide, turn=clock.turn, known=clock.known)
            return head_of(record, world.clocks.now())
