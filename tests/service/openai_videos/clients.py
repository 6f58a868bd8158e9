"""OpenAI's official client, unmodified, against a served site; and what stands between them in tests."""

from __future__ import annotations

import contextlib
import socket
import threading
import warnings
from collections.abc import Generator

import openai

from cliploop.site import Site
from tests.service.asking import work


def sync_client(address: str, key: str = "none") -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{address}/v1", api_key=key)


def async_client(address: str) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=f"{address}/v1", api_key="none")


@contextlib.contextmanager
def farewell_unheard() -> Generator[None]:
    """The client says at every call that OpenAI's own service has ended; that is not ours to fix."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The Sora API is scheduled", DeprecationWarning)
        yield


@contextlib.contextmanager
def working(site: Site) -> Generator[None]:
    """Workers at work while the block runs."""
    over = threading.Event()

    def go_on() -> None:
        while not over.is_set():
            work(site, messages=1)

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextlib.contextmanager
def breaking_once(address: str) -> Generator[tuple[str, list[bytes]]]:
    """A way to the server that breaks off its first answer when the server has given it; what was asked."""
    host, _, port = address.removeprefix("http://").partition(":")
    heads: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:
        over = threading.Event()
        listening.settimeout(0.1)

        def pass_on(from_client: socket.socket) -> None:
            with from_client, socket.create_connection((host, int(port))) as to_server:
                request = _whole(from_client)
                heads.append(request.partition(b"\r\n\r\n")[0])
                number = len(heads)
                to_server.sendall(request.replace(b"Connection: keep-alive", b"Connection: close", 1))
                answer = b"".join(iter(lambda: to_server.recv(65536), b""))
                if number > 1:
                    from_client.sendall(answer)

        def listen() -> None:
            while not over.is_set():
                with contextlib.suppress(TimeoutError):
                    connection = listening.accept()[0]
                    connection.settimeout(30)
                    pass_on(connection)

        thread = threading.Thread(target=listen)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}", heads
        finally:
            over.set()
            thread.join()


def _whole(connection: socket.socket) -> bytes:
    """One request with its body."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(65536)
    head, _, body = data.partition(b"\r\n\r\n")
    lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    missing = int(lengths[0].partition(b":")[2]) - len(body) if lengths else 0
    while missing > 0:
        piece = connection.recv(min(missing, 65536))
        data += piece
        missing -= len(piece)
    return data
