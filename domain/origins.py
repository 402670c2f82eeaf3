"""Origins: scheme, host, port, of addresses that leave no room for two readings.

* What a contract may render is decided here. The executor reads the address again, by stricter rules, where it is called
  (`adapters/addresses.py`): nothing is sent that either refuses.
* Refused: userinfo, backslash, whitespace and control characters, fragments, scheme-relative forms, non-ASCII hosts, schemes
  other than https and http (where http may go at all is the executor's rule, not ours).
* `https://*.x.example` covers every host below `x.example`, not `x.example` itself, on the same port.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from domain.errors import AddressError
from domain.evidence import bounded
from domain.language.patterns import pattern

DEFAULT_PORTS: Final = {"https": 443, "http": 80}
_HOST: Final = pattern(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*\.?|\[[0-9a-f:.]+\]")


@dataclass(frozen=True, slots=True)
class Origin:
    """One origin, or with a host that begins with `*.` a pattern of them."""

    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        port = "" if DEFAULT_PORTS[self.scheme] == self.port else f":{self.port}"
        return f"{self.scheme}://{self.host}{port}"


@lru_cache(maxsize=512)
def origin_of(url: str, *, wildcard: bool = False) -> Origin:
    """The origin of an absolute address. Raises AddressError; the text of the address is not repeated whole.

    The same few addresses are asked about many times in each exchange, so the newest are remembered.
    """
    check_address(url)
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise AddressError("an address that cannot be parsed") from None
    if parts.scheme not in DEFAULT_PORTS or not parts.netloc:
        raise AddressError("an address must be absolute and begin with https://")
    if "@" in parts.netloc:
        raise AddressError("an address with user information")
    host = parts.netloc.rpartition(":")[0] if port is not None or parts.netloc.endswith(":") else parts.netloc
    host = host.lower()
    plain = host.removeprefix("*.") if wildcard else host
    if not _HOST.matches(plain) or len(host) > 255 or parts.netloc.endswith(":") or port == 0:
        raise AddressError("an address whose host or port is malformed")
    return Origin(parts.scheme, host.removesuffix("."), port or DEFAULT_PORTS[parts.scheme])


def check_address(text: str) -> None:
    """Raise AddressError for characters that no address or reference may have."""
    if not (text and text.isascii() and text.isprintable()) or any(sign in text for sign in " \\#"):
        raise AddressError("an address with backslash, blank, control or non-ASCII characters, with a fragment, or empty")


def origin_pattern(text: str) -> Origin:
    """An origin or a pattern of origins as a contract writes it: nothing after the port. Raises AddressError."""
    found = origin_of(text, wildcard=True)
    if urlsplit(text).path or urlsplit(text).query or text.endswith("?"):
        raise AddressError("an origin: scheme, host and port only")
    return found


def covers(allowed: Origin, origin: Origin) -> bool:
    """Whether `origin` is the allowed one, or below the allowed pattern."""
    if (allowed.scheme, allowed.port) != (origin.scheme, origin.port):
        return False
    if allowed.host.startswith("*."):
        return origin.host.endswith(allowed.host[1:]) and not origin.host.startswith("[")
    return allowed.host == origin.host


def shown_url(url: str) -> str:
    """An address as it is recorded: without its query, which may hold what was asked."""
    parts = urlsplit(url)
    return bounded(f"{parts.scheme}://{parts.netloc}{parts.path}{'?...' if parts.query else ''}", 2048)
