"""What is put there before a job is asked for: inert, repeated freely, and taken away again by whoever has no use for it."""

from dataclasses import asdict, dataclass, field
from secrets import token_hex
from typing import cast

from simulator.answer import Answer, Call, Json, refusal, told


@dataclass(slots=True)
class Upload:
    """One thing that was put there. `removed`: taken away again."""

    id: str
    size: int
    content: str
    removed: bool = False


@dataclass(slots=True)
class Uploads:
    """Every upload that was ever taken, oldest first. `touched` names what changed since it was last saved."""

    held: dict[str, Upload] = field(default_factory=dict[str, Upload])
    touched: set[str] = field(default_factory=set[str])

    def put(self, call: Call) -> Answer:
        """A new upload each time: nothing here knows tokens."""
        one = Upload(f"up_{token_hex(8)}", len(call.body), call.body.decode("utf-8", "replace")[:4096])
        self.held[one.id] = one
        self.touched.add(one.id)
        call.job = one.id
        return told(201, {"id": one.id, "size": one.size})

    def take_away(self, call: Call) -> Answer:
        """Taken away once; then it is not there."""
        one = self.held.get(call.name)
        if one is None or one.removed:
            return refusal(404, "no_such_upload", "no upload has this id")
        one.removed = True
        self.touched.add(one.id)
        return Answer(204)

    def changes(self) -> dict[str, Json]:
        """What is to be saved, by id."""
        return {name: cast("Json", asdict(self.held[name])) for name in self.touched}

    def restore(self, value: dict[str, Json]) -> None:
        """One upload, as it was saved."""
        one = Upload(str(value["id"]), cast("int", value["size"]), str(value["content"]), value["removed"] is True)
        self.held[one.id] = one
