"""docker-compose.yml and Dockerfile, as far as they can be judged without starting them.

The Compose Specification's schema says whether the words are right; the rest looks at what the schema does not know:
pinned images, health, secrets, networks, what is published.
"""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
SCHEMA = ROOT / "tests" / "fixtures" / "compose-spec" / "compose-spec.json"
SCHEMA_SHA256 = "d549057ebc2925f39f62799eab0db7b9e2c18b35b6c00595199116da3ed10e64"
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
# Ends by itself: `migrate` and the two that set Temporal up.
JOBS = {"temporal-schema", "temporal-namespace", "migrate"}
# Started by hand, one command at a time.
BY_HAND = {"cli"}
EXACT = re.compile(r"[a-z0-9./-]+:\d+\.\d+(\.\d+)?(-[a-z0-9.-]+)?(@sha256:[0-9a-f]{64})?")


def names(value: Any) -> set[str]:
    """The names in a list or map of references, short or long form."""
    if isinstance(value, dict):
        return set(value)
    return {entry["source"] if isinstance(entry, dict) else str(entry).partition(":")[0] for entry in value or ()}


def used(key: str) -> set[str]:
    return {name for service in SERVICES.values() for name in names(service.get(key))}


def schema() -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(json.loads(SCHEMA.read_text("utf-8")))


def test_the_schema_is_the_published_one():
    assert hashlib.sha256(SCHEMA.read_bytes()).hexdigest() == SCHEMA_SHA256


def test_the_compose_file_follows_the_compose_specification():
    assert [f"{error.instance_path}: {error.message}" for error in schema().iter_errors(COMPOSE)] == []


@pytest.mark.parametrize("breach", [{"healthchek": {}}, {"ports": {"80": 80}}, {"restart": ["always"]}, {"secrets": "one"}])
def test_the_schema_finds_a_planted_mistake(breach: dict[str, Any]):
    broken = COMPOSE | {"services": SERVICES | {"worker": SERVICES["worker"] | breach}}
    assert not schema().is_valid(broken)


def test_every_image_is_pinned_to_an_exact_version():
    assert [name for name, service in SERVICES.items() if not EXACT.fullmatch(service["image"])] == []


def test_every_service_that_stays_up_is_asked_for_its_health():
    lasting = SERVICES.keys() - JOBS - BY_HAND
    assert [name for name in lasting if not SERVICES[name].get("healthcheck", {}).get("test")] == []
    assert [name for name in lasting if SERVICES[name].get("restart") != "unless-stopped"] == []


def test_a_job_ends_and_is_waited_for():
    assert [name for name in JOBS if not str(SERVICES[name].get("restart", "")).startswith("on-failure")] == []
    waited = {other for service in SERVICES.values() for other, how in after(service) if how == "service_completed_successfully"}
    assert waited == JOBS


def after(service: dict[str, Any]) -> list[tuple[str, str]]:
    return [(other, how["condition"]) for other, how in service.get("depends_on", {}).items()]


def test_nothing_waits_for_a_health_that_is_never_told():
    for name, service in SERVICES.items():
        for other, how in after(service):
            assert other in SERVICES, f"{name} waits for {other}"
            if how == "service_healthy":
                assert SERVICES[other].get("healthcheck", {}).get("test"), f"{name} waits for {other}"


def test_only_loopback_is_published():
    published = {name: service["ports"] for name, service in SERVICES.items() if service.get("ports")}
    assert published.keys() == {"temporal-ui"}
    assert [port for ports in published.values() for port in ports if not str(port).startswith("127.0.0.1:")] == []


@pytest.mark.parametrize("key", ["networks", "secrets", "configs"])
def test_what_is_declared_is_used_and_what_is_used_is_declared(key: str):
    assert used(key) == COMPOSE[key].keys()


def test_every_volume_is_declared_or_a_folder_that_must_be_there():
    mounts = [mount for service in SERVICES.values() for mount in service.get("volumes", ())]
    folders = [mount for mount in mounts if isinstance(mount, dict)]
    assert {str(mount).partition(":")[0] for mount in mounts if isinstance(mount, str)} == COMPOSE["volumes"].keys()
    assert all(mount["read_only"] and not mount["bind"]["create_host_path"] for mount in folders)


def test_both_stores_are_out_of_reach_but_for_their_own():
    reach = {network: {name for name, service in SERVICES.items() if network in service["networks"]} for network in COMPOSE["networks"]}
    assert reach["ledger"] == {"ledger-store", "migrate", "worker", "cli"}
    assert reach["temporal-store"] == {"temporal-store", "temporal-schema", "temporal"}
    assert reach["providers"] == {"worker"}
    assert {name for name, network in COMPOSE["networks"].items() if network.get("internal")} == {"temporal", "temporal-store", "ledger"}


def test_no_secret_stands_in_the_file():
    assert {secret["file"] for secret in COMPOSE["secrets"].values()} == {"./secrets/temporal_store_password", "./secrets/ledger_password"}
    secretive = re.compile("PASSWORD|PWD|SECRET|TOKEN|KEY")
    told = {(name, key, str(value)) for name, service in SERVICES.items() for key, value in service.get("environment", {}).items()}
    assert [entry for entry in told if secretive.search(entry[1]) and not entry[2].startswith("/run/")] == []
    assert [entry for entry in told if re.search(r"://[^/@]*:[^/@]*@", entry[2])] == []


def test_the_folder_of_secrets_is_neither_committed_nor_built_in():
    assert "secrets/" in (ROOT / ".gitignore").read_text("utf-8").splitlines()
    ignored = [line for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines() if line and not line.startswith("#")]
    assert ignored[0] == "*", "everything is left out first"
    assert not any("secret" in line or ".sakshi" in line for line in ignored[1:])


@pytest.mark.parametrize("name", ["worker", "migrate", "cli"])
def test_our_own_containers_can_change_nothing_and_be_many(name: str):
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["user"] == "10001:10001"
    assert not {"container_name", "ports", "privileged", "network_mode", "hostname"} & service.keys()


def test_the_image_is_made_from_pinned_and_hashed_parts_and_runs_as_nobody():
    dockerfile = (ROOT / "Dockerfile").read_text("utf-8")
    stages = re.findall(r"^FROM (\S+)", dockerfile, re.MULTILINE)
    assert len(stages) == 2
    assert len(set(stages)) == 1
    assert EXACT.fullmatch(stages[0])
    assert "--require-hashes" in dockerfile
    assert re.findall(r"^USER (\S+)", dockerfile, re.MULTILINE)[-1] == "10001:10001"
    assert re.search(r"^HEALTHCHECK ", dockerfile, re.MULTILINE)
    assert not re.search(r"\b(?:curl|wget|ADD https?:)", dockerfile)
    assert re.findall(r"^COPY (?!--from)(\S.*)$", dockerfile, re.MULTILINE) == ["pyproject.toml requirements.lock ./", ". ."]
