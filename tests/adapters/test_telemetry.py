import json
import logging
from collections.abc import Iterator
from types import MappingProxyType

import pytest
import structlog

from adapters.telemetry import REDACTED, SILENT, configure_logging, log, redact

SECRET = "hunter2-hunter2"


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:], root.level = handlers, level
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()
    for name in SILENT:
        logging.getLogger(name).setLevel(logging.NOTSET)


@pytest.mark.parametrize(
    "event",
    [
        {"authorization": f"Bearer {SECRET}"},
        {"headers": {"Authorization": SECRET, "X-Api-Key": SECRET}},
        {"said": f"sent Bearer {SECRET} to it"},
        {"url": f"postgresql://sakshi:{SECRET}@db/sakshi"},
        {"list": [{"password": SECRET}, f"Basic {SECRET}="]},
        {"key": f"-----BEGIN PRIVATE KEY-----\n{SECRET}\n-----END PRIVATE KEY-----"},
        {"raw": SECRET.encode()},
        {"deep": [[[[[[[[[[SECRET]]]]]]]]]]},
        {"error": ValueError(f"Bearer {SECRET}")},
        {"access_token": SECRET, "refreshToken": SECRET, "aws": {"secret_access_key": SECRET, "x-amz-security-token": SECRET}},
        {"said": f"https://files.example/a?X-Amz-Signature={SECRET}&x=1 and redis://:{SECRET}@db/0 and https://{SECRET}@git.example/a"},
        {"said": f'{{"access_token": "{SECRET}", "n": 1}}'},
        {"said": f"a form client_id=a&client_secret={SECRET}&scope=x"},
        {"said": f"Set-Cookie: {SECRET}; path=/"},
        {"said": f"authorization: Token {SECRET}"},
        {"said": f"x-api-key:{SECRET}"},
        {"said": f"password: '{SECRET}', and so on"},
        {"said": f"Settings(password='{SECRET}', port=1)"},
        {"said": f"a token eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI0MiJ9.{SECRET} was refused"},
        {f"Bearer {SECRET}": 1},
        {"raw": bytearray(SECRET.encode()), "seen": memoryview(SECRET.encode())},
        {"proxied": MappingProxyType({"password": SECRET})},
    ],
)
def test_what_is_called_or_looks_like_a_secret_is_replaced(event: dict[str, object]):
    assert SECRET not in str(redact(None, "info", event))


def test_what_is_none_stays_as_it_is():
    event = {"state": "observing", "seq": 3, "ratio": 0.5, "final": False, "job": None, "tokens_used": 4}
    assert redact(None, "info", dict(event)) == event
    said = {
        "event": "is it there? yes: 3 tokens, the token of generation 2, key=value; see https://x.example/a and a signature that fails",
        "why": "credential acme gets no token: the token endpoint https://id.example answered 400: invalid_client",
    }
    assert redact(None, "info", dict(said)) == said


def test_each_event_is_one_line_of_json_on_stderr_and_names_the_worker(capsys: pytest.CaptureFixture[str]):
    configure_logging(form="json", identity="1@host")
    log().info("working", password=SECRET, operation="x")
    logging.getLogger("temporalio.worker").warning("Bearer %s", SECRET)
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [line["event"] for line in lines] == ["working", REDACTED]
    assert lines[0] | {"worker": "1@host", "password": REDACTED, "operation": "x"} == lines[0]
    assert SECRET not in json.dumps(lines)


def test_an_exception_is_rendered_and_then_redacted(capsys: pytest.CaptureFixture[str]):
    configure_logging(form="json")
    try:
        raise RuntimeError(f"Bearer {SECRET}")
    except RuntimeError:
        logging.getLogger("temporalio").exception("it broke")
    said = capsys.readouterr().err
    assert "RuntimeError" in said
    assert SECRET not in said


def test_libraries_that_log_what_they_send_are_silent(capsys: pytest.CaptureFixture[str]):
    configure_logging(level="debug", form="text")
    logging.getLogger("httpcore.http11").debug("send_request_headers %s", SECRET)
    logging.getLogger("httpx").info("HTTP Request: GET %s", SECRET)
    assert capsys.readouterr().err == ""
