"""A loopback proxy that loses connections as a network does, and one flow of calls for both kinds of client."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from typing import Any, cast
from urllib.parse import urlsplit

from cliploop.client import AsyncClient, Client

Cut = Callable[[bytes], int | None]
"""Told all that came back so far on a connection: how much of it may pass, if it is to be lost there."""


def after_bytes(number: int) -> Cut:
    """Lost after so many bytes."""
    return lambda seen: number if len(seen) >= number else None


def after(words: bytes) -> Cut:
    """Lost right after these words."""
    return lambda seen: seen.find(words) + len(words) if words in seen else None


@contextlib.contextmanager
def losing(address: str, *cuts: Cut | None) -> Generator[str]:
    """An address before that one: the first connections are lost as `cuts` say, in order; None: not at all."""
    told = list(cuts)
    there = (urlsplit(address).hostname, urlsplit(address).port)
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    near, _ = listening.accept()
                except OSError:
                    return
                cut = told.pop(0) if told else None
                threading.Thread(target=_passed, args=(near, there, cut), daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        with contextlib.suppress(OSError):
            listening.shutdown(socket.SHUT_RDWR)


def _passed(near: socket.socket, there: Any, cut: Cut | None) -> None:
    with contextlib.suppress(OSError), near, socket.create_connection(there) as far:
        threading.Thread(target=_copied, args=(near, far), daemon=True).start()
        seen = b""
        passed = 0
        while data := far.recv(65536):
            seen += data
            limit = cut(seen) if cut is not None else None
            stop = len(seen) if limit is None else max(limit, passed)
            near.sendall(seen[passed:stop])
            passed = stop
            if limit is not None:
                break
        for each in (near, far):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


def _copied(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


class Calls:
    """Calls of the client of one kind, each with a client of its own; what is iterated comes as a list."""

    def __init__(self, kind: str, address: str, **options: Any) -> None:
        self.kind, self.address, self.options = kind, address, options

    def __call__(self, name: str, *args: Any, **more: Any) -> Any:
        if self.kind == "blocking":
            with Client(self.address, **self.options) as client:
                came: Any = getattr(client, name)(*args, **more)
                return list(cast("Iterator[Any]", came)) if isinstance(came, Iterator) else came
        return asyncio.run(self._awaited(name, *args, **more))

    async def _awaited(self, name: str, *args: Any, **more: Any) -> Any:
        async with AsyncClient(self.address, **self.options) as client:
            came: Any = getattr(client, name)(*args, **more)
            if isinstance(came, AsyncIterator):
                return [each async for each in cast("AsyncIterator[Any]", came)]
            return await came

    def through(self, address: str) -> Calls:
        """The same to another address."""
        return Calls(self.kind, address, **self.options)
