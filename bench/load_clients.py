"""Clients for `bench.load`, each command a process of its own: as cheap as can be, for they share the cores.

    python -m bench.load_clients watch HOST:PORT OUT     # job ids on stdin, a line for each watcher
    python -m bench.load_clients read HOST:PORT OUT      # on stdin the arguments of `read`, as JSON

It says "ready" on stdout once every watcher is connected, and writes what it saw to OUT as JSON. It knows HTTP
and server-sent events, nothing of the service.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import resource
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

from bench.load_figures import checksum

LOWER_PRIORITY = 10
CONNECTED_AT_ONCE = 50
SPARE_DESCRIPTORS = 64


class Watcher(asyncio.Protocol):
    """One connection to a job's events; everything that comes is kept as it is."""

    def __init__(self, host: str, job_id: str) -> None:
        self.job_id = job_id
        self.received = bytearray()
        self.begun, self.over = asyncio.Event(), asyncio.Event()
        self._asked = f"GET /v1/jobs/{job_id}/events HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast("asyncio.Transport", transport).write(self._asked.encode())

    def data_received(self, data: bytes) -> None:
        self.received += data
        self.begun.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.begun.set()
        self.over.set()


def body_of(received: bytes) -> bytes:
    """The body of an answer that came in chunks, as far as it came."""
    head, _, rest = received.partition(b"\r\n\r\n")
    if b"chunked" not in head.lower():
        return rest
    whole = bytearray()
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        length = int(size or b"0", 16)
        if not length:
            break
        whole += rest[:length]
        rest = rest[length + 2 :]
    return bytes(whole)


def stored_events(body: bytes) -> Iterator[tuple[int, str, int]]:
    """Number, kind and checksum of each event that has a number."""
    for block in body.decode().split("\n\n"):
        parts = (line.partition(": ") for line in block.splitlines())
        fields: dict[str, str] = {name: value for name, _, value in parts}
        if "id" in fields:
            yield int(fields["id"]), fields["event"], checksum(json.loads(fields["data"]))


async def watch(host: str, job_ids: Sequence[str]) -> list[dict[str, Any]]:
    """Watch until every stream has ended; of each watcher its job, the answer's first line, and its events."""
    loop = asyncio.get_running_loop()
    name, _, port = host.rpartition(":")
    watchers = [Watcher(host, job_id) for job_id in job_ids]
    for first in range(0, len(watchers), CONNECTED_AT_ONCE):
        some = watchers[first : first + CONNECTED_AT_ONCE]
        for each in some:
            await loop.create_connection(lambda each=each: each, name, int(port))
        await asyncio.gather(*(each.begun.wait() for each in some))
    print("ready", flush=True)
    await asyncio.gather(*(each.over.wait() for each in watchers))
    return [
        {
            "job": each.job_id,
            "answer": bytes(each.received).partition(b"\r\n")[0].decode(errors="replace"),
            "events": list(stored_events(body_of(bytes(each.received)))),
        }
        for each in watchers
    ]


async def read(
    host: str, paths: Sequence[str], seconds: float, connections: int, per_second: float
) -> dict[str, Any]:
    """Ask for the paths in turn, over so many connections that stay: seconds per answer, and what was not 200.

    Each connection asks as soon as it is answered, or in all `per_second` times a second if that is not 0.
    """
    began = time.perf_counter()
    taken: list[float] = []
    refused: list[str] = []
    pause = connections / per_second if per_second else 0.0

    async def ask(number: int) -> None:
        name, _, port = host.rpartition(":")
        reader, writer = await asyncio.open_connection(name, int(port))
        turn = number
        while time.perf_counter() - began < seconds:
            path = paths[turn % len(paths)]
            turn += connections
            at = time.perf_counter()
            writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(_length(head))
            taken.append(time.perf_counter() - at)
            if not head.startswith(b"HTTP/1.1 200"):
                refused.append(head.partition(b"\r\n")[0].decode())
            if pause:
                await asyncio.sleep(max(0.0, pause - (time.perf_counter() - at)))
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    await asyncio.gather(*map(ask, range(connections)))
    times = os.times()
    return {
        "seconds": time.perf_counter() - began,
        "taken": taken,
        "refused": refused[:10],
        "cpu_seconds": times.user + times.system,
    }


def _length(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line.partition(b":")[2])
    return 0


def allow_descriptors(count: int) -> str:
    """Raise the limit of open files as far as is needed and allowed; what is to be said if it is too low."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count + SPARE_DESCRIPTORS
    if soft >= wanted:
        return ""
    reachable = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, reachable), hard))
    if reachable < wanted:
        return f"only {reachable} files may be open here, {wanted} are needed: raise `ulimit -Hn`"
    return ""


def main(arguments: Sequence[str]) -> int:
    """One command."""
    command, host, out = arguments
    os.nice(LOWER_PRIORITY)
    said = sys.stdin.read()
    if command == "watch":
        job_ids = said.split()
        if problem := allow_descriptors(len(job_ids)):
            print(problem, file=sys.stderr)
            return 1
        found: Any = asyncio.run(watch(host, job_ids))
    else:
        asked = json.loads(said)
        found = asyncio.run(
            read(host, asked["paths"], asked["seconds"], asked["connections"], asked["per_second"])
        )
    Path(out).write_text(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
