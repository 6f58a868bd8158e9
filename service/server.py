"""The HTTP server of one process, and how it ends: event streams at once, other requests have some time.

A stream that ends before its job's final event is to a watcher a lost connection: it comes back with its last
number, to another process or to the next one here.
"""

from __future__ import annotations

import asyncio
import socket
import time
from typing import Any

import uvicorn
from fastapi import FastAPI

HEAD_SECONDS = 30.0  # for the head of a request; its body has a limit of its own (service.bodies)
DRAIN_SECONDS = 3.0  # for requests under way when the server is to end
_CANCEL_AFTER_SECONDS = 2  # from then on, for what goes on although nobody listens any more


class Server(uvicorn.Server):
    """Serves an application of `service.app`; ends on SIGTERM and SIGINT, or once `should_exit` is set."""

    def __init__(
        self, app: FastAPI, *, drain_seconds: float = DRAIN_SECONDS, head_seconds: float = HEAD_SECONDS
    ) -> None:
        limit = round(drain_seconds) + _CANCEL_AFTER_SECONDS
        super().__init__(uvicorn.Config(app, log_level="warning", ws="none", timeout_graceful_shutdown=limit))
        self._hub = app.state.hub
        self._drain_seconds = drain_seconds
        self._head_seconds = head_seconds
        self._silent: dict[Any, tuple[object, float]] = {}  # connections: after which request, and since when

    async def on_tick(self, counter: int) -> bool:
        """See uvicorn, which calls it ten times a second: it limits neither silence nor a head that trickles."""
        if counter % 10 == 0:
            self._hang_up_on_the_silent(time.monotonic())
        return await super().on_tick(counter)

    def _hang_up_on_the_silent(self, now: float) -> None:
        connections: list[Any] = list(self.server_state.connections)
        before, self._silent = self._silent, {}  # made anew, so that it holds nothing that is gone
        for connection in connections:
            latest = connection.cycle
            known, since = before.get(connection, (self, now))
            answering = latest is not None and not latest.response_complete
            self._silent[connection] = (latest, now if answering or known is not latest else since)
            if now - self._silent[connection][1] > self._head_seconds:
                connection.transport.abort()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the streams, wait for the rest, hang up on what is still there."""
        self._hub.end()
        late = asyncio.get_running_loop().call_later(self._drain_seconds, self._hang_up)
        try:
            await super().shutdown(sockets)
        finally:
            late.cancel()

    def _hang_up(self) -> None:
        """Whoever is still written to reads too slowly: to the application it has gone."""
        connections: list[Any] = list(self.server_state.connections)
        for connection in connections:
            connection.transport.abort()
