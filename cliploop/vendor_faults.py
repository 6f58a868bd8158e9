"""What goes wrong between us and a vendor's server, and what its words may show: addresses, keys, faults.

Knows no vendor and no vendor's client: errors of HTTP clients are told apart by their causes.
"""

from __future__ import annotations

import importlib
import re
import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from orchestrator.errors import BackendMisconfigured, BackendUnavailable, CliploopError, SubmissionUnknown

MAX_CHARS = 300  # of a server's own words
MAX_TALK_BYTES = 16 << 20  # of an answer that is no file


def told(text: Any, *secrets: str) -> str:
    """A server's own words on one line, cut, without our secrets and without markup."""
    plain = re.sub(r"<[^<>]{0,2000}>", " ", _hidden(str(text), secrets))
    plain = " ".join(_hidden(plain, secrets).split())
    return plain if len(plain) <= MAX_CHARS else f"{plain[:MAX_CHARS]}…"


def _hidden(text: str, secrets: tuple[str, ...]) -> str:
    for secret in filter(None, secrets):
        text = text.replace(secret, "…")
    return text


def bounded(response: Any, until: float, max_bytes: int) -> None:
    """Have a body be read until then at most, by the monotonic clock, and no more of it. For response hooks."""
    http = importlib.import_module(type(response).__module__.partition(".")[0])  # httpx, or its fork
    inner: Any = response.stream

    class Timely(http.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            size = 0
            for piece in inner:
                size += len(piece)
                if time.monotonic() > until:
                    raise http.ReadTimeout("no whole answer in time")
                if size > max_bytes:
                    raise http.ReadError(f"an answer of more than {max_bytes >> 20} MiB")
                yield piece

        def close(self) -> None:
            inner.close()

    response.stream = Timely()


def is_talk(response: Any) -> bool:
    """Whether an answer is words, no file: small, and soon there."""
    kind = str(response.headers.get("content-type", "")).lower()
    return response.status_code >= 300 or "json" in kind or kind.startswith("text/")


def variable(name: str) -> str:
    """A name of an environment variable. Raises ValueError, without what may be the key itself."""
    if name and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise ValueError(
            "must be the name of an environment variable, such as OPENAI_API_KEY, not the key itself"
        )
    return name


def place(url: str) -> str:
    """Scheme, host, port and path of an address, without a user's name and password."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    where = f"[{host}]" if ":" in host else host
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{where}{port}{parts.path.rstrip('/')}"


def without_secrets(url: str) -> str:
    """An address that may be shown and stored. Raises ValueError for one that holds a password or a query."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise ValueError("must be an address, such as http://host:8000/v1: its host or port is none") from None
    if re.search(r"[\s\x00-\x1f]", url):
        raise ValueError("must be an address: there is a blank or a control character in it")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ValueError("must be an address alone: a key is given by an environment variable, see api_key_env")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("must begin with http:// or https:// and name a host")
    return url


def trust(ca_file: str) -> ssl.SSLContext | bool:
    """What HTTPS is verified by: the usual authorities and those in this file. Raises BackendMisconfigured."""
    if not ca_file:
        return True
    context = ssl.create_default_context()
    try:
        context.load_verify_locations(cafile=Path(ca_file).expanduser())
    except (OSError, ssl.SSLError) as error:
        raise BackendMisconfigured(f"ca_file: {ca_file!r} holds no certificates in PEM ({error})") from error
    return context


def causes(error: BaseException) -> Iterator[BaseException]:
    """The error and all that led to it."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__


def is_of_http(error: Exception) -> bool:
    """Faults in the middle of a body reach us as the transport's own, which has two names in one family."""
    return any(
        kind.__module__.partition(".")[0] in ("httpx", "httpx2", "httpcore") for kind in type(error).__mro__
    )


def connection_fault(error: BaseException, url: str, *, submitting: bool = False) -> CliploopError:
    """What a broken exchange with a server means to the caller.

    `submitting`: a render may have begun unless the connection was never made.
    """
    where = place(url)
    chain = list(causes(error))
    kinds = {kind.__name__ for one in chain for kind in type(one).__mro__}
    if any(isinstance(one, ssl.SSLCertVerificationError) for one in chain) or "CERTIFICATE_VERIFY_FAILED" in str(
        error
    ):
        return BackendMisconfigured(
            f"{where}: its TLS certificate is not trusted (self-signed, expired, or for another name): set"
            " ca_file to its certificate authority in PEM, or correct the address"
        )
    if any(isinstance(one, ssl.SSLError) for one in chain):
        return BackendUnavailable(f"{where}: no TLS connection could be made; is it http:// instead of https://?")
    if any(isinstance(one, ConnectionRefusedError) for one in chain):
        return BackendUnavailable(f"{where}: connection refused: is the server running, and the port right?")
    if any(isinstance(one, socket.gaierror) for one in chain):
        return BackendUnavailable(f"{where}: there is no such host, or no name server: check the address")
    if kinds & {"ConnectError", "ConnectTimeout"}:
        return BackendUnavailable(f"{where}: no connection could be made: is the server running?")
    if kinds & {"UnsupportedProtocol", "InvalidURL"}:
        return BackendMisconfigured(f"{where}: this is no address of a server: write https://host/v1")
    late = kinds & {"TimeoutException", "APITimeoutError", "TimeoutError"}
    what = "no answer in time" if late else "the connection broke off"
    if submitting:
        return SubmissionUnknown(f"{where}: {what} while a render was submitted; it may have begun")
    return BackendUnavailable(f"{where}: {what}")


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds of `retry-after-ms` or `Retry-After` (seconds or a date); None if it says nothing of use."""
    try:
        if (millis := headers.get("retry-after-ms")) is not None:
            return _sensible(float(millis) / 1000)
        said = headers.get("retry-after") or headers.get("Retry-After")
        if said is None:
            return None
        if re.fullmatch(r"\d+(\.\d+)?", said.strip()):
            return _sensible(float(said))
        return _sensible(parsedate_to_datetime(said).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None


def _sensible(seconds: float) -> float | None:
    return min(seconds, 24 * 3600.0) if seconds >= 0 else None


@dataclass(frozen=True)
class Refusal:
    """What a server answered instead of doing it: status, its words, and which key it was asked with."""

    url: str
    status: int
    words: str
    headers: Mapping[str, str]
    key_name: str
    submitting: bool = False
    size_option: str = "max_side"

    def fault(self) -> CliploopError | None:
        """What every server means by its status; None where that depends on what was asked (400, 404, 422)."""
        said = f": {self.words}" if self.words else ""
        where = place(self.url)
        if self.status in (401, 403):
            return BackendMisconfigured(
                f"{where}: the key was refused ({self.status}{said}): set a valid one in the environment variable"
                f" {self.key_name}"
            )
        if self.status == 413:
            return BackendMisconfigured(
                f"{where}: what was sent is too large for it (413{said}): lower {self.size_option}"
            )
        wait = retry_after(self.headers)
        if self.submitting and self.status in (408, 502, 504):
            what = f"{where}: {self.status} while a render was submitted{said}; it may have begun"
            return SubmissionUnknown(what, retry_after_seconds=wait)
        if self.status == 429:
            what = f"{where}: too many requests, or the quota is used up (429{said})"
            return BackendUnavailable(what, retry_after_seconds=wait)
        if self.status in (408, 409, 425) or self.status >= 500:
            what = f"{where}: it cannot do it now ({self.status}{said})"
            return BackendUnavailable(what, retry_after_seconds=wait)
        if 300 <= self.status < 400:
            return BackendMisconfigured(f"{where}: it answers {self.status}, it has moved: correct the address")
        return None
