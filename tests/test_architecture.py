"""The house stands as docs/design.md draws it: who may import whom, what is pure, how files are named, what no file says.

The rules are the tables at the top. Each is also tried on a planted breach, so that a rule that sees nothing is noticed.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# Whom each layer may import of ours. A folder that is not named here is free: the composition roots, tests, benchmarks.
MAY_IMPORT = {
    "domain": ("domain",),
    "activities": ("activities", "domain"),
    "workflows": ("workflows", "activities", "domain"),
    "adapters": ("adapters", "domain", "activities.ports"),
    "simulator": ("simulator",),
}
FREE = ("worker", "starter", "commands", "gateway", "tests", "benchmarks")
OURS = {*MAY_IMPORT, *FREE}

# Libraries that a layer may import. A layer that is not named may import any that pyproject.toml asks for.
LIBRARIES = {
    "domain": {"pydantic", "pydantic_core", "rfc8785", "jmespath", "re2", "jsonschema_rs"},
    "activities": {"temporalio", "pydantic"},
    "workflows": {"temporalio", "pydantic"},
}

# Parts of the standard library that touch the world. A name covers all below it.
NETWORK = {"socket", "ssl", "http.client", "urllib.request", "smtplib", "ftplib", "sqlite3", "subprocess", "multiprocessing"}
WORLD = NETWORK | {
    "os",
    "io",
    "sys",
    "time",
    "random",
    "secrets",
    "asyncio",
    "threading",
    "pathlib",
    "tempfile",
    "shutil",
    "glob",
    "logging",
}
UNTOUCHED = {
    "domain": WORLD | {"importlib"},
    "workflows": WORLD - {"asyncio", "logging"} | {"importlib"},
    "activities": NETWORK | {"importlib", "pathlib", "tempfile", "shutil", "random"},
}
# Calls that read a clock, draw or touch a file, where nothing but names tells.
UNCALLED = {
    "domain": {"now", "utcnow", "today", "uuid1", "uuid4", "open", "print", "input", "exec", "eval", "__import__"},
    "workflows": {"utcnow", "today", "uuid1", "open", "print", "input", "exec", "eval", "__import__"},
}

NAMELESS = {"utils", "util", "helpers", "helper", "common", "manager", "managers", "base", "misc"}
LONGEST, LONGEST_OF_TESTS = 400, 800  # a table of cases may be longer than a rule
# Python files over that, each with its reason.
LONGER = {
    "domain/evidence.py": "the closed unions of all evidence; a kind is read beside the others",
}

# What no file says, written so that this file does not say it either.
UNSAID = {
    "the host of a registry": re.compile(r"py" r"pi\.org|pythonh" r"osted\.|registry\.np" r"mjs|proxy\.gol" r"ang|index\.crat" r"es"),
    "a path of one machine": re.compile(r"(?<![\w.~}*-])/(?:wo" r"rk|ro" r"ot|ho" r"me|Us" r"ers)/(?!\*)"),
}


@dataclass(frozen=True)
class Module:
    name: str
    source: str

    @property
    def layer(self) -> str:
        return self.name.partition(".")[0]

    @property
    def tree(self) -> ast.Module:
        return ast.parse(self.source)


@cache
def files() -> tuple[Path, ...]:
    """All files that are committed or would be."""
    listed = subprocess.run(["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True).stdout
    paths = (ROOT / name for name in listed.decode().split("\0") if name)
    return tuple(sorted(path for path in paths if path.is_file()))


def modules() -> list[Module]:
    names = [(path, path.relative_to(ROOT).with_suffix("").parts) for path in files() if path.suffix == ".py"]
    ours = [(path, parts) for path, parts in names if parts[0] in OURS]
    return [Module(".".join(parts).removesuffix(".__init__"), path.read_text("utf-8")) for path, parts in ours]


def imports(module: Module, known: set[str]) -> Iterator[str]:
    """What a module imports, as full names; `from a import b` is a.b where that is a module of ours, else a."""
    package = module.name.split(".")
    for node in ast.walk(module.tree):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=source, names=names, level=level):
                above = package[: len(package) - level] if level else []
                origin = ".".join([*above, *([source] if source else [])])
                yield from (full if (full := f"{origin}.{alias.name}") in known else origin for alias in names)
            case _:
                pass


def covered(name: str, names: set[str] | tuple[str, ...]) -> bool:
    return any(name == other or name.startswith(other + ".") for other in names)


def breaches(module: Module, known: set[str]) -> list[str]:
    """Each import or call of a module that its layer may not have."""
    layer = module.layer
    if layer not in MAY_IMPORT:
        return []
    found: list[str] = []
    for name in imports(module, known):
        top = name.partition(".")[0]
        if top in OURS:
            allowed = covered(name, MAY_IMPORT[layer])
        elif top in sys.stdlib_module_names:
            allowed = not covered(name, UNTOUCHED.get(layer, set()))
        else:
            allowed = top in LIBRARIES.get(layer, {top})
        if not allowed:
            found.append(f"{module.name} imports {name}")
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            ours = layer == "workflows" and isinstance(node.func, ast.Attribute) and getattr(node.func.value, "id", "") == "workflow"
            if name in UNCALLED.get(layer, set()) and not ours:
                found.append(f"{module.name}:{node.lineno} calls {name}()")
    return found


def circle(graph: dict[str, set[str]]) -> list[str]:
    """One circle of imports, or nothing."""
    done: set[str] = set()

    def walk(name: str, trail: list[str]) -> list[str]:
        if name in trail:
            return [*trail[trail.index(name) :], name]
        if name in done:
            return []
        for other in sorted(graph.get(name, set())):
            if found := walk(other, [*trail, name]):
                return found
        done.add(name)
        return []

    return next((found for name in sorted(graph) if (found := walk(name, []))), [])


def test_every_import_and_call_stays_within_its_layer():
    all_modules = modules()
    known = {module.name for module in all_modules}
    assert [breach for module in all_modules for breach in breaches(module, known)] == []
    assert "domain" in {module.layer for module in all_modules}, "nothing was looked at"


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("domain.rule", "import activities.ports"),
        ("domain.rule", "from pathlib import Path"),
        ("domain.rule", "from os.path import join"),
        ("domain.rule", "import temporalio"),
        ("domain.rule", "def f():\n    from adapters import sql_ledger"),
        ("domain.rule", "import datetime\ndatetime.datetime.now()"),
        ("domain.rule", "import uuid\nuuid.uuid4()"),
        ("activities.verb", "from adapters import http_provider"),
        ("activities.verb", "import httpx"),
        ("activities.verb", "import socket"),
        ("workflows.story", "from adapters.client import start"),
        ("workflows.story", "import time"),
        ("adapters.plug", "from activities import provider"),
        ("adapters.plug", "from workflows.operation import OperationWorkflow"),
        ("adapters.plug", "import gateway"),
        ("simulator.app", "from domain import exchange"),
    ],
)
def test_a_planted_breach_is_found(name: str, source: str):
    assert breaches(Module(name, source), {"activities.ports", "activities.provider", "adapters.http_provider"}) != []


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("domain.rule", "from datetime import datetime\nfrom domain.errors import BadInput\nimport re2"),
        ("activities.verb", "import asyncio\nfrom temporalio import activity\nfrom activities.ports import Ledger"),
        ("workflows.story", "from temporalio import workflow\nworkflow.now()\nworkflow.uuid4()"),
        ("adapters.plug", "import httpx\nfrom activities import ports"),
        ("gateway.app", "from adapters import client"),
    ],
)
def test_what_a_layer_may_do_is_let_through(name: str, source: str):
    assert breaches(Module(name, source), {"activities.ports"}) == []


def shared_and_changeable(source: str) -> list[str]:
    """Names of a module that all operations of a process would share and could change, and functions that change one."""
    tree = ast.parse(source)
    changeable = (ast.Dict, ast.List, ast.Set, ast.DictComp, ast.ListComp, ast.SetComp, ast.GeneratorExp)
    makers = {"dict", "list", "set", "deque", "defaultdict", "OrderedDict", "Counter", "bytearray", "count", "iter", "open"}
    found = [name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names]
    for node in tree.body:
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
        called = getattr(value.func, "id", getattr(value.func, "attr", None)) if isinstance(value, ast.Call) else None
        if isinstance(value, changeable) or called in makers:
            found.append(ast.unparse(node).split("=")[0].strip())
    return found


def test_no_workflow_file_holds_what_one_operation_could_leave_to_another():
    files = list((ROOT / "workflows").glob("*.py"))
    assert files
    assert {path.name: names for path in files if (names := shared_and_changeable(path.read_text()))} == {}


@pytest.mark.parametrize("source", ["SEEN = []", "SEEN: dict[str, int] = {}", "from collections import deque\nSEEN = deque()",
                                    "def run():\n    global seen\n    seen = 1"])  # fmt: skip
def test_a_planted_share_is_found(source: str):
    assert shared_and_changeable(source)


def test_no_two_domain_files_need_each_other():
    domain = [module for module in modules() if module.layer == "domain"]
    known = {module.name for module in domain}
    assert circle({module.name: set(imports(module, known)) & known - {"domain"} for module in domain}) == []
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]


def test_every_top_folder_says_what_it_is_for():
    folders = sorted({path.relative_to(ROOT).parts[0] for path in files() if len(path.relative_to(ROOT).parts) > 1})
    silent = [folder for folder in folders if not folder.startswith(".") and len(purpose(ROOT / folder)) < 40]
    assert silent == [], "give each a docstring in __init__.py or a README.md"


def purpose(folder: Path) -> str:
    package, readme = folder / "__init__.py", folder / "README.md"
    said = (ast.get_docstring(ast.parse(package.read_text("utf-8"))) or "") if package.is_file() else ""
    return said or (readme.read_text("utf-8") if readme.is_file() else "")


def test_a_long_file_has_a_reason():
    long: set[str] = set()
    for path in files():
        name = path.relative_to(ROOT).as_posix()
        limit = LONGEST_OF_TESTS if name.startswith("tests/") else LONGEST
        if path.suffix == ".py" and len(path.read_text("utf-8").splitlines()) > limit:
            long.add(name)
    assert long - LONGER.keys() == set(), "split it, or give LONGER its reason"
    assert LONGER.keys() - long == set(), "these reasons are no longer needed"


def test_every_file_has_a_name_of_its_own():
    words = {path: set(re.split(r"[^a-z]+", path.name.lower())) for path in files()}
    assert [path.relative_to(ROOT).as_posix() for path, parts in words.items() if parts & NAMELESS] == []


def test_no_file_names_a_registry_or_a_machine():
    said = [
        f"{path.relative_to(ROOT)}: {what}"
        for path in files()
        if b"\0" not in (content := path.read_bytes())
        for what, pattern in UNSAID.items()
        if pattern.search(content.decode("utf-8", "replace"))
    ]
    assert said == []


def test_the_unsaid_is_recognised():
    assert UNSAID["the host of a registry"].search("https://py" + "pi.org/simple")
    assert UNSAID["a path of one machine"].search('open("/ro' + 'ot/x")')
    assert not UNSAID["a path of one machine"].search("https://api.example/v1/wo" + "rk/1")


def test_the_lock_has_a_hash_for_everything_and_no_address():
    lock = (ROOT / "requirements.lock").read_text("utf-8")
    requirements = re.split(r"\n(?=\S)", lock.strip())
    assert [entry for entry in requirements if not re.match(r"[a-z0-9][a-z0-9.-]*(\[[a-z0-9,-]+\])?==\S+", entry)] == []
    assert [entry for entry in requirements if "--hash=sha256:" not in entry] == []
    assert re.findall(r"https?://|--(?:extra-)?index-url|--find-links| @ ", lock) == []
