"""Expressions: what is read out of answers and values. JMESPath with a few functions of our own, and no arithmetic.

* Missing, JSON null and an expression that fails (wrong type, bad argument) are the same: no value, `None`.
* A root that a place does not know has no value; the checks of a contract refuse it long before.
* An evaluation is bounded by what it visits, builds and returns, counted and not timed: the same answer gives the same outcome
  on every machine. A breach is `TooMuch`, which a reading turns into *unreadable*, never into a meaning.
* Integers keep all their digits. A number that is not finite is no value.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from typing import Any, Final, cast

import jmespath.exceptions
import jmespath.parser
import jmespath.visitor
from pydantic import JsonValue

from domain.errors import BadInput
from domain.jsontext import MAX_DEPTH, NotReadable, equal, parse_answer
from domain.language.functions import FUNCTIONS, Budget, TooMuch

__all__ = ["FUNCTIONS", "BadExpression", "Expression", "Scope", "TooMuch", "compile_expression", "evaluate", "first_value"]

MAX_EXPRESSION: Final = 4_096

_QUOTED: Final = re.compile(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`(?P<literal>(?:\\.|[^`\\])*)`""", re.DOTALL)

_HOLE: Final = re.compile(r"\$\{([^{}]*)\}")
_DASHED: Final = re.compile(r"\bheaders\.([A-Za-z0-9_]+(?:-[A-Za-z0-9_]+)+)")
_NAME: Final = re.compile(r"[A-Za-z_]\w*(?:-[A-Za-z_]\w*)+")
_SIGNS: Final = re.compile(r"[\w)\]]\s*[-+*/%]\s*[\w(]")

Node = dict[str, Any]
"""A node of jmespath's syntax tree: `type`, `children`, and `value` where it has one."""


class BadExpression(BadInput):
    """The text is not an expression of the language."""

    code = "bad_expression"


@dataclass(frozen=True)
class Scope:
    """The roots that an expression may name. A root that is `None` has no value."""

    input: JsonValue = None
    target: JsonValue = None
    files: JsonValue = None
    operation: JsonValue = None
    trace_id: str | None = None
    deadlines: JsonValue = None
    mark: str | None = None
    token: str | None = None
    token_sent_at: str | None = None
    call_id: str | None = None
    callback_url: str | None = None
    steps: JsonValue = None
    job: JsonValue = None
    observed: JsonValue = None
    page: JsonValue = None
    each: JsonValue = None
    window: JsonValue = None
    phase: str | None = None
    status: int | None = None
    headers: JsonValue = None
    body: JsonValue = None
    text: str | None = None
    item: JsonValue = None
    items: JsonValue = None
    counts: JsonValue = None
    outputs: JsonValue = None
    result: JsonValue = None

    @cached_property
    def roots(self) -> dict[str, JsonValue]:
        """The roots by the names that expressions use."""
        named: dict[str, JsonValue] = {
            field.name: getattr(self, field.name) for field in fields(self) if field.name not in ("call_id", "callback_url")
        }
        named["call"] = None if self.call_id is None else {"id": self.call_id}
        named["callback"] = None if self.callback_url is None else {"url": self.callback_url}
        return named

    def with_item(self, item: JsonValue) -> "Scope":
        """The same roots with one item. Of a million items each is looked at once: what they share is made once."""
        here = Scope(item=item)
        here.__dict__["roots"] = {**self.roots, "item": item}
        return here


@dataclass(frozen=True, slots=True)
class Expression:
    """A parsed expression: its tree, the roots it names, and the plain paths (`input.a.b`) it walks from a root."""

    text: str
    tree: Node
    roots: frozenset[str]
    paths: frozenset[tuple[str, ...]]

    @property
    def plain_path(self) -> tuple[str, ...] | None:
        """The path, if the whole expression is one."""
        return _plain_path(self.tree)


@lru_cache(maxsize=8_192)
def compile_expression(text: str) -> Expression:
    """Parse `text`. Raises BadExpression for bad syntax, an unknown function, a wrong number of arguments."""
    if len(text) > MAX_EXPRESSION:
        raise BadExpression(f"an expression of at most {MAX_EXPRESSION} characters")
    try:
        _check_literals(text)
        tree = cast("Node", jmespath.parser.Parser().parse(text).parsed)
        paths = frozenset(_paths(tree))
        _check_functions(tree)
    except jmespath.exceptions.JMESPathError as error:
        said = str(error).splitlines()[0]
        raise BadExpression(f"a JMESPath expression ({said}{_meant(text)})") from None
    except NotReadable:
        raise BadExpression("a JMESPath expression (a literal in backticks must be JSON)") from None
    except (RecursionError, ValueError, IndexError):
        raise BadExpression("a JMESPath expression") from None
    return Expression(text, tree, frozenset(path[0] for path in paths), paths)


