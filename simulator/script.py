"""Which lies are told when.

* A rule matches calls by kind, and by account, job or number (`nth`, counted from 1 among the calls it matches) where it says so;
  it may end after some `times`, or be left to a seeded chance. The same seed and the same calls give the same lies.
* All rules that match apply, in the order in which they were installed.
* A rule that the vocabulary does not know is refused whole.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Self, cast, get_args

from simulator.answer import Call, Json, Kind
from simulator.lies import LIES, Lie


class BadScript(ValueError):
    """The script cannot be taken; the text says what is known instead."""


@dataclass(frozen=True, slots=True)
class Told:
    """One lie with its arguments, complete."""

    word: str
    args: dict[str, Json]

    @property
    def lie(self) -> Lie:
        """What the word does."""
        return LIES[self.word]


@dataclass(slots=True)
class Rule:
    """`met` counts the calls that it matched, `used` those that were lied to."""

    kind: Kind
    lies: tuple[Told, ...]
    account: str | None = None
    job: str | None = None
    nth: int | None = None
    times: int | None = None
    probability: float = 1.0
    seed: int = 0
    met: int = 0
    used: int = 0

    def meets(self, call: Call) -> bool:
        """Counts the call if it matches, and says whether it is lied to."""
        if call.kind != self.kind or self.account not in (None, call.account) or self.job not in (None, call.job):
            return False
        self.met += 1
        if self.nth not in (None, self.met) or (self.times is not None and self.used >= self.times):
            return False
        if self.probability < 1.0 and random.Random(f"{self.seed}/{self.met}").random() >= self.probability:
            return False
        self.used += 1
        return True

    def to_json(self) -> dict[str, Json]:
        """The rule as the book shows it."""
        return cast("dict[str, Json]", asdict(self))


@dataclass(slots=True)
class Script:
    """The rules in force."""

    rules: list[Rule] = field(default_factory=list[Rule])

    def chosen(self, call: Call) -> list[Told]:
        """The lies for this call."""
        if not self.rules:
            return []
        return [told for rule in self.rules if rule.meets(call) for told in rule.lies]

    def add(self, value: Json) -> Rule:
        """Installs one rule as it comes in JSON."""
        rule = _rule(value)
        self.rules.append(rule)
        return rule

    def clear(self) -> None:
        """The provider is honest again."""
        self.rules.clear()

    def to_json(self) -> list[Json]:
        """All rules."""
        return [rule.to_json() for rule in self.rules]

    @classmethod
    def from_json(cls, value: Sequence[Json]) -> Self:
        """The reverse of `to_json`."""
        found: list[Rule] = []
        for one in value:
            assert isinstance(one, dict)
            stored = cast("list[dict[str, Json]]", one["lies"])
            lies = tuple(Told(str(lie["word"]), cast("dict[str, Json]", lie["args"])) for lie in stored)
            found.append(Rule(**{**one, "lies": lies}))  # pyright: ignore[reportArgumentType]  # the shape that to_json wrote
        return cls(found)


Types = Mapping[str, type | tuple[type, ...]]
_NONE: dict[str, Json] = {}
MATCH: Types = {"kind": str, "account": str, "job": str, "nth": int}
RULE: Types = {"match": dict, "lies": list, "times": int, "probability": (int, float), "seed": int}
assert set(MATCH) | set(RULE) - {"match"} <= {one.name for one in fields(Rule)}


def _rule(value: Json) -> Rule:
    rule = _checked(value, RULE, "a rule")
    match = _checked(rule.get("match"), MATCH, "match")
    kind = match.get("kind")
    if kind not in get_args(Kind):
        raise BadScript(f"match.kind is one of {', '.join(get_args(Kind))}, not {kind!r}")
    listed = rule.get("lies")
    if not isinstance(listed, list) or not listed:
        raise BadScript("lies is a list with at least one lie")
    rest = {name: given for name, given in (rule | match).items() if name not in ("match", "lies", "kind")}
    return Rule(kind, tuple(_told(one, kind) for one in listed), **rest)  # pyright: ignore[reportArgumentType]  # checked above


def _told(value: Json, kind: Kind) -> Told:
    lie = {"word": value} if isinstance(value, str) else _checked(value, {"word": str, "args": dict}, "a lie")
    word, given = str(lie.get("word")), lie.get("args", _NONE)
    if word not in LIES:
        raise BadScript(f"no lie is called {word!r}; GET /lies tells those that are")
    known = LIES[word]
    if kind not in known.kinds:
        raise BadScript(f"{word} is a lie about {', '.join(sorted(known.kinds))}, not about {kind}")
    assert isinstance(given, dict)
    for name, chosen in given.items():
        _check_argument(word, known, name, chosen)
    return Told(word, {**known.args, **given})


def _check_argument(word: str, lie: Lie, name: str, value: Json) -> None:
    if name not in lie.args:
        raise BadScript(f"{word} takes {', '.join(lie.args) or 'no arguments'}, not {name}")
    usual = lie.args[name]
    number = isinstance(usual, (int, float)) and not isinstance(usual, bool)
    fits = isinstance(value, (int, float) if isinstance(usual, float) else type(usual)) and not (number and isinstance(value, bool))
    if name == "seconds":
        fits = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not fits or (name in lie.choices and value not in lie.choices[name]):
        among = f" of {', '.join(sorted(lie.choices[name]))}" if name in lie.choices else ""
        raise BadScript(f"{word}.{name} is a {type(usual).__name__}{among}, not {value!r}")


def _checked(value: Json, known: Types, what: str) -> dict[str, Json]:
    if not isinstance(value, dict):
        raise BadScript(f"{what} is an object with {', '.join(known)}")
    for name, given in value.items():
        if name not in known:
            raise BadScript(f"{what} has {', '.join(known)}, not {name}")
        if not isinstance(given, known[name]) or isinstance(given, bool):
            raise BadScript(f"{name} cannot be {given!r}")
    return value
