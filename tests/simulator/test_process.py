"""The simulator as a process: its address, its end, and what outlives it."""

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.simulator.conftest import ASK, WITHIN

ROOT = Path(__file__).parents[2]


@contextmanager
def started(*options: str) -> Generator[tuple[subprocess.Popen[str], httpx.Client]]:
    command = [sys.executable, "-m", "simulator", *options]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = json.loads(process.stdout.readline())["url"]
            with httpx.Client(base_url=url, trust_env=False, timeout=WITHIN) as client:
                yield process, client
        finally:
            process.kill()


def ended(process: subprocess.Popen[str], how: signal.Signals) -> int:
    process.send_signal(how)
    return process.wait(WITHIN)


def test_it_listens_on_loopback_and_ends_on_sigterm_with_its_books_written(tmp_path: Path) -> None:
    with started("--books", str(tmp_path / "books.json"), "--polls", "0") as (process, client):
        assert client.base_url.host == "127.0.0.1"
        assert client.post("/v1/reports", json=ASK).status_code == 202
        assert ended(process, signal.SIGTERM) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""
    assert json.loads((tmp_path / "books.json").read_text())["created"] == 1


def test_it_ends_promptly_also_while_a_call_is_held() -> None:
    with started() as (process, client):
        client.post("/script", json={"match": {"kind": "create"}, "lies": ["hold"]})
        lost: list[httpx.TransportError] = []
        held = threading.Thread(target=_asks, args=(client.base_url, lost))
        held.start()
        until_held(client)
        assert ended(process, signal.SIGTERM) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""
        held.join(WITHIN)
        assert len(lost) == 1


def _asks(url: httpx.URL, lost: list[httpx.TransportError]) -> None:
    """A call whose answer the end of the process takes away."""
    with httpx.Client(base_url=url, trust_env=False, timeout=WITHIN) as client:
        try:
            client.post("/v1/reports", json=ASK)
        except httpx.TransportError as error:
            lost.append(error)


def until_held(client: httpx.Client) -> None:
    last = time.monotonic() + WITHIN
    while client.get("/health").json()["holding"] != 1:
        assert time.monotonic() < last, "the call is not held"


def test_jobs_tokens_lies_and_books_outlive_a_kill(tmp_path: Path) -> None:
    state = ("--state", str(tmp_path / "sim.db"), "--polls", "2")
    token = {"Idempotency-Key": "t-1", "X-Reference": "mark-1"}
    with started(*state) as (process, client):
        rule = {"match": {"kind": "create", "nth": 2}, "lies": ["error_500_stored"]}
        assert client.post("/script", json=rule).status_code == 201
        job = client.post("/v1/reports", json=ASK, headers=token).json()["job_id"]
        assert client.get(f"/v1/jobs/{job}").json()["state"] == "queued"
        assert client.post("/v1/reports", json=ASK, headers={"Idempotency-Key": "t-2"}).status_code == 500
        before = client.get("/books").json()
        ended(process, signal.SIGKILL)
    with started(*state) as (_, client):
        assert client.get("/books").json() == before
        assert client.post("/v1/reports", json=ASK, headers=token).json()["job_id"] == job
        assert client.post("/v1/reports", json=ASK, headers={"Idempotency-Key": "t-2"}).status_code == 500
        assert client.get("/v1/references/mark-1").json()["job_id"] == job
        assert [client.get(f"/v1/jobs/{job}").json()["state"] for _ in range(2)] == ["running", "succeeded"]
        assert client.get("/books").json()["created"] == 1


def test_the_credential_can_stand_in_a_file_so_that_no_process_list_shows_it(tmp_path: Path) -> None:
    (tmp_path / "bearer").write_text("s3cret-value\n")
    with started("--require-bearer", f"@{tmp_path / 'bearer'}") as (_, client):
        assert client.post("/v1/reports", json=ASK).status_code == 401
        assert client.post("/v1/reports", json=ASK, headers={"Authorization": "Bearer s3cret-value"}).status_code == 202


def test_a_taken_port_is_said_in_one_line() -> None:
    with started() as (_, client):
        port = str(client.base_url.port)
        second = subprocess.run(
            [sys.executable, "-m", "simulator", "--port", port], cwd=ROOT, capture_output=True, text=True, timeout=WITHIN
        )
    assert second.returncode == 1
    assert second.stderr.startswith(f"simulator: cannot listen on port {port}")
    assert second.stderr.count("\n") == 1
