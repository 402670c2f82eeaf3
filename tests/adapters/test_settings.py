from pathlib import Path

import pytest

from adapters.settings import Settings, load_settings, settings_table, unknown_variables
from adapters.sql_ledger import SqlLedger
from domain.errors import BadInput

DOCS = Path(__file__).parents[2] / "docs" / "settings.md"


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    for name in (
        "TEMPORAL_ADDRESS",
        "TEMPORAL_PROFILE",
        "TEMPORAL_CONFIG_FILE",
        *(f"SAKSHI_{field.upper()}" for field in Settings.model_fields),
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no-profile"))


def test_the_table_of_the_docs_is_the_model():
    assert settings_table() in DOCS.read_text("utf-8"), "replace the table in docs/settings.md by adapters.settings.settings_table()"


def test_every_setting_is_described():
    assert [name for name, field in Settings.model_fields.items() if not field.description] == []


def test_unset_everything_is_embedded_under_the_home_folder(tmp_path: Path):
    settings = load_settings(home=tmp_path)
    assert settings.embedded
    assert settings.ledger == f"sqlite:///{tmp_path}/ledger.db"
    assert settings.results == str(tmp_path / "results")
    assert settings.secrets == tmp_path / "secrets"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SAKSHI_LEDGER_URL", "postgresql+asyncpg://sakshi@db/sakshi"),
        ("SAKSHI_RESULTS_URL", "s3://bucket/results"),
        ("TEMPORAL_ADDRESS", "temporal.example:7233"),
    ],
)
def test_one_external_address_ends_the_embedded_stack(monkeypatch: pytest.MonkeyPatch, name: str, value: str):
    monkeypatch.setenv(name, value)
    assert not load_settings().embedded


def test_a_temporal_profile_counts_as_an_address(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    profile = tmp_path / "temporal.toml"
    profile.write_text('[profile.default]\naddress = "cloud.example:7233"\n')
    monkeypatch.setenv("TEMPORAL_CONFIG_FILE", str(profile))
    assert load_settings().temporal_address == "cloud.example:7233"


def test_a_broken_temporal_profile_is_one_clear_message(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    profile = tmp_path / "temporal.toml"
    profile.write_text("not toml [")
    monkeypatch.setenv("TEMPORAL_CONFIG_FILE", str(profile))
    with pytest.raises(BadInput, match="Temporal's profile"):
        _ = load_settings().embedded


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SAKSHI_SLOTS_READS", "hunter2"),
        ("SAKSHI_DRAFTS", "hunter2"),
        ("SAKSHI_TARGETS", "hunter2.json"),
        ("SAKSHI_TARGETS", '{"hunter2": 1}'),
        ("SAKSHI_TARGETS", "{hunter2"),
        ("SAKSHI_TENANT", "hunter2 with spaces"),
        ("SAKSHI_LOCAL_USER", "hunter2\n"),
        ("SAKSHI_LOG_LEVEL", "hunter2"),
        ("SAKSHI_ALLOWED_ORIGINS", "https://a.internal/path"),
    ],
)
def test_an_unusable_value_is_named_by_its_variable(monkeypatch: pytest.MonkeyPatch, name: str, value: str):
    monkeypatch.setenv(name, value)
    with pytest.raises(BadInput) as refused:
        load_settings()
    assert refused.value.message.startswith(name)
    assert refused.value.exit_code == 2


def test_a_password_in_the_ledgers_address_is_refused_and_not_repeated(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SAKSHI_LEDGER_URL", "postgresql+asyncpg://sakshi:hunter2@db/sakshi")
    with pytest.raises(BadInput, match="SAKSHI_LEDGER_PASSWORD_FILE") as refused:
        load_settings()
    assert "hunter2" not in refused.value.message + refused.value.hint


def test_the_ledgers_password_loses_its_newline(tmp_path: Path):
    file = tmp_path / "password"
    file.write_text("hunter2\r\n")
    settings = load_settings(ledger_password_file=file)
    assert settings.ledger_password() == "hunter2"
    assert "hunter2" not in repr(settings)
    assert load_settings().ledger_password() is None


def test_targets_are_json_or_a_file_of_json(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    file = tmp_path / "targets.json"
    file.write_text('{"eu": {"shop": "acme-eu"}}')
    monkeypatch.setenv("SAKSHI_TARGETS", str(file))
    assert load_settings().targets == {"eu": {"shop": "acme-eu"}}
    monkeypatch.setenv("SAKSHI_TARGETS", file.read_text())
    assert load_settings().targets == {"eu": {"shop": "acme-eu"}}


def test_origins_are_separated_by_commas(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SAKSHI_ALLOWED_ORIGINS", "https://a.internal, http://10.0.0.1:8080,")
    assert load_settings().allowed_origins == ("https://a.internal", "http://10.0.0.1:8080")


def test_a_variable_that_no_setting_has_is_found_and_a_credential_is_none():
    environ = {"SAKSHI_LEDGER_ULR": "x", "SAKSHI_CREDENTIAL_ACME": "x", "SAKSHI_TENANT": "x", "OTHER": "x"}
    assert unknown_variables(environ) == ("SAKSHI_LEDGER_ULR",)


def test_the_home_folder_is_made_for_its_owner_only(tmp_path: Path):
    home = tmp_path / "deep" / "home"
    load_settings(home=home).prepare_home()
    assert home.stat().st_mode & 0o777 == 0o700
    home.chmod(0o755)
    load_settings(home=home).prepare_home()
    assert home.stat().st_mode & 0o777 == 0o700


def test_a_home_folder_that_cannot_be_made_is_one_clear_message(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="can't be made"):
        load_settings(home=tmp_path / "file" / "home").prepare_home()


@pytest.mark.parametrize("name", ["plain", "with a blank", "100%20 sure", "what?", "a#b", "\u00fcber"])
async def test_a_ledger_lies_in_its_home_whatever_that_is_called(tmp_path: Path, name: str):
    settings = load_settings(home=tmp_path / name)
    settings.prepare_home()
    ledger = await SqlLedger.connect(settings.ledger)
    await ledger.aclose()
    assert (settings.home / "ledger.db").is_file()
