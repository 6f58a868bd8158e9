"""How the server ends: watchers are let go at once and in order; and whom it hangs up on."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import resource
import socket
import threading
import time
from collections.abc import AsyncGenerator

import httpx
import pytest
from fastapi.responses import StreamingResponse

from cliploop.site import Site
from service.app import create_app
from tests.service.asking import posted
from tests.service.serving import client_of, served

WATCHERS = 1000
FEW = 50


async def _watch(port: int, job_id: str, ready: asyncio.Semaphore) -> bytes:
    """All that one watcher gets until its stream ends."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET /v1/jobs/{job_id}/events HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    got = await reader.readuntil(b"event: state")
    ready.release()
    try:
        return got + await reader.read()
    finally:
        writer.close()


async def _watch_all(port: int, job_id: str, number: int, ready: threading.Event) -> list[bytes]:
    seen = asyncio.Semaphore(0)
    watching = [asyncio.create_task(_watch(port, job_id, seen)) for _ in range(number)]
    for _ in range(number):
        await seen.acquire()
    ready.set()
    return await asyncio.gather(*watching)


@pytest.mark.parametrize("number", [FEW, pytest.param(WATCHERS, marks=pytest.mark.slow)])
def test_every_stream_ends_in_order_and_nothing_is_logged(
    site: Site, number: int, caplog: pytest.LogCaptureFixture
) -> None:
    if resource.getrlimit(resource.RLIMIT_NOFILE)[0] < 3 * number:
        pytest.skip("too few files may be open")
    caplog.set_level(logging.WARNING)
    ready, got = threading.Event(), list[bytes]()
    with served(create_app(site), drain_seconds=60) as address:
        with client_of(address) as client:
            job_id = posted(client)
        port = httpx.URL(address).port
        assert port is not None
        watch = threading.Thread(
            target=lambda: got.extend(asyncio.run(_watch_all(port, job_id, number, ready))), daemon=True
        )
        watch.start()
        assert ready.wait(120)
    watch.join(60)
    assert len(got) == number
    assert all(each.endswith(b"\r\n0\r\n\r\n") for each in got)  # whole, not cut off
    assert caplog.messages == []


def test_who_reads_nothing_is_hung_up_on_and_nothing_is_logged(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    app, sent, left = create_app(site), threading.Event(), threading.Event()

    async def flood() -> AsyncGenerator[bytes]:
        try:
            while True:
                await asyncio.sleep(0)
                yield bytes(2**20)
                sent.set()
        finally:
            left.set()

    app.add_api_route("/healthz/flood", lambda: StreamingResponse(flood()))
    with socket.socket() as stuck:
        with served(app, drain_seconds=0.2) as address:
            stuck.connect(("127.0.0.1", httpx.URL(address).port))
            stuck.sendall(b"GET /healthz/flood HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert sent.wait(60)
        assert left.is_set()
    assert caplog.messages == []


def test_a_request_under_way_is_still_answered(site: Site) -> None:
    app, asked, ending = create_app(site), threading.Event(), threading.Event()

    def slow() -> str:
        asked.set()
        assert ending.wait(60)
        return "answered"

    app.add_api_route("/healthz/slow", slow)
    answers = list[str]()

    def ask(address: str) -> None:
        with client_of(address) as client:
            answers.append(client.get("/healthz/slow").json())

    with served(app, drain_seconds=60) as address:
        asking = threading.Thread(target=ask, args=[address], daemon=True)
        asking.start()
        assert asked.wait(60)
        threading.Timer(0.3, ending.set).start()  # while the server, which the block's end ends, waits for it
    asking.join(60)
    assert answers == ["answered"]


def test_who_says_nothing_or_never_ends_its_request_is_hung_up_on_and_nobody_else(site: Site) -> None:
    with served(create_app(site), head_seconds=1.5) as address, client_of(address) as client:
        port = httpx.URL(address).port
        assert port is not None
        silent, trickling, watching = (socket.create_connection(("127.0.0.1", port), 30) for _ in range(3))
        job_id = posted(client)
        with silent, trickling, watching:
            watching.sendall(f"GET /v1/jobs/{job_id}/events HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            trickling.sendall(b"GET /v1/jobs HTTP/1.1\r\nHost: ")
            for _ in range(4):  # one connection, kept and used for longer than that
                assert client.get("/healthz").status_code == 200
                time.sleep(0.5)
            for hung_up_on in (silent, trickling):
                with contextlib.suppress(ConnectionResetError):
                    assert hung_up_on.recv(1) == b""
            assert watching.recv(12) == b"HTTP/1.1 200"
            with client_of(address) as another:
                another.post(f"/v1/jobs/{job_id}/cancel")
            watching.settimeout(30)
            rest = b""
            while b"cancelled" not in rest:
                more = watching.recv(4096)
                assert more, rest
                rest += more
