"""Who may call. With API keys: whoever shows one, as often as it may. Without: the programs of this machine.

Without keys the danger is a browser of this machine: any page that it shows can send requests here. So a request
must be addressed to a loopback name (a foreign name that was pointed here is refused), and what changes something
must not come from another origin. From the first key on every request needs one, also when all have been revoked.
"""

from __future__ import annotations

import contextlib
import re
import time
from dataclasses import dataclass
from urllib.parse import urlsplit

import anyio
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cliploop.site import Site, is_loopback
from orchestrator.errors import CliploopError
from service.problems import of_error, problem
from storage import keys
from storage.keys import ApiKey
from storage.pace import Pace, TooFast
from storage.sql import SqlDatabase

FRESH_SECONDS = 2.0  # a key that was revoked, and the first that was made, are known so much later
NEW_KEY_SECONDS = 0.2  # an unknown secret may be of a key that was made just now: look again, but not for each
WRONG_KEYS_PER_MINUTE = 60  # of one address; right keys from there go through all the same
OPEN = frozenset({"/", "/healthz", "/readyz", "/openapi.json", "/docs", "/docs/oauth2-redirect", "/redoc"})
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


class KnownKeys:
    """All keys as they were a moment ago, so that not every request asks the database for its key."""

    def __init__(self, database: SqlDatabase, *, required: bool) -> None:
        self._database = database
        self._required = required
        self._keys: dict[str, ApiKey] = {}
        self._read_at = float("-inf")
        self._lock = anyio.Lock()

    @property
    def asked_for(self) -> bool:
        """Whether requests need a key, as far as is known."""
        return self._required or bool(self._keys)

    async def refresh(self, seconds: float = FRESH_SECONDS) -> None:
        """Read them if what is known is older than that. Raises what the database raises."""
        if time.monotonic() - self._read_at < seconds:
            return
        async with self._lock:
            if time.monotonic() - self._read_at < seconds:  # another request was quicker
                return
            began = time.monotonic()
            self._keys = await run_in_threadpool(keys.by_digest, self._database)
            self._read_at = began

    async def find(self, secret: str) -> ApiKey | None:
        """The key that works."""
        await self.refresh()
        return keys.find(self._keys, secret)

    async def find_new(self, secret: str) -> ApiKey | None:
        """The same for a secret that was unknown a moment ago."""
        await self.refresh(NEW_KEY_SECONDS)
        return keys.find(self._keys, secret)


class _Revoked(Exception):
    """The key of a stream stopped working."""


@dataclass(frozen=True)
class Refusal:
    """Why a request goes no further."""

    status: int
    code: str
    detail: str
    headers: dict[str, str]

    def response(self) -> Response:
        """As a problem document."""
        return problem(self.status, self.code, self.detail, headers=self.headers)


