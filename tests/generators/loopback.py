"""A vendor's server on loopback: answers by path, faults first, every request on record, over HTTP or TLS."""

from __future__ import annotations

import contextlib
import json
import ssl
import threading
import time
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from email.parser import BytesParser
from email.policy import HTTP
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BufferedIOBase
from typing import Any, BinaryIO, Protocol


@dataclass(frozen=True)
class Request:
    """What came: headers by lower-case names."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def form(self) -> dict[str, Any]:
        """Fields of a form: text, or (file name, kind, bytes)."""
        head = f"content-type: {self.headers['content-type']}\r\n\r\n".encode()
        message = BytesParser(policy=HTTP).parsebytes(head + self.body)
        found: dict[str, Any] = {}
        for part in message.iter_parts():
            content: Any = part.get_payload(decode=True)
            name, file = part.get_param("name", header="content-disposition"), part.get_filename()
            found[str(name)] = content.decode() if file is None else (file, part.get_content_type(), content)
        return found


@dataclass(frozen=True)
class Reply:
    """An answer. `claims`: a length that is told instead of the body's; `hangs_up`: none is given at all.

    `holds`: only once that is set, or after half a minute, is it given, or what it claims found missing.
    `trickles`: seconds from one byte of the body to the next.
    """

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    claims: int | None = None
    hangs_up: bool = False
    holds: threading.Event | None = None
    trickles: float = 0.0


def as_json(value: Any, status: int = 200, **headers: str) -> Reply:
    named = {name.replace("_", "-"): said for name, said in headers.items()}
    return Reply(status, json.dumps(value).encode(), {"content-type": "application/json", **named})


def as_html(status: int = 200) -> Reply:
    page = b"<!DOCTYPE html><html><head><title>Sign in</title></head><body>Please sign in</body></html>"
    return Reply(status, page, {"content-type": "text/html"})


class Vendor(Protocol):
    """What answers, one request at a time."""

    def answer(self, request: Request) -> Reply: ...


def _hold(reply: Reply) -> None:
    if reply.holds is not None:
        reply.holds.wait(30)


def _write(out: BinaryIO | BufferedIOBase, reply: Reply) -> None:
    if not reply.trickles:
        out.write(reply.body)
        return
    for byte in reply.body:
        out.write(bytes([byte]))
        out.flush()
        time.sleep(reply.trickles)


@contextlib.contextmanager
def served(vendor: Vendor, tls: ssl.SSLContext | None = None) -> Generator[str]:
    """Serve it while the block runs; its address."""
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            length = int(self.headers.get("content-length", 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            with lock:
                reply = vendor.answer(Request(self.command, self.path, headers, self.rfile.read(length)))
            if reply.hangs_up:
                _hold(reply)
                self.close_connection = True
                return
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(reply.body) if reply.claims is None else reply.claims))
            self.end_headers()
            _write(self.wfile, reply)
            _hold(reply)
            self.close_connection = reply.claims is not None

        do_GET = do_DELETE = do_POST  # noqa: N815 - the library asks for these names

        def log_message(self, format: str, *args: object) -> None:
            """Nothing is printed."""

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            """A client that hangs up, or refuses our certificate, is no fault of the test."""

    server = Quiet(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    scheme = "http" if tls is None else "https"
    try:
        yield f"{scheme}://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
