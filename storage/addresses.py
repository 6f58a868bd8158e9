"""Which addresses that a user names may be contacted: only public ones, unless the operator says otherwise.

A name is resolved here, every address that it has is judged, and the connection goes to one that was judged: a
name that points elsewhere a moment later (DNS rebinding) changes nothing. It contacts nobody; `storage.exchange`
does.
"""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import TypeAlias

import httpx

from orchestrator.errors import TaskRejected

MAX_URL_CHARS = 2000
Resolve: TypeAlias = Callable[[str, int], Sequence[str]]
IpAddress: TypeAlias = IPv4Address | IPv6Address

_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"(?=.{{1,253}}$){_LABEL}(?:\.{_LABEL})*")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_NAT64 = IPv6Network("64:ff9b::/96")
_UNICAST = IPv6Network("2000::/3")  # all that is handed out for the public so far
# Tunnels, documentation, routers' own: what the standard library, by its version, may call global.
_REFUSED_4 = [
    IPv4Network(net) for net in ("0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.88.99.0/24", "198.18.0.0/15")
]
_REFUSED_6 = [IPv6Network(net) for net in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")]
# Clouds answer here with the machine's own credentials: never, whatever is allowed.
_METADATA = frozenset(
    map(ip_address, ("169.254.169.254", "168.63.129.16", "100.100.100.200", "192.0.0.192", "fd00:ec2::254"))
)


class AddressRefused(TaskRejected):
    """A URL that is not contacted; the message says why."""

    def __init__(self, message: str) -> None:
        super().__init__(message, reason="address")


class NotPublic(AddressRefused):
    """An address of this machine or of a private network, or one that stands for no single machine."""


class NameUnknown(TaskRejected):
    """A name that has no address, or whose address cannot be found out now."""

    def __init__(self, host: str) -> None:
        super().__init__(f"{host} cannot be resolved: is its name right?", reason="address")


def resolved(host: str, port: int) -> list[str]:
    """The addresses of a name, as the machine's resolver says. Raises OSError, UnicodeError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[4][0]) for address in found))


@dataclass(frozen=True)
class Rules:
    """What may be contacted. `private`: the operator's own networks and this machine too, but no metadata."""

    schemes: tuple[str, ...] = ("https",)
    private: bool = False
    resolve: Resolve = resolved


@dataclass(frozen=True)
class Address:
    """A URL that was read: `host` is a name in ASCII or an IP address, `target` the path with its query."""

    scheme: str
    host: str
    port: int
    target: bytes

    @property
    def host_header(self) -> str:
        """As HTTP says it: the port only where it is not the scheme's own."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


_PORTS = {"http": 80, "https": 443}


def read(url: str, rules: Rules) -> Address:
    """The URL's parts; nothing is resolved. Raises AddressRefused for one that could never be contacted."""
    if len(url) > MAX_URL_CHARS or not url.isprintable() or "\\" in url:
        raise AddressRefused(f"a URL has at most {MAX_URL_CHARS} printable characters and no backslash")
    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, UnicodeError):
        raise AddressRefused("this is no URL: write https://host/path") from None
    if parsed.scheme not in rules.schemes:
        raise AddressRefused(f"the URL must begin with {' or '.join(f'{name}://' for name in rules.schemes)}")
    if parsed.userinfo:
        raise AddressRefused("the URL holds a user name or a password: leave them out")
    port = _PORTS[parsed.scheme] if parsed.port is None else parsed.port
    if not 1 <= port <= 65535:
        raise AddressRefused("the URL's port must be between 1 and 65535")
    host = _host(parsed.raw_host.decode("ascii", "replace").lower())
    literal = _literal(host)
    if literal is not None:
        _judge(host, literal, rules)
    elif not rules.private and (host == "localhost" or host.endswith(".localhost")):
        raise _not_public(host)
    return Address(parsed.scheme, host, port, parsed.raw_path)


def judged(host: str, port: int, rules: Rules, seconds: float) -> list[str]:
    """The IP addresses that the host has now, all of them permitted, at least one.

    Raises AddressRefused if any is not, NameUnknown if none is found in that time.
    """
    literal = _literal(host)
    said = [str(literal)] if literal is not None else _looked_up(host, port, rules.resolve, seconds)
    if not said:
        raise NameUnknown(host)
    for text in said:
        try:
            address = ip_address(text.partition("%")[0])
        except ValueError:
            raise AddressRefused(f"{host} resolves to what is no address") from None
        _judge(host, address, rules)
    return list(said)


def is_public(address: IpAddress) -> bool:
    """Whether anybody may be sent there: one machine, on the public network, by no tunnel's name."""
    plain = _plain(address)
    if plain in _METADATA or plain.is_multicast or plain.is_reserved or not plain.is_global:
        return False
    if isinstance(plain, IPv4Address):
        return not any(plain in net for net in _REFUSED_4)
    return plain in _UNICAST and not any(plain in net for net in _REFUSED_6)


def _judge(host: str, address: IpAddress, rules: Rules) -> None:
    if is_public(address):
        return
    plain = _plain(address)
    never = plain in _METADATA or plain.is_link_local or plain.is_multicast or plain.is_unspecified
    if rules.private and not never and (plain.is_private or plain.is_loopback):
        return
    raise _not_public(host)


def _plain(address: IpAddress) -> IpAddress:
    """The IPv4 address where an IPv6 one only stands for it."""
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return address.ipv4_mapped
        if address in _NAT64:
            return IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def _host(said: str) -> str:
    """Raises AddressRefused for a host that is neither a name nor an address in its usual form."""
    host = said[:-1] if said.endswith(".") else said
    if _literal(host) is not None and host == said:
        return host
    if not _NAME.fullmatch(host):
        raise AddressRefused("the URL has no host that could be contacted: write https://host/path")
    if _NUMBER.fullmatch(host.rpartition(".")[2]):  # 0x7f.1, 2130706433, 127.0.0.1.
        raise AddressRefused(f"{host[:60]} is no name: write an IP address as four decimal numbers")
    return host


def _literal(host: str) -> IpAddress | None:
    try:
        return ip_address(host) if "%" not in host else None
    except ValueError:
        return None


def _looked_up(host: str, port: int, resolve: Resolve, seconds: float) -> Sequence[str]:
    """In a thread of its own: a resolver knows no time limit."""
    found: list[Sequence[str]] = []

    def look() -> None:
        try:
            found.append(resolve(host, port))
        except (OSError, UnicodeError):
            found.append(())

    thread = threading.Thread(target=look, name="resolver", daemon=True)
    thread.start()
    thread.join(max(0.0, seconds))
    return found[0] if found else ()


def _not_public(host: str) -> NotPublic:
    return NotPublic(f"{host} is not a public address: it is not contacted from here")
