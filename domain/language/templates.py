"""Templates: what is sent, shown or compared with. Text with holes `${expression}`; `$${` writes `${`.

* Expansion is one pass: what a hole gives is never looked at again, so text from input or answers can't become a hole.
* A text that is exactly one hole keeps the type of its value. In longer text the value must be text, a number or a boolean.
* No value: a map key whose whole value is one hole is left out. Anywhere else it is an error and nothing is sent.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from pydantic import JsonValue

from domain.errors import BadInput, RenderError
from domain.jsontext import number_text
from domain.language.expressions import BadExpression, Expression, Scope, compile_expression, evaluate
from domain.language.functions import TooMuch

_PAIRS: Final = {"{": "}", "[": "]", "(": ")"}
_QUOTES: Final = "'\"`"


class BadTemplate(BadInput):
    """The text is not a template of the language."""

    code = "bad_template"


@dataclass(frozen=True, slots=True)
class Template:
    """Literal text and holes, in order."""

    parts: tuple[str | Expression, ...]

    @property
    def holes(self) -> tuple[Expression, ...]:
        """The expressions of the template."""
        return tuple(part for part in self.parts if isinstance(part, Expression))

    @property
    def one_hole(self) -> Expression | None:
        """The expression, if the text is exactly one hole."""
        return self.holes[0] if len(self.parts) == 1 and self.holes else None


@lru_cache(maxsize=8_192)
def compile_template(text: str) -> Template:
    """Parse `text`. Raises BadTemplate."""
    parts: list[str | Expression] = []
    literal, at = "", 0
    while at < len(text):
        if text.startswith("$${", at):
            literal, at = literal + "${", at + 3
        elif text.startswith("${", at):
            end = _end_of_hole(text, at + 2)
            if literal:
                parts.append(literal)
            parts.append(_hole(text[at + 2 : end]))
            literal, at = "", end + 1
        else:
            literal, at = literal + text[at], at + 1
    if literal or not parts:
        parts.append(literal)
    return Template(tuple(parts))


def fill(text: str, scope: Scope) -> JsonValue:
    """The value of a template; None if it is exactly one hole and that has no value. Raises RenderError."""
    match compile_template(text).parts:
        case (str(plain),):
            return plain
        case (Expression() as only,):
            return hole_value(only, scope)
        case parts:
            return "".join(part if isinstance(part, str) else scalar_text(hole_value(part, scope), part.text) for part in parts)


def fill_text(text: str, scope: Scope) -> str:
    """The template as text. Raises RenderError if it has no value or is not text, a number or a boolean."""
    return scalar_text(fill(text, scope), text)


def fill_tree(tree: JsonValue, scope: Scope) -> JsonValue:
    """A JSON tree whose texts are templates. A map key whose value is one hole without a value is left out."""
    match tree:
        case str():
            value = fill(tree, scope)
            if value is None:
                raise RenderError(f"{tree} has no value")
            return value
        case list():
            return [fill_tree(item, scope) for item in tree]
        case dict():
            return {name: filled for name, item in tree.items() for filled in _entry(item, scope)}
        case _:
            return tree


def scalar_text(value: JsonValue, what: str) -> str:
    """Text, a number or a boolean as text. Raises RenderError for the rest."""
    match value:
        case str():
            return str(value)
        case bool():
            return "true" if value else "false"
        case int() | float():
            return number_text(value)
        case None:
            raise RenderError(f"{what} has no value", hint="give an optional value a fallback: ${x || 'none'}")
        case _:
            raise RenderError(f"{what} is a list or map where text is due")


def texts_of(tree: JsonValue) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Every text of a JSON tree with its path."""
    match tree:
        case str():
            yield (), tree
        case list():
            for index, item in enumerate(tree):
                yield from (((index, *path), text) for path, text in texts_of(item))
        case dict():
            for name, item in tree.items():
                yield from (((name, *path), text) for path, text in texts_of(item))
        case _:
            return


def _entry(item: JsonValue, scope: Scope) -> Iterator[JsonValue]:
    """The filled value of a map's entry, or nothing where the entry is left out."""
    if isinstance(item, str) and compile_template(item).one_hole is not None:
        value = fill(item, scope)
        if value is not None:
            yield value
    else:
        yield fill_tree(item, scope)


def hole_value(expression: Expression, scope: Scope) -> JsonValue:
    """The value of one hole. Raises RenderError if it is more than may be evaluated."""
    try:
        return evaluate(expression, scope)
    except TooMuch:
        raise RenderError(f"${{{expression.text}}} is more than may be evaluated") from None


def _hole(text: str) -> Expression:
    try:
        return compile_expression(text)
    except BadExpression as error:
        raise BadTemplate(f"a hole with {error.message}") from None


def _end_of_hole(text: str, at: int) -> int:
    """Where the hole that begins at `at` ends. Quotes, backticks and brackets inside balance."""
    waiting: list[str] = []
    quote = ""
    while at < len(text):
        letter = text[at]
        if quote:
            if letter == "\\":
                at += 1
            elif letter == quote:
                quote = ""
        elif letter in _QUOTES:
            quote = letter
        elif letter in _PAIRS:
            waiting.append(_PAIRS[letter])
        elif letter == "}" and not waiting:
            return at
        elif letter in "}])" and (not waiting or waiting.pop() != letter):
            break
        at += 1
    raise BadTemplate("a closed hole ${...} (write $${ for the two characters themselves)")
