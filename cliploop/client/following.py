"""A job's events as they come: read from the stream, gone on with after a lost connection, none twice."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from cliploop.client.answers import Event, Job
from cliploop.client.asking import Tries, answered, read_as, record, refusal, unreachable
from cliploop.client.errors import ClientError, NotThere, NotUnderstood, ServerUnreachable, StillGoing, TryLater
from cliploop.client.paths import job_path
from cliploop.client.wire import (
    Answer,
    Close,
    Emit,
    Flow,
    Head,
    Lost,
    Patience,
    Pause,
    Request,
    body,
    chunk,
    opened,
    swallowed,
)

SILENCE_SECONDS = 50.0  # three heartbeats and a little
LONGEST_RETRY_SECONDS = 60.0
EVENT_BYTES = 16 << 20  # of one event, and of one line
OnLost: TypeAlias = Callable[[ClientError, float], None]


@dataclass(frozen=True)
class Told:
    """One event of a stream, as it stands there."""

    kind: str
    id: str
    data: str


class EventStream:
    """Server-sent events, from bytes in whatever pieces they come. `retry_seconds`: what the server asks for."""

    def __init__(self) -> None:
        self.retry_seconds: float | None = None
        self._rest = bytearray()
        self._kind, self._id = "", ""
        self._data: list[str] = []
        self._num_bytes = 0  # of the event under way

    def feed(self, data: bytes) -> Iterator[Told]:
        """The events that are whole now. A last one without its empty line never comes. Raises NotUnderstood."""
        lines = data.split(b"\n")
        if len(lines) > 1:
            lines[0] = bytes(self._rest) + lines[0]
            self._rest = bytearray()
        self._rest += lines.pop()
        self._refuse_long(len(self._rest))
        for line in lines:
            self._num_bytes = self._num_bytes + len(line) if line.strip() else 0
            self._refuse_long(0)
            told = self._line(line.removesuffix(b"\r").decode("utf-8", "replace"))
            if told is not None:
                yield told

    def _refuse_long(self, more_bytes: int) -> None:
        if self._num_bytes + more_bytes > EVENT_BYTES:
            raise NotUnderstood(f"an event of the stream has more than {EVENT_BYTES >> 20} MiB", code="too_long")

    def _line(self, line: str) -> Told | None:
        if not line:
            told = Told(self._kind or "message", self._id, "\n".join(self._data)) if self._data else None
            self._kind, self._data = "", []
            return told
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._kind = value
        elif name == "id":
            self._id = value
        elif name == "retry" and value.isascii() and value.isdigit():
            self.retry_seconds = min(int(value[:9]) / 1000, LONGEST_RETRY_SECONDS)
        return None


class _Watch:
    """One watch: what was seen last, across connections."""

    def __init__(
        self, patience: Patience, job_id: str, after: int, on_lost: OnLost | None, deadline: float | None
    ) -> None:
        self._patience = patience
        self._path = f"{job_path(job_id)}/events"
        self._job_id = job_id
        self._seen = after
        self._met = False
        self._on_lost = on_lost
        self._deadline = deadline
        self._tries = Tries(patience)

    def flow(self) -> Flow[None]:
        """Every event, until nothing can follow. Raises ClientError."""
        while True:
            try:
                head = yield from opened(self._request())
                if head.status == 204:
                    return
                error = (yield from self._refused(head)) if head.status != 200 else (yield from self._read(head))
                if error is None:
                    return
            except Lost as lost:
                error = unreachable(lost)
                if lost.hopeless:
                    raise error from None
            yield Close()
            self._refuse_late()
            seconds = self._tries.pause(error)
            if self._on_lost is not None:
                self._on_lost(error, seconds)
            yield Pause(seconds)

    def _request(self) -> Request:
        silence = SILENCE_SECONDS
        if self._deadline is not None:
            silence = min(silence, max(0.01, self._deadline - self._patience.clock()))
        headers = {"Accept": "text/event-stream", "Accept-Encoding": "identity"}
        if self._seen:
            headers["Last-Event-ID"] = str(self._seen)
        return Request("GET", self._path, headers=headers, silence_seconds=silence)

    def _refused(self, head: Head) -> Flow[ClientError | None]:
        """None where the job was deleted while nobody listened."""
        error = refusal(Answer(head.status, head.headers, (yield from body())))
        if isinstance(error, NotThere) and self._met:
            yield Emit(Event(kind="deleted"))
            return None
        if not isinstance(error, TryLater):
            raise error
        return error

    def _read(self, head: Head) -> Flow[ClientError | None]:
        """None at the end of all events; an error where the stream ended before."""
        if not head.headers.get("content-type", "").startswith("text/event-stream"):
            said = "the answer is no stream of events: is the address that of a Cliploop server?"
            raise NotUnderstood(said, status=head.status)
        self._met = True
        stream = EventStream()
        while (data := (yield from chunk())) is not None:
            self._tries.heard()
            for told in stream.feed(data):
                event = _event(told)
                if not self._is_new(event):
                    continue
                yield Emit(event)
                if event.final:
                    yield Close()
                    return None
            self._refuse_late()
        self._tries.first_seconds = stream.retry_seconds or self._tries.first_seconds
        return ServerUnreachable("the server ended the stream of events early", code="unreachable")

    def _is_new(self, event: Event) -> bool:
        if event.number is None:
            return True
        if event.number <= self._seen:
            return False
        self._seen = event.number
        return True

    def _refuse_late(self) -> None:
        if self._deadline is not None and self._patience.clock() >= self._deadline:
            raise StillGoing(f"job {self._job_id} has not ended in the time given", code="still_going")


def events(patience: Patience, job_id: str, *, after: int = 0, on_lost: OnLost | None = None) -> Flow[None]:
    """Every event with a number above `after`, in order and once, then those that come, until the final one.

    A lost connection, or an API that is started again, is gone on with: `on_lost(error, seconds)` hears of each
    and of the pause that follows. Raises ClientError: NotThere, and ServerUnreachable when patience is over.
    """
    return _Watch(patience, job_id, after, on_lost, None).flow()


def wait(patience: Patience, job_id: str, *, timeout_seconds: float | None = None) -> Flow[Job]:
    """The job when it has ended. Raises StillGoing after `timeout_seconds`, NotThere if it is deleted."""
    deadline = None if timeout_seconds is None else patience.clock() + timeout_seconds
    watch = _Watch(patience, job_id, 0, None, deadline)
    yield from swallowed(watch.flow(), lambda _event: None)
    answer = yield from answered(patience, Request("GET", job_path(job_id)))
    return read_as(Job, answer)


def _event(told: Told) -> Event:
    try:
        said: Any = json.loads(told.data)
    except (ValueError, RecursionError):
        raise NotUnderstood(f"an event {told.kind[:60]!r} of the stream is not JSON") from None
    if not isinstance(said, dict):
        raise NotUnderstood(f"an event {told.kind[:60]!r} of the stream is no object")
    return _as_event(told, cast("dict[str, Any]", said))


def _as_event(told: Told, said: dict[str, Any]) -> Event:
    if told.kind in ("progress", "waits"):
        return record(Event, {"kind": told.kind, "key": said.get("key", ""), "value": said}, 200)
    if told.kind == "deleted" or "sequence" not in said:
        return Event(kind=told.kind)
    number = {"number": said["sequence"], "kind": told.kind}
    return record(Event, {**said, **number}, 200)
