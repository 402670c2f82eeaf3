"""Logs: one event a line, JSON or text, and nothing in them that is a secret.

* Redaction is the last processor before rendering and knows names and shapes, not values: what is called like a secret, in an event or
  within a text, or looks like an authorization, is replaced wherever it stands. Addresses lose their query and who calls them.
* Libraries that log what they put on the wire are kept silent.
"""

import logging
import re
import sys
from collections.abc import Mapping
from typing import Literal, cast

import structlog
from structlog.typing import EventDict, Processor

SILENT = ("httpx", "httpcore", "hpack", "h11", "asyncpg", "sqlalchemy.engine", "urllib3", "filelock", "botocore", "oauthlib")
REDACTED = "[redacted]"
_CALLED = (
    r"authorization|cookie|password|passwd|passphrase|secret|credential_value|api[_-]?key|access[_-]?key|private[_-]?key|signature"
    r"|token(?:[_-]?value)?(?![a-z0-9_])"
)
_NAMES = re.compile(_CALLED, re.IGNORECASE)
# An authorization, who calls an address, the query of one, a signed token, a private key.
_SHAPES = re.compile(
    r"(?i)\b(?:bearer|basic)\s+[A-Za-z0-9._~+/=-]{6,}"
    r"|(?<=://)[^/\s@]+(?=@)"
    r"|(?<=\?)(?<!\s\?)[^\s?&=]{1,256}=[^\s\"'<>]*"
    r"|(?<![\w-])(?=[\w-]*\beyJ)[\w-]{11,}\.[\w-]{8,}\.[\w-]*"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)",
    re.DOTALL,
)
_NAMED = re.compile(
    r"""((?:authorization|cookie)["']?\s*[=:]\s*["']?)[^"'\r\n]+"""
    rf"""|((?:{_CALLED})["']?\s*(?:=\s*|:))(?:"[^"]*"|'[^']*'|[^\s"'&,;)}}\]]+)"""
    rf"""|((?:{_CALLED})["']?\s*:\s+)(?:"[^"]*"|'[^']*'|(?=[^\s\d]*\d)[^\s"'&,;)}}\]]{{8,}})""",
    re.IGNORECASE,
)
"""What follows such a name. In prose a colon and a blank may follow it: then only what is quoted, or is long and has a digit in it."""
MAX_DEPTH = 8


def redact(_: object, __: str, event: EventDict) -> EventDict:
    """The event without what is called, or looks like, a secret."""
    return cast("EventDict", _clean(event, 0))


def _clean(value: object, depth: int) -> object:
    if depth > MAX_DEPTH:
        return REDACTED
    if isinstance(value, Mapping):
        named = cast("Mapping[object, object]", value)
        return {_text(name): REDACTED if _NAMES.search(str(name)) else _clean(part, depth + 1) for name, part in named.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_clean(part, depth + 1) for part in cast("list[object]", value)]
    if isinstance(value, bytes | bytearray | memoryview):
        return f"{len(cast('bytes', value))} bytes"
    if value is None or isinstance(value, bool | int | float):
        return value
    return _text(value)


def _text(value: object) -> str:
    shapeless = _SHAPES.sub(REDACTED, value if isinstance(value, str) else str(value))
    return _NAMED.sub(lambda found: f"{found[found.lastindex or 0]}{REDACTED}", shapeless)


def configure_logging(*, level: str = "info", form: Literal["auto", "json", "text"] = "auto", identity: str | None = None) -> None:
    """Send every log record of this process, ours and the libraries', to stderr through one chain."""
    as_text = form == "text" or (form == "auto" and sys.stderr.isatty())
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    render: Processor = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty()) if as_text else structlog.processors.JSONRenderer()
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, redact, render],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in SILENT:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    if identity is not None:
        structlog.contextvars.bind_contextvars(worker=identity)


def log(name: str = "sakshi") -> structlog.stdlib.BoundLogger:
    """A logger of ours."""
    return cast("structlog.stdlib.BoundLogger", structlog.get_logger(name))