def evaluate(expression: str | Expression, scope: Scope) -> JsonValue:
    """The value of an expression, or None. Raises TooMuch if a budget is passed; BadExpression for text that never was one."""
    compiled = compile_expression(expression) if isinstance(expression, str) else expression
    budget = Budget()
    try:
        value: object = _Interpreter(budget).visit(compiled.tree, scope.roots)
    except TooMuch:
        raise
    except RecursionError:
        raise TooMuch("depth") from None
    except Exception:  # noqa: BLE001 - the language's rule: an expression that fails has no value, whatever failed in the library
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    budget.measure(value)
    return cast("JsonValue", value)


def first_value(expressions: tuple[str, ...], scope: Scope) -> JsonValue:
    """The first of `expressions` that has a value, or None."""
    for expression in expressions:
        value = evaluate(expression, scope)
        if value is not None:
            return value
    return None


class _Interpreter(jmespath.visitor.TreeInterpreter):
    """jmespath's interpreter with a budget, JSON's equality and our functions."""

    def __init__(self, budget: Budget) -> None:
        super().__init__()
        self._budget = budget
        self._functions = FUNCTIONS.bound_to(budget)
        self._depth = 0

    def visit(self, node: Any, *args: Any, **kwargs: Any) -> Any:
        self._budget.spend(1)
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise TooMuch("depth")
        try:
            value = super().visit(node, *args, **kwargs)
        finally:
            self._depth -= 1
        if node["type"] in _BUILDERS:
            self._budget.built(value)
        return value

    def visit_comparator(self, node: Any, value: Any) -> Any:
        if node["value"] not in ("eq", "ne"):
            return super().visit_comparator(node, value)
        left, right = (self.visit(child, value) for child in node["children"])
        self._budget.measure(left)
        self._budget.measure(right)
        return equal(left, right) is (node["value"] == "eq")


_BUILDERS: Final = frozenset(
    [
        "flatten",
        "function_expression",
        "filter_projection",
        "projection",
        "value_projection",
        "slice",
        "multi_select_list",
        "multi_select_dict",
    ]
)
"""Node types that make a new value; the others hand on a part of what is there."""

_INNER: Final = frozenset({"index_expression", "pipe", "projection", "value_projection", "filter_projection"})
"""Node types whose first child is read where they stand, and the rest inside of what that gave."""


def _paths(node: Node) -> Iterator[tuple[str, ...]]:
    """Every path from a root that the tree walks. `@` at the root is the root named `@`."""
    lead, _ = _lead(node)
    kind, children = node["type"], cast("list[Node]", node.get("children", []))
    if lead:
        yield lead
    elif kind in ("current", "identity"):
        yield ("@",)
    elif kind in _INNER or kind == "subexpression":
        yield from _paths(children[0])
    elif kind not in ("literal", "slice", "index", "expref"):
        for child in children:
            yield from _paths(child)


def _plain_path(node: Node) -> tuple[str, ...] | None:
    path, whole = _lead(node)
    return path if whole else None


def _lead(node: Node) -> tuple[tuple[str, ...], bool]:
    """The fields with which a node begins (`a.b` of `a.b[0].c` and of `a.b.length(@)`), and whether they are all of it."""
    if node["type"] == "field":
        return (node["value"],), True
    if node["type"] not in _INNER and node["type"] != "subexpression":
        return (), False
    found: tuple[str, ...] = ()
    for child in cast("list[Node]", node["children"]):
        path, whole = _lead(child)
        found += path
        if not whole or node["type"] in _INNER:
            return found, False
    return found, True


def _meant(text: str) -> str:
    """What somebody meant who wrote what does not parse."""
    bare = _QUOTED.sub("''", text)
    if "${" in bare:
        return "; an expression stands without ${}" + (f": {inner[1]}" if (inner := _HOLE.fullmatch(text.strip())) else "")
    if dashed := _DASHED.search(bare):
        return f"; header names are lower case with _: headers.{dashed[1].lower().replace('-', '_')}"
    if name := _NAME.search(bare):
        return f'; a name with - stands in double quotes: "{name[0]}"'
    return "; there is no arithmetic" if _SIGNS.search(bare) else ""


def _check_literals(text: str) -> None:
    """The library takes a literal that is not JSON for text. Here it is a mistake."""
    for quoted in _QUOTED.finditer(text):
        if quoted["literal"] is not None:
            parse_answer(quoted["literal"].replace("\\`", "`"))


def _check_functions(node: Node) -> None:
    if node["type"] == "function_expression":
        FUNCTIONS.check(node["value"], len(node["children"]))
    for child in node.get("children", []):
        if isinstance(child, Mapping):
            _check_functions(cast("Node", child))
