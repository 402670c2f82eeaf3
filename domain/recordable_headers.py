"""The headers of an answer that may be recorded: an allow-list, because what a provider puts into a header is not ours to keep.

Values are bounded and printable; addresses lose their query, which often is a credential.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from domain.evidence import bounded
from domain.language.patterns import pattern

MAX_VALUE: Final = 256
MAX_HEADERS: Final = 32
_ALLOWED: Final = pattern(
    r"date|age|server|content-type|content-length|content-encoding|content-disposition|content-digest|content-md5|digest|repr-digest"
    r"|etag|last-modified|expires|retry-after|location|content-location|allow|via|idempotent-replayed|idempotency-key-status"
    r"|(x-)?ratelimit-[a-z0-9-]{1,40}|x-rate-limit-[a-z0-9-]{1,40}|(x-)?request-id|(x-)?correlation-id|x-trace-id|traceparent"
    r"|[a-z0-9-]{1,40}-request-id|[a-z0-9-]{1,40}-trace-id|cf-ray|apigw-requestid|deprecation|sunset|preference-applied"
)
_ADDRESSES: Final = frozenset({"location", "content-location"})


@lru_cache(maxsize=512)
def _allowed(name: str) -> bool:
    return _ALLOWED.matches(name)


def allowed_headers(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The headers that may be recorded, by lower-case name, repeated ones joined."""
    found: dict[str, str] = {}
    for name, value in headers:
        key = name.lower()
        if not _allowed(key) or (key not in found and len(found) >= MAX_HEADERS):
            continue
        kept = value.split("?", 1)[0].split("#", 1)[0] if key in _ADDRESSES else value
        found[key] = f"{found[key]}, {kept}" if key in found else kept
    return {name: bounded(value, MAX_VALUE) for name, value in found.items()}
