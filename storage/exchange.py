"""One HTTP exchange with an address that a user named: judged, bounded in time and size, no redirect followed.

The connection goes to an IP address that was judged, while the certificate is checked against the name. No proxy
and no cookie, and answers are taken as they are: nothing is unpacked.
"""

from __future__ import annotations

import functools
import ssl
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import httpcore
import httpx

from orchestrator.errors import CliploopError
from storage.addresses import Address, Rules, judged, read

CONNECT_SECONDS = 5.0  # to one of a host's addresses, then the next is tried
_PIECE_BYTES = 16 * 1024
Trust = Callable[[], ssl.SSLContext]


class NoAnswer(CliploopError):
    """The other side cannot be reached, or does not answer as HTTP does, or not in time."""


@dataclass(frozen=True)
class Answer:
    """Header names are lower case; of the body one byte more than was wanted, at most."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@functools.cache
def public_trust() -> ssl.SSLContext:
    """The certificates that browsers trust, or those of SSL_CERT_FILE; made once, it takes a while."""
    return httpx.create_ssl_context()


def exchange(
    method: str,
    url: str,
    rules: Rules,
    *,
    headers: Mapping[str, str],
    content: bytes = b"",
    seconds: float,
    max_bytes: int = 0,
    trust: Trust = public_trust,
) -> Answer:
    """Ask once. `seconds` is for all of it, however slowly the other side speaks; `max_bytes` 0 reads no body.

    Raises AddressRefused, NameUnknown, NoAnswer.
    """
    address = read(url, rules)
    limit = _Limit(time.monotonic() + seconds, seconds)
    try:
        with httpcore.ConnectionPool(
            ssl_context=trust() if address.scheme == "https" else None,
            max_connections=1,
            network_backend=_Judging(rules, limit),
        ) as pool:
            return _answer(pool, method, address, headers, content, max_bytes)
    except httpcore.TimeoutException:
        raise NoAnswer(f"no answer in {seconds:g} s") from None
    except (httpcore.NetworkError, ssl.SSLError, OSError) as error:
        what = "its certificate is not trusted" if "CERTIFICATE" in str(error).upper() else "no connection"
        raise NoAnswer(f"{address.host} cannot be reached: {what}") from None
    except (httpcore.ProtocolError, httpcore.UnsupportedProtocol):
        raise NoAnswer(f"{address.host} does not answer as HTTP does") from None


def _answer(
    pool: httpcore.ConnectionPool,
    method: str,
    address: Address,
    headers: Mapping[str, str],
    content: bytes,
    max_bytes: int,
) -> Answer:
    sent = {"Host": address.host_header, "Connection": "close", "Accept-Encoding": "identity", **headers}
    if content:
        sent["Content-Length"] = str(len(content))
    where = httpcore.URL(
        scheme=address.scheme.encode(), host=address.host.encode(), port=address.port, target=address.target
    )
    with pool.stream(method, where, headers=list(sent.items()), content=content or None) as response:
        told = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}
        body = b""
        if max_bytes:
            for piece in response.iter_stream():
                body += piece
                if len(body) > max_bytes:
                    break
        return Answer(response.status, told, body[: max_bytes + 1])


@dataclass(frozen=True)
class _Limit:
    """When everything must be over, by the monotonic clock."""

    at: float
    seconds: float

    def left(self, kind: type[httpcore.TimeoutException]) -> float:
        """Seconds; raises that kind where there are none."""
        left = self.at - time.monotonic()
        if left <= 0:
            raise kind(f"not done in {self.seconds:g} s")
        return left


class _Judging(httpcore.NetworkBackend):
    """Connects to the judged addresses of a host, one after the other until one takes the connection."""

    def __init__(self, rules: Rules, limit: _Limit) -> None:
        self._rules, self._limit = rules, limit
        self._plain = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """As httpcore asks; the host may be a name."""
        failed: Exception | None = None
        for ip in judged(host, port, self._rules, self._limit.left(httpcore.ConnectTimeout)):
            try:
                left = min(self._limit.left(httpcore.ConnectTimeout), CONNECT_SECONDS)
                stream = self._plain.connect_tcp(ip, port, left, local_address, socket_options)
                return _Limited(stream, self._limit)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failed = error
        raise failed or httpcore.ConnectError("no address")


class _Limited(httpcore.NetworkStream):
    """A stream whose every wait ends when everything must be over."""

    def __init__(self, stream: httpcore.NetworkStream, limit: _Limit) -> None:
        self._stream, self._limit = stream, limit

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._limit.left(httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for start in range(0, len(buffer), _PIECE_BYTES):
            self._stream.write(buffer[start : start + _PIECE_BYTES], self._limit.left(httpcore.WriteTimeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        left = self._limit.left(httpcore.ConnectTimeout)
        return _Limited(self._stream.start_tls(ssl_context, server_hostname, left), self._limit)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
