"""How much of a request's body is read, and for how long: what is too long is refused, unread if possible."""

from __future__ import annotations

import time
from dataclasses import dataclass

import anyio
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.problems import BodyTooLarge, BodyTooSlow, problem

PAUSE_SECONDS = 30.0  # between two pieces
WHOLE_SECONDS = 600.0


@dataclass(frozen=True)
class BodyLimit:
    """Middleware: 413 for bodies over the limit, 408 for slow ones; unread where the stated length says it."""

    app: ASGIApp
    max_bytes: int
    pause_seconds: float = PAUSE_SECONDS
    whole_seconds: float = WHOLE_SECONDS

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        stated = headers.get(b"content-length", b"")
        if stated and b"transfer-encoding" in headers:  # who reads one sees another request than who reads both
            says = "the request says its length twice: send Content-Length or Transfer-Encoding, not both"
            response = problem(400, "two_lengths", says, headers={"Connection": "close"})
            await response(scope, receive, send)
            return
        if stated.isdigit() and (len(stated) > 18 or int(stated) > self.max_bytes):
            error = BodyTooLarge(self.max_bytes)
            response = problem(413, "too_large", error.detail, headers={"Connection": "close"})
            await response(scope, receive, send)
            return
        await self.app(scope, _Counted(self, receive).receive, send)


class _Counted:
    """A request's messages; after its body no limit holds, what comes then is only that the client went away."""

    def __init__(self, limit: BodyLimit, receive: Receive) -> None:
        self._limit = limit
        self._receive = receive
        self._read_bytes = 0
        self._is_whole = False
        self._over_at: float | None = None

    async def receive(self) -> Message:
        """The next message. Raises BodyTooLarge, BodyTooSlow."""
        if self._is_whole:
            return await self._receive()
        message = await self._in_time()
        self._read_bytes += len(message.get("body", b""))
        self._is_whole = not message.get("more_body", False)
        if self._read_bytes > self._limit.max_bytes:
            raise BodyTooLarge(self._limit.max_bytes)
        return message

    async def _in_time(self) -> Message:
        now = time.monotonic()
        if self._over_at is None:
            self._over_at = now + self._limit.whole_seconds
        with anyio.move_on_after(min(self._limit.pause_seconds, self._over_at - now)):
            return await self._receive()
        raise BodyTooSlow