class Access:
    """Middleware: lets a request through with `request.state.caller` set, or refuses it unread."""

    def __init__(self, app: ASGIApp, site: Site, known: KnownKeys) -> None:
        self.app = app
        self._known = known
        self._pace = Pace(site.messages)
        self._per_minute = site.composition.settings.service.requests_per_minute

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in OPEN:
            await self.app(scope, receive, send)
            return
        secret = ""
        try:
            await self._known.refresh()
            if self._known.asked_for:
                secret = _secret(scope)
                refusal = await self._checked(scope, secret)
            else:
                refusal = _from_elsewhere(scope)
        except CliploopError as error:  # the database is away
            await of_error(error)(scope, receive, send)
            return
        if refusal is not None:
            await refusal.response()(scope, receive, send)
        elif secret:
            await self._while_it_works(secret, scope, receive, send)
        else:
            await self.app(scope, receive, send)

    async def _checked(self, scope: Scope, secret: str) -> Refusal | None:
        if not secret:
            detail = "this API asks for a key: send the header Authorization: Bearer clp_…"
            return Refusal(401, "no_key", detail, {"WWW-Authenticate": 'Bearer realm="cliploop"'})
        key = await self._known.find(secret) or await self._known.find_new(secret)
        if key is None:
            return self._wrong(scope)
        scope.setdefault("state", {})["caller"] = key.id
        per_minute = key.requests_per_minute or self._per_minute
        if per_minute is None:
            return None
        return _too_fast(await run_in_threadpool(self._pace.asked, key.id, per_minute), "this API key")

    def _wrong(self, scope: Scope) -> Refusal:
        address = str((scope.get("client") or ("",))[0])
        too_many = self._pace.failed(address, WRONG_KEYS_PER_MINUTE)
        detail = "this API key is not known here, or was revoked: ask whoever runs this server for another one"
        challenge = {"WWW-Authenticate": 'Bearer realm="cliploop", error="invalid_token"'}
        return _too_fast(too_many, "wrong keys: one address") or Refusal(401, "wrong_key", detail, challenge)

    async def _while_it_works(self, secret: str, scope: Scope, receive: Receive, send: Send) -> None:
        """A stream of events ends soon after its key was revoked."""
        streams = False

        async def checked(message: Message) -> None:
            nonlocal streams
            if message["type"] == "http.response.start":
                streams = (b"content-type", b"text/event-stream") in _kinds(message)
            elif streams and message.get("more_body") and await self._is_revoked(secret):
                await send({"type": "http.response.body", "body": b"", "more_body": False})
                raise _Revoked
            await send(message)

        with contextlib.suppress(_Revoked):
            await self.app(scope, receive, checked)

    async def _is_revoked(self, secret: str) -> bool:
        try:
            return await self._known.find(secret) is None
        except CliploopError:  # the database is away, which says nothing of the key
            return False


def _kinds(message: Message) -> list[tuple[bytes, bytes]]:
    return [(name.lower(), value.partition(b";")[0].strip()) for name, value in message.get("headers", [])]


def _values(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1").strip() for key, value in scope["headers"] if key == name]


def _secret(scope: Scope) -> str:
    """What follows Bearer; "" where there is no such thing, or more than one."""
    said = _values(scope, b"authorization")
    scheme, _, secret = said[0].partition(" ") if len(said) == 1 else ("", "", "")
    return secret.strip() if scheme.lower() == "bearer" else ""


def _too_fast(found: TooFast | None, who: str) -> Refusal | None:
    if found is None:
        return None
    seconds = found.retry_after_seconds
    detail = f"{who} may send {found.per_minute} requests a minute: go on in {seconds} s"
    limits = {
        "Retry-After": str(seconds),
        "RateLimit-Policy": f'"minute";q={found.per_minute};w=60',
        "RateLimit": f'"minute";r=0;t={seconds}',
    }
    return Refusal(429, "too_many_requests", detail, limits)


def _from_elsewhere(scope: Scope) -> Refusal | None:
    """Without keys: the refusal of what a foreign page may have sent."""
    hosts = _values(scope, b"host")
    if len(set(hosts)) > 1 or not all(is_loopback(_name(host)) for host in hosts):
        detail = "without API keys this server answers to localhost and loopback addresses only: use one of them"
        return Refusal(421, "other_host", detail, {})
    if scope["method"] in _SAFE_METHODS or _is_own(scope, hosts[0] if hosts else ""):
        return None
    detail = "without API keys this server takes no changes from pages of other origins: make a key, and send it"
    return Refusal(403, "other_origin", detail, {})


def _name(host: str) -> str:
    """Of a Host header, without the port and the brackets of an IPv6 address."""
    if host.startswith("["):
        name, _, port = host[1:].partition("]")
        return name if re.fullmatch(r"(?::\d*)?", port) and "]" in host else host
    return host.rpartition(":")[0] if ":" in host else host


def _is_own(scope: Scope, host: str) -> bool:
    """Whether a request comes from no page, or from one of ours. Browsers always send one of these headers."""
    sites = _values(scope, b"sec-fetch-site")
    if sites:
        return all(site in ("same-origin", "none") for site in sites)
    return all(_authority(origin) == host.lower() for origin in _values(scope, b"origin"))


def _authority(origin: str) -> str:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""
