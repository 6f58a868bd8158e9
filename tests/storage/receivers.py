"""Servers on loopback that answer as a test says: over HTTP, or with whatever bytes."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Reply = tuple[int, Mapping[str, str], bytes]


@dataclass
class Receiver:
    """What an HTTP server was sent, and what it answers: the replies in order, the last one for ever."""

    url: str = ""
    replies: list[Reply] = field(default_factory=lambda: [(204, {}, b"")])
    got: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list[tuple[str, dict[str, str], bytes]])
    lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, path: str, headers: Mapping[str, str], body: bytes) -> Reply:
        with self.lock:
            self.got.append((path, {name.lower(): value for name, value in headers.items()}, body))
            return self.replies[min(len(self.got), len(self.replies)) - 1]


@contextlib.contextmanager
def receiving(*replies: Reply) -> Generator[Receiver]:
    """An HTTP server while the block runs."""
    receiver = Receiver(replies=list(replies) or [(204, {}, b"")])

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            status, headers, told = receiver.answer(self.path, dict(self.headers.items()), body)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            if status != 204:
                self.send_header("Content-Length", str(len(told)))
            self.end_headers()
            self.wfile.write(told)

        do_GET = do_POST  # noqa: N815 - the library asks for these names

        def log_message(self, format: str, *args: object) -> None:
            """Nothing is printed."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    receiver.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextlib.contextmanager
def saying(
    say: Callable[[socket.socket], Iterator[bytes]],
    wrap: Callable[[socket.socket], socket.socket] = lambda own: own,
) -> Generator[str]:
    """A server that sends these pieces to whoever connects, whatever it is asked; its host and port."""
    over = threading.Event()

    def talk(connection: socket.socket) -> None:
        with contextlib.suppress(OSError), wrap(connection) as talking:
            talking.recv(65536)
            for piece in say(talking):
                if over.is_set():
                    return
                talking.sendall(piece)

    def serve(listening: socket.socket) -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            threading.Thread(target=talk, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve, args=(listening,), daemon=True)
        thread.start()
        try:
            yield f"127.0.0.1:{listening.getsockname()[1]}"
        finally:
            over.set()
            with contextlib.suppress(OSError):
                listening.shutdown(socket.SHUT_RDWR)
    thread.join()
