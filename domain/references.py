"""Which payloads evidence names.

* Every place of every kind of evidence is looked at: the places are derived from the models of `domain/evidence.py`, and said nowhere else.
* Evidence as it was read whole (`domain/whole_entries.py`) and as it was read slowly names the same.
"""

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain
from typing import cast, get_args

from pydantic import BaseModel

from domain.evidence import Commitment, Ref, RequestFacts


def references(evidence: BaseModel) -> Iterable[str]:
    """Digests of all payloads that evidence names, wherever they stand in it."""
    places = _places(type(evidence))
    return chain.from_iterable(_named(getattr(evidence, name)) for name in places) if places else ()


def _named(value: object) -> Iterator[str]:
    match value:
        case Ref(digest=digest) | Commitment(ref=digest) | RequestFacts(ref=digest):
            yield digest
        case BaseModel():
            yield from references(value)
        case tuple():
            for item in cast("tuple[object, ...]", value):
                yield from _named(item)
        case _:
            pass


@cache
def _places(model: type[BaseModel]) -> tuple[str, ...]:
    """The fields of a model below which a payload may be named."""
    return tuple(name for name, field in model.model_fields.items() if _may_name(field.annotation))


def _may_name(annotation: object) -> bool:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation in {Ref, Commitment, RequestFacts} or bool(_places(annotation))
    return any(_may_name(one) for one in get_args(annotation))
