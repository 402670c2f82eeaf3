"""Logs: one event a line, JSON or text, and nothing in them that is a secret.

* Redaction is the last processor before rendering and knows names and shapes, not values: what is called like a secret, or
  looks like an authorization, is replaced wherever it stands.
* Libraries that log what they put on the wire are kept silent.
"""

import logging
import re
import sys
from collections.abc import MutableMapping
from typing import Literal, cast

import structlog
from structlog.typing import EventDict, Processor

SILENT = ("httpx", "httpcore", "hpack", "h11", "asyncpg", "sqlalchemy.engine", "urllib3", "filelock", "botocore", "oauthlib")
REDACTED = "[redacted]"
_NAMES = re.compile(
    r"authorization|cookie|password|passwd|secret|credential_value|api[_-]?key|\btoken\b|private[_-]?key|signature", re.IGNORECASE
)
_SHAPES = re.compile(
    r"(?i)\b(?:bearer|basic)\s+[A-Za-z0-9._~+/=-]{6,}"
    r"|(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)",
    re.DOTALL,
)
MAX_DEPTH = 8


def redact(_: object, __: str, event: EventDict) -> EventDict:
    """The event without what is called, or looks like, a secret."""
    return cast("EventDict", _clean(event, 0))


def _clean(value: object, depth: int) -> object:
    if depth > MAX_DEPTH:
        return REDACTED
    if isinstance(value, MutableMapping):
        named = cast("MutableMapping[object, object]", value)
        return {name: REDACTED if _NAMES.search(str(name)) else _clean(part, depth + 1) for name, part in named.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_clean(part, depth + 1) for part in cast("list[object]", value)]
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    if value is None or isinstance(value, bool | int | float):
        return value
    return _SHAPES.sub(REDACTED, value if isinstance(value, str) else str(value))


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
