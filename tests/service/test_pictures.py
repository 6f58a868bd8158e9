"""A picture by its address: fetched only where it is allowed, only from public addresses, within limits."""

from __future__ import annotations

import itertools
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from cliploop.site import Site
from orchestrator.errors import BackendUnavailable, TaskRejected
from service import pictures
from service.app import create_app
from service.pictures import fetched, named_picture
from storage.addresses import Rules
from tests.service.asking import maze, submission
from tests.service.serving import client_of, served
from tests.storage.receivers import receiving, saying
from tests.workers.sites import a_site

OPEN = Rules(("http", "https"), private=True)
LIMIT = 100_000


@pytest.fixture(scope="module")
def fetching(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with a_site(tmp_path_factory.mktemp("site"), {"CLIPLOOP_SERVICE__FETCH_URLS": "true"}) as site:
        yield site


def test_a_picture_is_fetched_where_it_redirects_to(fetching: Site) -> None:
    png, _ = maze()
    with receiving((200, {"Content-Type": "text/html"}, png)) as there:
        with receiving((302, {"Location": f"{there.url}/a.png"}, b"")) as here:
            assert named_picture(fetching, "", f"{here.url}/moved", rules=OPEN) == png
        assert [path for path, _, _ in there.got] == ["/a.png"]


def test_a_redirect_to_what_is_not_public_is_not_followed() -> None:
    def resolve(host: str, _port: int) -> list[str]:
        return ["127.0.0.1"] if host == "pictures.example" else ["169.254.169.254"]

    rules = Rules(("http", "https"), private=True, resolve=resolve)
    for inside in (
        "http://169.254.169.254/latest",
        "http://inside.example/",
        "file:///etc/passwd",
        "gopher://x/",
        "http://[",
        "//",
    ):
        with receiving((302, {"Location": inside}, b"")) as here:
            port = here.url.rpartition(":")[2]
            with pytest.raises(TaskRejected) as refused:
                fetched(f"http://pictures.example:{port}/", rules, max_bytes=LIMIT)
        assert refused.value.reason == "picture_address"


def test_redirects_in_a_circle_end() -> None:
    with receiving((302, {"Location": "/again"}, b"")) as here:
        with pytest.raises(TaskRejected, match="redirects more than 3 times"):
            fetched(here.url, OPEN, max_bytes=LIMIT)
        assert len(here.got) == 4


@pytest.mark.parametrize(
    ("status", "body", "reason", "says"),
    [
        (404, b"none", "picture_address", "404"),
        (204, b"", "picture_address", "204"),
        (302, b"", "picture_address", "redirects"),
        (200, b"x" * (LIMIT + 1), "too_large", "MiB"),
    ],
)
def test_what_gives_no_picture_is_refused(status: int, body: bytes, reason: str, says: str) -> None:
    with receiving((status, {}, body)) as here, pytest.raises(TaskRejected, match=says) as refused:
        fetched(here.url, OPEN, max_bytes=LIMIT)
    assert refused.value.reason == reason


def test_a_server_that_never_ends_costs_no_more_than_the_limits() -> None:
    def endless(_talking: socket.socket) -> Iterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\n\r\n"
        yield from itertools.repeat(b"x" * 4096)

    def silent(talking: socket.socket) -> Iterator[bytes]:
        while talking.recv(65536):
            pass
        yield b""

    with saying(endless) as place, pytest.raises(TaskRejected, match="MiB"):
        fetched(f"http://{place}/", OPEN, max_bytes=LIMIT)
    with saying(silent) as place, pytest.raises(TaskRejected, match="no answer"):
        fetched(f"http://{place}/", OPEN, max_bytes=LIMIT, seconds=0.3)


def test_only_so_many_pictures_are_fetched_at_a_time() -> None:
    for _ in range(pictures.FETCHES):
        assert pictures._UNDER_WAY.acquire(blocking=False)
    try:
        with pytest.raises(BackendUnavailable, match="again"):
            fetched("http://127.0.0.1:9/", OPEN, max_bytes=LIMIT)
    finally:
        pictures._UNDER_WAY.release(pictures.FETCHES)


def test_addresses_of_pictures_are_judged_by_the_route(fetching: Site, tmp_path: Path) -> None:
    with receiving() as inside, served(create_app(fetching)) as address, client_of(address) as client:
        secure = inside.url.replace("http://", "https://")
        for url in (inside.url, secure, "https://localhost/", "https://[::ffff:127.0.0.1]/", "https://user@x/"):
            refused = client.post("/v1/jobs", json={**submission(), "picture": url})
            assert refused.status_code == 422, refused.text
            assert refused.json()["code"] == "picture_address"
        assert inside.got == []
