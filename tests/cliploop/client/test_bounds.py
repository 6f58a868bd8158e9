"""What a server says without end, or nested without end, is not taken in; what can be no name is not sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from cliploop.client import Client, NotUnderstood, RequestRejected
from cliploop.client.following import EVENT_BYTES, EventStream
from cliploop.client.routes import TRAJECTORY_BYTES
from cliploop.client.wire import ANSWER_BYTES

PIECE = 1 << 20


class Endless(httpx.SyncByteStream):
    """A piece again and again; how many were taken."""

    def __init__(self, piece: bytes) -> None:
        self.piece, self.taken = piece, 0

    def __iter__(self) -> Iterator[bytes]:
        while self.taken < 1000:
            self.taken += 1
            yield self.piece


def client_of(stream: httpx.SyncByteStream, kind: str = "application/json", status: int = 200) -> Client:
    def answer(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(status, headers={"Content-Type": kind}, stream=stream)

    return Client(transport=httpx.MockTransport(answer), patience_seconds=0)


def listed(client: Client) -> list[Any]:
    return list(client.list())


def watched(client: Client) -> list[Any]:
    return list(client.events("job-1"))


def of(name: str) -> Callable[[Client], Any]:
    return lambda client: getattr(client, name)("job-1")


@pytest.mark.parametrize(
    ("call", "status", "most"),
    [
        (listed, 200, ANSWER_BYTES),
        (of("get"), 200, ANSWER_BYTES),
        (of("get"), 404, ANSWER_BYTES),
        (of("cancel"), 200, ANSWER_BYTES),
        (of("trajectory"), 200, TRAJECTORY_BYTES),
    ],
)
def test_an_answer_without_end_is_given_up(call: Callable[[Client], Any], status: int, most: int) -> None:
    stream = Endless(b" " * PIECE)
    with client_of(stream, status=status) as client, pytest.raises(NotUnderstood, match="MiB") as refused:
        call(client)
    assert refused.value.code == "too_long"
    assert stream.taken == most // PIECE + 1


@pytest.mark.parametrize("piece", [b"x" * PIECE, b"data: " + b"x" * PIECE + b"\n"])
def test_an_event_without_end_is_given_up(piece: bytes) -> None:
    stream = Endless(piece)
    with client_of(stream, "text/event-stream") as client, pytest.raises(NotUnderstood, match="MiB"):
        watched(client)
    assert stream.taken <= EVENT_BYTES // PIECE + 1


def test_many_events_are_no_long_event() -> None:
    stream = EventStream()
    piece = b"data: " + b"x" * PIECE + b"\n\n"
    assert sum(1 for _ in range(2 * EVENT_BYTES // PIECE) for _ in stream.feed(piece)) == 2 * EVENT_BYTES // PIECE


@pytest.mark.parametrize("call", [listed, of("get"), of("trajectory"), of("cancel")])
def test_json_that_is_nested_too_deeply_is_not_understood(call: Callable[[Client], Any]) -> None:
    with client_of(httpx.ByteStream(b"[" * 100_000)) as client, pytest.raises(NotUnderstood):
        call(client)


@pytest.mark.parametrize("data", [b"[" * 100_000, b"[]", b"1", b"null"])
def test_an_event_that_is_no_object_is_not_understood(data: bytes) -> None:
    stream = httpx.ByteStream(b"event: record\ndata: " + data + b"\n\n")
    with client_of(stream, "text/event-stream") as client, pytest.raises(NotUnderstood):
        watched(client)


@pytest.mark.parametrize("name", ["", " ", ".", "..", "a\nb", "\udc80", "x" * 1000])
@pytest.mark.parametrize("call", ["get", "cancel", "delete", "retry", "trajectory", "wait", "sample"])
def test_what_can_be_no_name_is_not_sent(call: str, name: str) -> None:
    def answer(_request: httpx.Request) -> httpx.Response:
        raise AssertionError("nothing is sent")

    with Client(transport=httpx.MockTransport(answer)) as client, pytest.raises(RequestRejected) as refused:
        getattr(client, call)(name)
    assert str(refused.value).isprintable()
