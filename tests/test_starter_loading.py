"""What commands load: nothing that their answer does not need. Times depend on the machine; what is loaded does not."""

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from activities.ports import Owner
from adapters.client import sakshi
from adapters.settings import ROOT, Settings
from adapters.sqlite_glance import glance
from domain.errors import BadInput
from tests.adapters.sql_ledger_cases import opening, policy, said

NEEDLESS_TO_LOOK = (
    *("temporalio", "httpx", "httpcore", "cedarpy", "alembic", "mako", "asyncpg", "obstore", "starlette", "uvicorn", "jsonschema_rs"),
    *("sqlalchemy.ext.asyncio", "sqlalchemy.orm", "yaml"),
)
NEEDLESS_TO_HELP = (*NEEDLESS_TO_LOOK, "sqlalchemy", "asyncio", "rich", "domain.evidence", "domain.messages", "adapters")
LIBRARIES = {
    "--help": (*NEEDLESS_TO_HELP, "pydantic"),
    "run --help": NEEDLESS_TO_HELP,  # the library reads options with pydantic; no model of ours is among them
    "contracts --help": NEEDLESS_TO_HELP,
    "contracts new --help": NEEDLESS_TO_HELP,
    "status op-1": (*NEEDLESS_TO_LOOK, "sqlalchemy"),
    "status op-1 --json": (*NEEDLESS_TO_LOOK, "sqlalchemy", "rich"),
    "list": (*NEEDLESS_TO_LOOK, "adapters.sql_verifying"),
    "evidence op-1": NEEDLESS_TO_LOOK,
}
TRIED = "import sys, starter; code = starter.main(sys.argv[1:]); print('\\n'.join(sys.modules), file=sys.stderr); sys.exit(code)"


@pytest.fixture
async def home(tmp_path: Path) -> Path:
    """The home of an embedded stack that nothing of is running: a ledger with three operations."""
    settings = Settings(home=tmp_path / "home", local_user="ada")
    async with sakshi(settings) as there:
        for stream in ("op-1", "op-1-2", "other"):
            await there.ledger.open(opening(stream))
        await there.ledger.append("op-1", said(policy()), owner=Owner("run-1", 1))
    return settings.home


def spoken(home: Path, words: str) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("SAKSHI_", "TEMPORAL_"))}
    environ |= {"SAKSHI_HOME": str(home), "SAKSHI_LOCAL_USER": "ada", "XDG_CONFIG_HOME": str(home)}
    return subprocess.run([sys.executable, "-c", TRIED, *words.split()], cwd=ROOT, capture_output=True, text=True, check=True, env=environ)


@pytest.mark.parametrize("words", LIBRARIES)
def test_a_command_loads_nothing_that_its_answer_does_not_need(home: Path, words: str):
    loaded = spoken(home, words).stderr.splitlines()
    assert "typer" in loaded
    assert [name for name in loaded if any(name == heavy or name.startswith(f"{heavy}.") for heavy in LIBRARIES[words])] == []


def test_what_is_seen_at_a_glance_is_what_the_ledger_proper_says(home: Path):
    glanced = json.loads(spoken(home, "status op-1 --json").stdout)
    (listed,) = (one for one in json.loads(spoken(home, "list --json").stdout)["items"] if one["id"] == "op-1")
    assert glanced["state"] == "approved"
    del listed["updated_at"]
    assert glanced == listed


MEANT = [("op-1", "op-1"), ("op-1-", "op-1-2"), ("oth", "other"), ("o", None), ("x", None), ("\ud800", None)]


@pytest.mark.parametrize(("prefix", "meant"), MEANT)
def test_a_glance_sees_the_one_operation_that_is_meant(home: Path, prefix: str, meant: str | None):
    row = glance(Settings(home=home), prefix)
    assert (None if row is None else row.stream) == meant


async def test_a_glance_sees_every_column_as_the_ledger_proper_does(home: Path):
    async with sakshi(Settings(home=home)) as there:
        assert glance(Settings(home=home), "op-1") == await there.books.row("op-1")


def test_a_glance_leaves_another_version_s_tables_to_the_ledger_proper(home: Path):
    changed(home, "UPDATE alembic_version SET version_num = '9999'")
    assert glance(Settings(home=home), "op-1") is None


def test_a_glance_leaves_what_is_no_ledger_to_the_ledger_proper(home: Path):
    (home / "ledger.db").write_bytes(b"not a database" * 100)
    assert glance(Settings(home=home), "op-1") is None


def test_a_glance_makes_nothing(tmp_path: Path):
    assert glance(Settings(home=tmp_path / "none"), "op-1") is None
    assert list(tmp_path.iterdir()) == []


def test_a_glance_is_for_the_embedded_ledger(home: Path):
    assert glance(Settings(home=home, ledger_url=f"sqlite:///{home / 'ledger.db'}"), "op-1") is None


def test_a_glance_goes_by_the_rules_of_the_home_folder(home: Path, monkeypatch: pytest.MonkeyPatch):
    home.chmod(0o755)
    monkeypatch.setattr(os, "geteuid", lambda: home.stat().st_uid + 1)
    with pytest.raises(BadInput, match="open to others"):
        glance(Settings(home=home), "op-1")


def changed(home: Path, statement: str) -> None:
    connection = sqlite3.connect(home / "ledger.db")
    with connection:
        connection.execute(statement)
    connection.close()
