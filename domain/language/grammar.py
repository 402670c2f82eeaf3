"""The kinds of value that keys of a contract take, each with its check and with what an editor is told about it.

* The key decides the kind, never the value: plain text, template, expression, match, duration, size, name.
* A model has closed keys: an unknown one is an error that names the nearest known one. Nothing is converted: `"1"` is no
  number, `1` is no text.
* `Kind` marks which fields hold templates, expressions and matches, so that a contract can be walked without a second list.
"""

import difflib
import re
from collections.abc import Iterable
from datetime import date, timedelta
from enum import Enum
from typing import Annotated, Any, ClassVar, Final, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    JsonValue,
    StrictBool,
    StrictInt,
    WithJsonSchema,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from domain.errors import BadInput
from domain.language.expressions import compile_expression
from domain.language.matching import BadMatch, check_match
from domain.language.templates import compile_template, texts_of

DURATION_UNITS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
SIZE_UNITS: Final = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
CREDENTIAL: Final = r"[a-z0-9_]{1,64}"
LONGEST_DURATION: Final = timedelta(days=3650)
_DURATION: Final = re.compile(r"([0-9]{1,9})(ms|s|m|h|d)")
_SIZE: Final = re.compile(r"([0-9]{1,12})(B|KiB|MiB|GiB)")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean ...?` where one of the known words is near; else nothing."""
    return "".join(f"; did you mean {near}?" for near in difflib.get_close_matches(word, list(known), 1))


class Kind(Enum):
    """What the texts of a field are."""

    TEMPLATE = "template"
    EXPRESSION = "expression"
    MATCH = "match"


def expected(what: str, path: tuple[str | int, ...] = ()) -> PydanticCustomError:
    """An error of one value: what was expected, and where below the field."""
    return PydanticCustomError("expected", "{what}", {"what": what, "path": path})


class Strict(BaseModel):
    """A map with closed keys."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", validate_by_alias=True, validate_by_name=False)
    forms: ClassVar[str] = ""
    """The ways to write it, where its keys are alternatives: said in place of a list of keys."""

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            if cls.forms and not isinstance(value, cls):
                raise expected(cls.forms)
            return value
        known = sorted(field.alias or name for name, field in cls.model_fields.items())
        unknown = [str(key) for key in cast("dict[str, object]", value) if key not in known]
        if unknown:
            hints = {key: did_you_mean(key, known) for key in unknown}
            told = f"expected {cls.forms}" if cls.forms else f"known here: {', '.join(known)}"
            raise PydanticCustomError("unknown_keys", "one of the known keys", {"hints": hints, "known": told})
        return cast("object", value)


class Word:
    """Annotation: the plain word `word` may stand in place of the value, and means `value`."""

    def __init__(self, word: str, value: object) -> None:
        self._word, self._value = word, value

    def _read(self, given: Any) -> Any:
        if given is None:
            raise expected(f"a value, or the word {self._word}")
        return self._value if given == self._word else given

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """The value's own schema behind the word."""
        return core_schema.no_info_before_validator_function(self._read, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """The word, or the value's own schema."""
        return {"anyOf": [{"const": self._word}, handler(schema)]}


class OneOrMore:
    """Annotation: one value may stand where a list is due."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """The list's own schema behind the single value."""
        return core_schema.no_info_before_validator_function(_as_tuple, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """The list, or one of its elements."""
        listed = handler(schema)
        return {"anyOf": [listed, listed["items"]]}


def parse_duration(value: object) -> timedelta:
    """`250ms 30s 5m 12h 10d`."""
    found = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise expected("a duration such as 250ms, 30s, 5m, 12h or 10d")
    span = timedelta(milliseconds=int(found[1]) * DURATION_UNITS[found[2]])
    if span > LONGEST_DURATION:  # added to an instant it would leave the calendar, when nothing can be refused any more
        raise expected("a duration of at most 3650d")
    return span


def milliseconds(value: timedelta) -> int:
    """A duration in whole milliseconds."""
    return value // timedelta(milliseconds=1)


def _size(value: object) -> int:
    found = _SIZE.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise expected("a size such as 512B, 64KiB, 200MiB or 1GiB")
    return int(found[1]) * SIZE_UNITS[found[2]]


def _date(value: object) -> date:
    try:
        return date.fromisoformat(value if isinstance(value, str) and len(value) == 10 else "")
    except ValueError:
        raise expected("a date such as 2026-11-30") from None


def _as_tuple(value: object) -> object:
    return cast("list[object]", value) if isinstance(value, list) else [value]


def _expressions(values: tuple[str, ...]) -> tuple[str, ...]:
    for index, text in enumerate(values):
        try:
            compile_expression(text)
        except BadInput as error:
            raise expected(error.message, (index,)) from None
    return values


def _expression_map(values: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    for name, texts in values.items():
        try:
            _expressions(texts)
        except PydanticCustomError as error:
            raise expected(error.message(), (name, *cast("dict[str, tuple[int]]", error.context)["path"])) from None
    return values


def _templates(value: JsonValue) -> JsonValue:
    for path, text in texts_of(value):
        try:
            compile_template(text)
        except BadInput as error:
            raise expected(error.message, path) from None
    return value


def _minor(value: JsonValue) -> JsonValue:
    whole = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53
    if not whole and not (isinstance(_templates(value), str) and compile_template(str(value)).holes):
        raise expected("whole minor units, or a template that gives them")
    return value


def _form(value: JsonValue) -> JsonValue:
    _templates(value)
    if not isinstance(value, dict | None) and not (isinstance(value, str) and compile_template(value).one_hole):
        raise expected("a map of fields, or one hole that gives it")
    return value


def _match(value: dict[str, JsonValue] | None) -> dict[str, JsonValue] | None:
    try:
        check_match(value or {})
    except BadMatch as error:
        raise expected(error.message, error.path) from None
    return value


def _lifetime(value: str | None) -> str | None:
    if value is not None and not compile_template(value).holes:
        parse_duration(value)
    return value


def _named(pattern: str, what: str) -> AfterValidator:
    compiled = re.compile(pattern)

    def check(value: str) -> str:
        if not compiled.fullmatch(value):
            raise expected(what)
        return value

    return AfterValidator(check)


_EXPRESSION_SCHEMA: Final = WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]})
_ONE_OR_MORE = Annotated[tuple[str, ...], BeforeValidator(_as_tuple), Field(min_length=1), _EXPRESSION_SCHEMA]

Duration = Annotated[timedelta, BeforeValidator(parse_duration), WithJsonSchema({"type": "string", "pattern": "^[0-9]+(ms|s|m|h|d)$"})]
Size = Annotated[int, BeforeValidator(_size), WithJsonSchema({"type": "string", "pattern": "^[0-9]+(B|KiB|MiB|GiB)$"})]
Day = Annotated[date, BeforeValidator(_date), WithJsonSchema({"type": "string", "format": "date"})]
Whole = Annotated[StrictInt, Field(ge=0)]
Positive = Annotated[StrictInt, Field(ge=1)]
Flag = StrictBool

NoExpressions = Annotated[tuple[str, ...], BeforeValidator(_as_tuple), AfterValidator(_expressions), _EXPRESSION_SCHEMA, Kind.EXPRESSION]
ExpressionMap = Annotated[dict[str, _ONE_OR_MORE], AfterValidator(_expression_map), Kind.EXPRESSION]
Template = Annotated[str, AfterValidator(_templates), Kind.TEMPLATE]
OptionalTemplate = Annotated[str | None, AfterValidator(_templates), Kind.TEMPLATE]
TemplateTree = Annotated[JsonValue, AfterValidator(_templates), Kind.TEMPLATE]
TemplateMap = Annotated[dict[str, JsonValue], AfterValidator(_templates), Kind.TEMPLATE]
TextMap = Annotated[dict[str, str], AfterValidator(_templates), Kind.TEMPLATE]
FormTree = Annotated[JsonValue, AfterValidator(_form), WithJsonSchema({"type": ["object", "string"]}), Kind.TEMPLATE]
OptionalTexts = Annotated[dict[str, str] | None, AfterValidator(_templates), Kind.TEMPLATE]
Minor = Annotated[JsonValue, AfterValidator(_minor), WithJsonSchema({"type": ["integer", "string"]}), Kind.TEMPLATE]
Lifetime = Annotated[str | None, AfterValidator(_templates), AfterValidator(_lifetime), Kind.TEMPLATE]
Matching = Annotated[dict[str, JsonValue] | None, AfterValidator(_match), Kind.MATCH]

ContractName = Annotated[
    str, Field(max_length=100), _named(r"[a-z][a-z0-9_-]*(\.[a-z0-9][a-z0-9_-]*)+", "a name such as acme.reports.create")
]
Name = Annotated[str, _named(r"[A-Za-z_][A-Za-z0-9_]{0,63}", "a name of letters, digits and _")]
Label = Annotated[str, _named(r"[^\x00-\x1f\x7f]{1,100}", "a short label")]
Credential = Annotated[str, _named(CREDENTIAL, "a credential's name: lower-case letters, digits and _")]
