"""A stored entry read and judged in one pass over its bytes, for whoever checks many of them.

* What is accepted here is an entry of this version with evidence of the closed set, and says what a slow reading says.
* What is not accepted here is not yet wrong: `domain/chain_verifying.py` then reads slowly, and finds the words for it.
* The shapes are derived from the kinds of `domain/evidence.py`: nothing is said twice.
"""

from functools import reduce
from typing import Annotated, Any, Literal, cast, get_args

from pydantic import BaseModel, Field, StrictInt, TypeAdapter, ValidationError, create_model

from domain.evidence import Evidence, Frozen, Instant

_BESIDE_THE_BODY = frozenset({"at", "actor", "kind"})


class WholeEntry(Frozen):
    """What an entry's bytes say. `body` is its evidence without `at`, `actor` and `kind`."""

    v: Literal[1]
    ledger_id: str
    stream: str
    seq: StrictInt
    at: str
    moment: Instant = Field(validation_alias="at")
    actor: str
    kind: str
    role: str
    epoch: int
    turn: int
    from_: str | None = Field(validation_alias="from")
    to: str | None
    cause: str
    body: BaseModel


def _whole(evidence: type[BaseModel]) -> type[WholeEntry]:
    said: dict[str, Any] = {
        name: (field.annotation, field) for name, field in evidence.model_fields.items() if name not in _BESIDE_THE_BODY
    }
    kind: object = Literal[evidence.model_fields["kind"].default]
    fields: dict[str, Any] = {"kind": (kind, ...), "body": (create_model(f"{evidence.__name__}Body", __base__=Frozen, **said), ...)}
    return create_model(f"Whole{evidence.__name__}", __base__=WholeEntry, **fields)


_ANY: Any = reduce(
    lambda one, other: one | other, cast("list[Any]", [_whole(one) for one in cast("list[type[BaseModel]]", get_args(Evidence))])
)
_WHOLE: TypeAdapter[WholeEntry] = TypeAdapter(cast("Any", Annotated)[_ANY, Field(discriminator="kind")])
_VALIDATOR = _WHOLE.validator


def read_whole(raw: bytes) -> WholeEntry | None:
    """The entry that these bytes are; None if a slower reading has to say what they are."""
    try:
        return _VALIDATOR.validate_json(raw)
    except ValidationError:
        return None
