"""How much of a request's body is read: refused by its stated length, or as soon as more arrives."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.problems import BodyTooLarge, problem

MAX_BODY_BYTES = 70_000_000  # a picture of 50 MB as a data URL


@dataclass(frozen=True)
class BodyLimit:
    """Middleware: 413 for bodies over the limit, before they are read where their length is stated."""

    app: ASGIApp
    max_bytes: int = MAX_BODY_BYTES

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        stated = next((value for name, value in scope["headers"] if name == b"content-length"), b"")
        if stated.isdigit() and (len(stated) > 18 or int(stated) > self.max_bytes):
            error = BodyTooLarge(self.max_bytes)
            response = problem(413, "too_large", error.detail, headers={"Connection": "close"})
            await response(scope, receive, send)
            return
        read = 0

        async def counted() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > self.max_bytes:
                raise BodyTooLarge(self.max_bytes)
            return message

        await self.app(scope, counted, send)
