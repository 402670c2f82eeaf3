"""What an installation may set, as one model. docs/settings.md is its table, and a test compares the two.

* Every setting has a default under which the whole stack is embedded: under `home`, for its owner only, loopback only.
* `embedded` means *all* parts embedded. One external address, of Temporal, the ledger or the results, ends it.
* No setting holds a secret: a password is the name of a file, a credential lies in the secrets folder or in
  `SAKSHI_CREDENTIAL_<NAME>`, and neither is read here.
* An unusable value is one clear message that names the variable and does not repeat the value.
"""

import getpass
import json
import os
import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal, cast
from urllib.parse import quote

from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

from adapters.addresses import parse_origin
from domain.errors import AddressError, BadInput
from domain.messages import CALLERS_ID, PERSON

ROOT = Path(__file__).resolve().parent.parent
PREFIX = "SAKSHI_"
_PERSON = re.compile(PERSON)

TargetSets = dict[str, dict[str, str]]


def _local_user() -> str:
    try:
        name = getpass.getuser()
    except (OSError, KeyError):
        return "local"
    return name if _PERSON.fullmatch(name) else "local"


class Settings(BaseSettings):
    """The settings, read once by a composition root and handed on."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="ignore", frozen=True, env_ignore_empty=True)

    home: Annotated[Path, Field(description="Folder of the embedded stack: its ledger, results, secrets, Temporal state and logs.")] = (
        ROOT / ".sakshi"
    )
    ledger_url: Annotated[
        str | None,
        Field(description="The ledger: `postgresql+asyncpg://user@host:port/database`, or `sqlite:///FILE`. No password in it."),
    ] = None
    ledger_password_file: Annotated[Path | None, Field(description="File that holds the ledger's password.")] = None
    results_url: Annotated[
        str | None, Field(description="Where results are kept: a folder, or `file://`, `s3://`, `gs://`, `az://` with bucket and prefix.")
    ] = None
    secrets_dir: Annotated[Path | None, Field(description="Folder with one file per credential. Unset: `secrets` in the home folder.")] = (
        None
    )
    contracts_dir: Annotated[Path, Field(description="Folder of the contracts.")] = ROOT / "contracts"
    policies_dir: Annotated[Path, Field(description="Folder of the policy bundle.")] = ROOT / "policies"
    targets: Annotated[
        TargetSets,
        NoDecode,
        Field(
            description='Named sets of target values for `--target`, as JSON or the path of a JSON file: `{"eu": {"shop": "acme-eu"}}`. '
            "Without `--target` the set named like the contract's provider counts."
        ),
    ] = {}
    allowed_origins: Annotated[
        tuple[str, ...],
        NoDecode,
        Field(description="Origins that may be called although they are private or plain http, separated by commas."),
    ] = ()
    drafts: Annotated[bool, Field(description="Contracts of version 0 may be run.")] = False
    local_user: Annotated[str, Field(description="Who acts where no one is named. Unset: the user of this machine.")] = Field(
        default_factory=_local_user
    )
    tenant: Annotated[str, Field(description="The tenant where none is named.", pattern=f"^{CALLERS_ID}$")] = "local"
    slots_effects: Annotated[
        int, Field(description="Creates and cancels that one worker does at a time; as many lookups beside them.", ge=1, le=10_000)
    ] = 20
    slots_reads: Annotated[int, Field(description="Status reads and collections that one worker does at a time.", ge=1, le=10_000)] = 100
    slots_workflows: Annotated[int, Field(description="Workflow tasks that one worker does at a time.", ge=2, le=10_000)] = 40
    cached_workflows: Annotated[
        int,
        Field(description="Workflows that one worker keeps between their tasks; any other is replayed when it goes on.", ge=0, le=100_000),
    ] = 500
    drain: Annotated[float, Field(description="Seconds that a worker told to stop gives to what it is doing.", ge=0, le=3600)] = 10.0
    log_level: Annotated[Literal["debug", "info", "warning", "error"], Field(description="What the worker logs.")] = "info"
    log_format: Annotated[Literal["auto", "json", "text"], Field(description="`auto` is text on a terminal, JSON lines anywhere else.")] = (
        "auto"
    )

    @classmethod
    def settings_customise_sources(  # the environment alone: a stray .env file or secrets folder changes nothing
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, env_settings

    @field_validator("home", "ledger_password_file", "secrets_dir", "contracts_dir", "policies_dir", mode="after")
    @classmethod
    def _absolute(cls, value: Path | None) -> Path | None:
        return None if value is None else value.expanduser().absolute()

    @field_validator("targets", mode="before")
    @classmethod
    def _targets(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        text = value if value.lstrip().startswith("{") else _file_text(Path(value))
        try:
            return json.loads(text)
        except ValueError:
            raise ValueError("is neither JSON nor the path of a JSON file") from None

    @field_validator("allowed_origins", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value

    @field_validator("allowed_origins", mode="after")
    @classmethod
    def _origins(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for text in value:
            try:
                parse_origin(text)
            except AddressError:
                raise ValueError("is a list of origins such as https://api.internal:8443, separated by commas") from None
        return value

    @field_validator("local_user", mode="after")
    @classmethod
    def _person(cls, value: str) -> str:
        if not _PERSON.fullmatch(value):
            raise ValueError("is at most 128 characters without control characters")
        return value

    @field_validator("ledger_url", mode="after")
    @classmethod
    def _no_password(cls, value: str | None) -> str | None:
        authority = (value or "").partition("://")[2].partition("/")[0]
        if ":" in authority.rpartition("@")[0]:
            raise ValueError("holds a password; put it into the file that SAKSHI_LEDGER_PASSWORD_FILE names")
        return value

    @cached_property
    def temporal_address(self) -> str | None:
        """Temporal's address as the environment or a profile gives it; None: the embedded one."""
        if not _temporal_is_configured(os.environ):
            return None
        from temporalio.envconfig import ClientConfigProfile

        try:
            return ClientConfigProfile.load().address
        except Exception as error:  # noqa: BLE001 - the loader's errors are of the library's core, and have no common class
            raise BadInput(f"Temporal's profile can't be read ({type(error).__name__})", hint="see TEMPORAL_CONFIG_FILE") from None

    @property
    def embedded(self) -> bool:
        """All parts are embedded: loopback, one owner, nothing leaves this machine but calls to providers."""
        return self.ledger_url is None and self.results_url is None and self.temporal_address is None

    @property
    def ledger(self) -> str:
        """The ledger's URL."""
        return self.ledger_url or f"sqlite:///{quote(str(self.home / 'ledger.db'))}"

    @property
    def results(self) -> str:
        """The result store's URL or folder."""
        return self.results_url or str(self.home / "results")

    @property
    def secrets(self) -> Path:
        """The secrets folder."""
        return self.secrets_dir or self.home / "secrets"

    def ledger_password(self) -> str | None:
        """The ledger's password, without its trailing newline."""
        if self.ledger_password_file is None:
            return None
        return _file_text(self.ledger_password_file).removesuffix("\n").removesuffix("\r")

    def prepare_home(self) -> Path:
        """The home folder, made for its owner only. Refused if others may enter it."""
        try:
            self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
            if self.home.stat().st_uid == os.geteuid():
                self.home.chmod(0o700)
            elif self.home.stat().st_mode & 0o077:
                raise BadInput(f"{self.home} belongs to someone else and is open to others", hint="set SAKSHI_HOME to a folder of your own")
        except OSError as error:
            raise BadInput(f"{self.home} can't be made or entered ({error.strerror})", hint="set SAKSHI_HOME") from None
        return self.home


