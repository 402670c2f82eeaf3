"""Which addresses may be called, and what an address is.

* One parse at the executor. An address is read once into an `Address`; that object is compared and that object is sent. What two parsers
  could read differently is refused: userinfo, backslashes, control characters, spaces, fragments, scheme-relative forms,
  dots at the end of a host, numbers that pass for IPv4, escapes in a host.
* Origins are compared as (scheme, host, port), the host in its IDNA form, the port with its default filled in.
* `https` only. `http` for loopback on the embedded stack, or for an origin that the operator lists.
* The name is resolved once per connection, every address it has is checked, and the connection goes to a checked
  address. One bad address refuses all of them: a name that points at two worlds is not one that we call.
* Only the public internet, unless the operator lists the origin. The embedded stack may call loopback by the names that
  mean loopback, never because a public name happens to point there.
"""

import asyncio
import ipaddress
import re
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import idna

from domain.errors import AddressError
from domain.origins import DEFAULT_PORTS

IP = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
"""(host, port) -> addresses as text, best first. Raises OSError if the name has none."""

MAX_ADDRESS = 8192

_SHAPE = re.compile(r"(https?)://([^/?#]+)(/[^?#]*)?(\?[^#]*)?", re.IGNORECASE | re.ASCII)
_AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]@%]+)(?::([0-9]{1,5}))?")
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_FORBIDDEN = re.compile(r"[\x00-\x20\x7f\\#]")
_NOT_VISIBLE_ASCII = re.compile(r"[^\x21-\x7e]")

_REFUSED_NETWORKS = tuple(
    ipaddress.ip_network(text)
    for text in (
        "0.0.0.0/8",  # unspecified, "this network"
        "10.0.0.0/8",
        "100.64.0.0/10",  # carrier-grade NAT
        "127.0.0.0/8",
        "169.254.0.0/16",  # link-local, cloud metadata
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.31.196.0/24",
        "192.52.193.0/24",
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",
        "192.175.48.0/24",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
        "::/96",  # unspecified, loopback, IPv4-compatible
        "::ffff:0:0/96",  # IPv4-mapped
        "::ffff:0:0:0/96",  # IPv4-translated
        "64:ff9b::/96",  # NAT64
        "64:ff9b:1::/48",
        "100::/64",
        "2001::/23",  # Teredo, ORCHID and other protocol assignments
        "2001:db8::/32",
        "2002::/16",  # 6to4
        "3fff::/20",
        "5f00::/16",
        "fc00::/7",  # unique local
        "fe80::/10",
        "fec0::/10",
        "ff00::/8",
    )
)
_REFUSED_4 = tuple(network for network in _REFUSED_NETWORKS if isinstance(network, ipaddress.IPv4Network))
_REFUSED_6 = tuple(network for network in _REFUSED_NETWORKS if isinstance(network, ipaddress.IPv6Network))


