"""How a flow's requests are sent with httpx: the server's address and key, and the one open answer of a flow."""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx

from cliploop.client.wire import Action, Head, Lost, Open, Patience, Pause, Read, Request

URL = "http://127.0.0.1:8000"
CONNECT_SECONDS = 10.0
_KEY = re.compile(r"[!-~]{1,1000}")
UNSENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


class Server:
    """An address and what is needed to speak to it. The key is in no repr and in no message."""

    def __init__(
        self, url: str = URL, api_key: str | None = None, *, timeout: float, patience_seconds: float
    ) -> None:
        self.url = _checked(url)
        refuse_bad_key(api_key)
        self.patience = Patience(patience_seconds, time.monotonic, random.random)
        self._options: dict[str, Any] = {
            "headers": {} if api_key is None else {"Authorization": f"Bearer {api_key}"},
            "timeout": httpx.Timeout(timeout, connect=min(timeout, CONNECT_SECONDS)),
            "trust_env": False,
            "follow_redirects": False,  # the key is for this address alone
        }

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    def _built(self, http: httpx.Client | httpx.AsyncClient, request: Request) -> httpx.Request:
        """The request, for httpx."""
        timeout = http.timeout
        if request.silence_seconds is not None:
            timeout = httpx.Timeout(timeout.read, connect=timeout.connect)
            timeout.read = request.silence_seconds
        return http.build_request(
            request.method,
            self.url + request.path,
            params=dict(request.query) or None,
            headers=dict(request.headers),
            json=request.json,
            data=request.form,
            files=None if request.file is None else {request.file[0]: request.file[1:]},
            timeout=timeout,
        )

    def _lost(self, error: httpx.HTTPError) -> Lost:
        """What became of a request, in our words."""
        why = " ".join(str(error).split())[:200]
        if isinstance(error, httpx.TimeoutException):
            why = "nothing came in time"
        hopeless = "CERTIFICATE" in why or isinstance(error, httpx.UnsupportedProtocol)
        said = f"no answer from {self.url} ({why or type(error).__name__})"
        return Lost(said, sent=not isinstance(error, UNSENT), hopeless=hopeless)


def refuse_bad_key(api_key: str | None) -> None:
    """Raise ValueError for what no header can carry; it is not repeated."""
    if api_key is not None and not _KEY.fullmatch(api_key):
        raise ValueError("the API key must be visible ASCII characters without spaces")


def _checked(url: str) -> str:
    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, TypeError) as error:
        raise ValueError(f"{url!r} is no address ({error}); write it like {URL}") from None
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise ValueError(f"{url!r} is no address of a server; write it like {URL}")
    if parsed.userinfo:
        raise ValueError("the address holds a user or a password; leave it out, and give an API key")
    if parsed.query or parsed.fragment:
        raise ValueError(f"the address {url!r} goes on after its path; write it like {URL}")
    return url.rstrip("/")


def _head(response: httpx.Response) -> Head:
    return Head(response.status_code, {name.lower(): value for name, value in response.headers.items()})


class Connection:
    """The one open answer of a flow."""

    def __init__(self, server: Server, http: httpx.Client) -> None:
        self._server, self._http = server, http
        self._response: httpx.Response | None = None
        self._pieces: Iterator[bytes] = iter(())

    def act(self, action: Action) -> Any:
        """Do it. Raises httpx.HTTPError."""
        match action:
            case Open(request):
                self.close()
                self._response = self._http.send(self._server._built(self._http, request), stream=True)
                self._pieces = self._response.iter_bytes()
                return _head(self._response)
            case Read():
                return next(self._pieces, None)
            case Pause(seconds):
                time.sleep(seconds)
            case _:
                self.close()
        return None

    def close(self) -> None:
        """Give it back."""
        response, self._response = self._response, None
        if response is not None:
            response.close()


class AsyncConnection:
    """The same, asynchronous."""

    def __init__(self, server: Server, http: httpx.AsyncClient) -> None:
        self._server, self._http = server, http
        self._response: httpx.Response | None = None
        self._pieces: AsyncIterator[bytes] | None = None

    async def act(self, action: Action) -> Any:
        """Do it. Raises httpx.HTTPError."""
        match action:
            case Open(request):
                await self.close()
                self._response = await self._http.send(self._server._built(self._http, request), stream=True)
                self._pieces = self._response.aiter_bytes()
                return _head(self._response)
            case Read():
                return await anext(self._pieces, None) if self._pieces is not None else None
            case Pause(seconds):
                await asyncio.sleep(seconds)
            case _:
                await self.close()
        return None

    async def close(self) -> None:
        """Give it back."""
        response, self._response = self._response, None
        if response is not None:
            await response.aclose()