def _temporal_is_configured(environ: Mapping[str, str]) -> bool:
    if any(environ.get(name) for name in ("TEMPORAL_ADDRESS", "TEMPORAL_PROFILE", "TEMPORAL_CONFIG_FILE")):
        return True
    base = environ.get("XDG_CONFIG_HOME") or str(Path("~/.config").expanduser())
    places = (Path(base), Path("~/Library/Application Support").expanduser())
    return any((place / "temporalio" / "temporal.toml").is_file() for place in places)


def _file_text(path: Path) -> str:
    try:
        return path.expanduser().read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        raise ValueError(f"{path} can't be read") from None


def variable(field: str) -> str:
    """The environment variable of a setting."""
    return f"{PREFIX}{field.upper()}"


def load_settings(**given: object) -> Settings:
    """The settings of this process. `given` wins over the environment. Raises BadInput."""
    try:
        return Settings(**given)  # pyright: ignore[reportArgumentType] - checked by the model
    except ValidationError as error:
        problems = [f"{variable(str(one['loc'][0]) if one['loc'] else '')}: {_without_value(one['msg'])}" for one in error.errors()]
        raise BadInput("\n".join(problems), hint="docs/settings.md lists the settings") from None


def _without_value(message: str) -> str:
    return message.removeprefix("Value error, ")


def unknown_variables(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Variables with our prefix that no setting has: most likely misspelt."""
    known = {variable(name) for name in Settings.model_fields}
    return tuple(sorted(n for n in environ if n.startswith(PREFIX) and n not in known and not n.startswith("SAKSHI_CREDENTIAL_")))


def settings_table() -> str:
    """The table of docs/settings.md, generated from the model."""
    lines = ["| variable | default | what it sets |", "| --- | --- | --- |"]
    for name, field in Settings.model_fields.items():
        lines.append(f"| `{variable(name)}` | {_default(name, field.default)} | {field.description} |")
    return "\n".join(lines)


def _default(name: str, default: object) -> str:
    match default:
        case Path():
            return f"`{default.relative_to(ROOT).as_posix()}` beside `starter.py`"
        case None | {} | ():
            return "unset"
        case bool() | int() | float() | str():
            return f"`{cast('object', str(default).lower() if isinstance(default, bool) else default)}`"
        case _:
            return "the machine's user" if name == "local_user" else "unset"