@dataclass(frozen=True, slots=True)
class Origin:
    """Scheme, host (IDNA, lower case, IPv6 without brackets) and port (never absent)."""

    scheme: str
    host: str
    port: int

    @property
    def authority(self) -> str:
        """Host, and the port where it is not the scheme's own: what stands in the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if DEFAULT_PORTS[self.scheme] == self.port else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}"

    @property
    def names_loopback(self) -> bool:
        """True for `localhost` and literal loopback addresses only."""
        literal = as_ip(self.host)
        return self.host == "localhost" if literal is None else literal.is_loopback


@dataclass(frozen=True, slots=True)
class Address:
    """An origin and the target (path and query, exactly as given) below it."""

    origin: Origin
    target: str

    @property
    def url(self) -> str:
        """The address as one text."""
        return f"{self.origin}{self.target}"


@dataclass(frozen=True, slots=True)
class OriginPattern:
    """An exact origin, or every host below one (`https://*.x.example`; `x.example` itself is not below itself)."""

    origin: Origin
    below: bool

    def fits(self, origin: Origin) -> bool:
        """Whether the origin is the one, or one of those, that the pattern means."""
        if not self.below:
            return origin == self.origin
        mine = self.origin
        return (origin.scheme, origin.port) == (mine.scheme, mine.port) and origin.host.endswith(f".{mine.host}")

    def meets(self, other: "OriginPattern") -> bool:
        """Whether there is an origin that both mean."""
        if self.below and other.below:
            return self.origin == other.origin or self.fits(other.origin) or other.fits(self.origin)
        return self.fits(other.origin) if self.below else other.fits(self.origin)

    def __str__(self) -> str:
        return f"{self.origin.scheme}://*.{self.origin.authority}" if self.below else str(self.origin)


@dataclass(frozen=True, slots=True)
class AddressRules:
    """What the operator allows beyond the public internet over https."""

    listed: frozenset[Origin] = frozenset()
    loopback: bool = False
    """The embedded stack: loopback may be called, over http too, by the names that mean loopback."""

    def permit(self, origin: Origin) -> None:
        """Raise `AddressError` unless the scheme may be used with this origin."""
        if origin.scheme == "https" or origin in self.listed or (self.loopback and origin.names_loopback):
            return
        raise AddressError(
            f"{origin} is not https", hint="use https, or have the operator list the origin (http is for loopback on the embedded stack)"
        )

    def permit_ip(self, origin: Origin, address: IP) -> None:
        """Raise `AddressError` unless a connection for this origin may go to this address."""
        if origin in self.listed:
            return
        if self.loopback and origin.names_loopback and address.is_loopback:
            return
        if not is_public(address):
            raise AddressError(
                f"{origin} leads to an address that is not on the public internet", hint="the operator may list the origin in the settings"
            )


def parse_address(text: str) -> Address:
    """Read an absolute http(s) address. Everything that is not plainly one raises `AddressError`."""
    if len(text) > MAX_ADDRESS:
        raise AddressError(f"an address is longer than {MAX_ADDRESS} characters")
    if _FORBIDDEN.search(text):
        raise AddressError("an address contains a space, a control character, a backslash or a fragment")
    shape = _SHAPE.fullmatch(text)
    if shape is None:
        raise AddressError("an address is not an absolute http or https address")
    scheme, authority, path, query = shape.groups()
    target = (path or "/") + (query or "")
    if _NOT_VISIBLE_ASCII.search(target):
        raise AddressError("the path or query of an address is not percent-encoded")
    return Address(_origin(scheme.lower(), authority), target)


@lru_cache(maxsize=1024)
def parse_origin(text: str) -> Origin:
    """Read `scheme://host[:port]`, with nothing after it (a single slash is let pass)."""
    address = parse_address(text)
    if address.target != "/":
        raise AddressError("an origin has no path and no query")
    return address.origin


@lru_cache(maxsize=1024)
def parse_pattern(text: str) -> OriginPattern:
    """Read an origin, or `scheme://*.host[:port]`."""
    scheme, mark, rest = text.partition("://*.")
    if not mark:
        return OriginPattern(parse_origin(text), below=False)
    origin = parse_origin(f"{scheme}://{rest}")
    if as_ip(origin.host) is not None or "." not in origin.host:
        raise AddressError("a pattern needs a name of at least two labels after `*.`")
    return OriginPattern(origin, below=True)


def as_ip(host: str) -> IP | None:
    """The address that a host literally is, or None if it is a name."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def is_public(address: IP) -> bool:
    """Whether an address is ordinary, routed, unicast internet. Forms that carry an IPv4 address inside are not."""
    if isinstance(address, ipaddress.IPv4Address):
        return address.is_global and not any(address in network for network in _REFUSED_4)
    return address.scope_id is None and address.is_global and not any(address in network for network in _REFUSED_6)


async def resolve(origin: Origin, rules: AddressRules, resolver: Resolver) -> tuple[str, ...]:
    """Every address of the origin, each one checked. OSError if there is none, `AddressError` if one may not be called."""
    literal = as_ip(origin.host)
    found = (origin.host,) if literal is not None else tuple(await resolver(origin.host, origin.port))
    if not found:
        raise OSError("no address")
    for text in found:
        address = as_ip(text)
        if address is None:
            raise AddressError(f"{origin} leads to something that is not an IP address")
        rules.permit_ip(origin, address)
    return found


async def system_resolver(host: str, port: int) -> tuple[str, ...]:
    """The machine's own resolver, in a thread; duplicates removed, its order kept."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))


def _origin(scheme: str, authority: str) -> Origin:
    parts = _AUTHORITY.fullmatch(authority)
    if parts is None:
        raise AddressError("the host of an address holds userinfo, an escape, or is malformed")
    host, port = parts.groups()
    number = DEFAULT_PORTS[scheme] if port is None else int(port)
    if not 0 < number < 65536:
        raise AddressError("the port of an address is out of range")
    return Origin(scheme, _host(host), number)


def _host(text: str) -> str:
    if text.startswith("["):
        literal = as_ip(text[1:-1])
        if not isinstance(literal, ipaddress.IPv6Address):
            raise AddressError("the host of an address is not an IPv6 address")
        return str(literal)
    name = text.lower()
    if not name.isascii() or "xn--" in name:
        try:
            name = idna.encode(text, uts46=True, std3_rules=True).decode("ascii")
        except (idna.IDNAError, UnicodeError):
            raise AddressError("the host of an address is not a valid international name") from None
    labels = name.split(".")
    if len(name) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise AddressError("the host of an address is not a host name")
    if re.fullmatch(r"[0-9]+|0x[0-9a-f]*", labels[-1]) and not isinstance(as_ip(name), ipaddress.IPv4Address):
        raise AddressError("the host of an address is a number that could pass for an IPv4 address")
    return name
