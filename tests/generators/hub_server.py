"""A loopback hub of checkpoints, as far as its own client asks: what a repository holds, and its files."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import threading
from collections.abc import Generator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

COMMIT = "1" * 40
MODEL = "lab/tiny-wan2.2-i2v-a14b"
UNTOLD = "lab/our-tune"  # the same, by a name that does not say what it is
NAMES = f"(?:{MODEL}|{UNTOLD})"


@dataclass
class Hub:
    """What it serves and what it was asked.

    `breaks`: how many downloads of weights break off half-way; `claims`: what it adds to the size of each file.
    """

    folder: Path
    url: str = ""
    breaks: int = 0
    claims: int = 0
    gated: bool = False
    asked: list[str] = field(default_factory=list[str])
    tokens: set[str] = field(default_factory=set[str])
    ranges: list[str] = field(default_factory=list[str])

    def files(self) -> list[Path]:
        return sorted(path for path in self.folder.rglob("*") if path.is_file())

    def told(self) -> dict[str, Any]:
        """As the hub's API tells a repository."""
        siblings = [
            {"rfilename": str(path.relative_to(self.folder)), "size": path.stat().st_size + self.claims}
            for path in self.files()
        ]
        return {"id": MODEL, "modelId": MODEL, "sha": COMMIT, "siblings": siblings, "private": False}

    def tree(self) -> list[dict[str, Any]]:
        """As its API lists files."""
        return [
            {
                "type": "file",
                "path": str(path.relative_to(self.folder)),
                "size": path.stat().st_size,
                "oid": hashlib.sha1(path.read_bytes()).hexdigest(),
            }
            for path in self.files()
        ]


@contextlib.contextmanager
def serving(folder: Path) -> Generator[Hub]:
    """Serve that folder as the repositories MODEL and UNTOLD, on a loopback port."""
    hub = Hub(folder)

    class Answers(_Answers):
        served = hub

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    hub.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Answers(BaseHTTPRequestHandler):
    served: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        del format, args

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, *, body: bool) -> None:
        hub, path = self.served, self.path.partition("?")[0]
        hub.asked.append(path)
        hub.tokens.add(self.headers.get("Authorization", ""))
        if hub.gated:
            self._say(403, b"", {"X-Error-Code": "GatedRepo", "X-Error-Message": "ask for access"}, body=body)
        elif re.fullmatch(rf"/api/models/{NAMES}(/revision/[^/]+)?", path):
            self._json(hub.told(), body=body)
        elif re.fullmatch(rf"/api/models/{NAMES}/tree/[^/]+", path):
            self._json(hub.tree(), body=body)
        elif (found := re.fullmatch(rf"/{NAMES}/resolve/[^/]+/(.+)", path)) and (hub.folder / found[1]).is_file():
            self._file(hub.folder / found[1], body=body)
        else:
            self._say(
                404, b"", {"X-Error-Code": "RepoNotFound", "X-Error-Message": "no such repository"}, body=body
            )

    def _json(self, value: Any, *, body: bool) -> None:
        self._say(200, json.dumps(value).encode(), {"Content-Type": "application/json"}, body=body)

    def _file(self, path: Path, *, body: bool) -> None:
        data = path.read_bytes()
        told = {
            "ETag": f'"{hashlib.sha256(data).hexdigest()}"',
            "X-Repo-Commit": COMMIT,
            "Accept-Ranges": "bytes",
        }
        first = 0
        if (asked := self.headers.get("Range")) and (found := re.fullmatch(r"bytes=(\d+)-(\d*)", asked)):
            self.served.ranges.append(asked)
            first = int(found[1])
            told["Content-Range"] = f"bytes {first}-{len(data) - 1}/{len(data)}"
        if body and path.suffix == ".safetensors" and self.served.breaks:
            self.served.breaks -= 1
            self._break(data[first:], told)
        else:
            self._say(206 if first else 200, data[first:], told, body=body)

    def _break(self, data: bytes, told: dict[str, str]) -> None:
        """Half of it, and the connection ends."""
        self._head(200, len(data), told)
        self.wfile.write(data[: len(data) // 2])
        self.close_connection = True

    def _say(self, status: int, data: bytes, told: dict[str, str], *, body: bool) -> None:
        self._head(status, len(data), told)
        if body:
            self.wfile.write(data)

    def _head(self, status: int, length: int, told: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**told, "Content-Length": str(length)}.items():
            self.send_header(name, value)
        self.end_headers()
