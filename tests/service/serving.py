"""The API of a site, served for tests by a real server on a loopback port."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Generator

import httpx
from fastapi import FastAPI

from service.server import HEAD_SECONDS, Server


@contextlib.contextmanager
def served(
    app: FastAPI, port: int = 0, drain_seconds: float = 1.0, head_seconds: float = HEAD_SECONDS
) -> Generator[str]:
    """Serve it while the block runs; its address. Port 0: any free one."""
    # The protocol is named, or asyncio does not send answers at once: each would wait for an acknowledgement.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", port))
        listening.listen(2048)
        server = Server(app, drain_seconds=drain_seconds, head_seconds=head_seconds)
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


@contextlib.contextmanager
def client_of(address: str) -> Generator[httpx.Client]:
    with httpx.Client(base_url=address, timeout=60, trust_env=False) as client:
        yield client
