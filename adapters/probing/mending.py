"""What a probe found, as a diff of the contract's file: the lines that would have to be others, and no more.

* The text is changed where the parser's own marks say, so that comments and the style of the file stay. A change that does not leave a
  file that can be parsed is left out.
* A diff is a suggestion: it holds no value that was secret, and is never applied here.
"""

import difflib
import re
from collections.abc import Iterable
from typing import cast

import yaml

from adapters.contract_files import parse_yaml
from adapters.drafting.text import scalar
from adapters.probing.findings import Mend
from domain.errors import BadContract


def suggested(name: str, text: str, mends: Iterable[Mend]) -> str:
    """A unified diff of the file `name`; empty where nothing can be mended."""
    mended = text
    for mend in mends:
        changed = _changed(mended, mend)
        if changed is not None and _parses(changed):
            mended = changed
    lines = (one.splitlines(keepends=True) for one in (text, mended))
    return "".join(difflib.unified_diff(*lines, fromfile=f"a/{name}", tofile=f"b/{name}"))


def _parses(text: str) -> bool:
    try:
        parse_yaml(text.encode(), "suggested")
    except BadContract:
        return False
    return True


def _changed(text: str, mend: Mend) -> str | None:
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    if root is None:
        return None
    match mend.change:
        case "drop":
            return _dropped(text, root, mend.path)
        case "append":
            found = _node(root, mend.path)
            return _appended(text, found, mend.text) if isinstance(found, yaml.SequenceNode) else None
        case _:
            return _set(text, root, mend)


def _set(text: str, root: yaml.Node, mend: Mend) -> str | None:
    """Set the value of a key, or add the key; maps on the way that are missing are written in one line."""
    old = _node(root, mend.path)
    if old is not None and mend.change == "add":
        return None
    if old is not None:
        return _replaced(text, old, mend.text)
    depth = next((depth for depth in range(len(mend.path) - 1, -1, -1) if _node(root, mend.path[:depth]) is not None), 0)
    parent = _node(root, mend.path[:depth])
    if not isinstance(parent, yaml.MappingNode):
        return None
    value = mend.text
    for name in reversed(mend.path[depth + 1 :]):
        value = f"{{{scalar(name)}: {value}}}"
    return _with_key(text, parent, f"{scalar(mend.path[depth])}: {value}")


def _node(root: yaml.Node, path: tuple[str | int, ...]) -> yaml.Node | None:
    node = root
    for part in path:
        match node, part:
            case yaml.MappingNode(), str():
                found = _entry(node, part)
                if found is None:
                    return None
                node = found[1]
            case yaml.SequenceNode(), int() if part < len(node.value):
                node = node.value[part]
            case _:
                return None
    return node


def _entry(node: yaml.MappingNode, name: str) -> tuple[yaml.Node, yaml.Node] | None:
    return next(((key, value) for key, value in node.value if key.value == name), None)


def _end(node: yaml.Node) -> int:
    """Where the text of a node ends. The mark of a block lies behind blanks and comments that are not its own."""
    match node:
        case yaml.MappingNode() | yaml.SequenceNode() if not node.flow_style and node.value:
            last = cast("yaml.Node | tuple[yaml.Node, yaml.Node]", node.value[-1])
            return _end(last[1] if isinstance(last, tuple) else last)
        case _:
            return node.end_mark.index


def _is_block(node: yaml.Node) -> bool:
    return isinstance(node, yaml.MappingNode | yaml.SequenceNode) and not node.flow_style


def _replaced(text: str, old: yaml.Node, value: str) -> str:
    start = old.start_mark.index
    if _is_block(old):
        start = text.rindex(":", 0, start) + 1
        value = f" {value}"
    return text[:start] + value + text[_end(old) :]


def _with_key(text: str, parent: yaml.MappingNode, entry: str) -> str:
    end = _end(parent)
    if parent.flow_style:
        brace = text.rindex("}", 0, end)
        return text[:brace].rstrip() + (", " if parent.value else "") + entry + text[brace:]
    indent = " " * parent.value[0][0].start_mark.column
    return _line_after(text, end, indent + entry)


def _appended(text: str, parent: yaml.SequenceNode, item: str) -> str:
    end = _end(parent)
    if parent.flow_style:
        bracket = text.rindex("]", 0, end)
        return text[:bracket].rstrip() + (", " if parent.value else "") + item + text[bracket:]
    dash = text.rindex("-", 0, parent.value[0].start_mark.index)
    indent = " " * (dash - (text.rfind("\n", 0, dash) + 1))
    return _line_after(text, end, f"{indent}- {item}")


def _line_after(text: str, at: int, line: str) -> str:
    newline = text.find("\n", at)
    if newline < 0:
        return f"{text}\n{line}\n"
    return f"{text[: newline + 1]}{line}\n{text[newline + 1 :]}"


def _dropped(text: str, root: yaml.Node, path: tuple[str | int, ...]) -> str | None:
    parent, name = _node(root, path[:-1]), path[-1]
    if not isinstance(parent, yaml.MappingNode) or not isinstance(name, str):
        return None
    found = _entry(parent, name)
    if found is None:
        return None
    if len(parent.value) == 1:
        return _dropped(text, root, path[:-1]) if len(path) > 1 else None
    key, value = found
    start, end = key.start_mark.index, _end(value)
    if not parent.flow_style:
        first, last = text.rfind("\n", 0, start) + 1, text.find("\n", end)
        return text[:first] + ("" if last < 0 else text[last + 1 :])
    rest = text[end:]
    behind = re.match(r"\s*,\s*", rest)
    if behind:
        return text[:start] + rest[behind.end() :]
    return re.sub(r",\s*$", "", text[:start]) + rest
