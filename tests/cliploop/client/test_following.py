"""Following a job: every event once and in order, whatever becomes of connections and of the API."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from cliploop.client import AsyncClient, Client, ClientError, Event, NotThere, ServerUnreachable, StillGoing
from cliploop.client.following import EventStream
from cliploop.site import Site
from service.app import create_app
from storage.journal import read_entries
from tests.cliploop.client.conftest import submitted
from tests.cliploop.client.connections import Calls, after, losing
from tests.service.asking import work
from tests.service.serving import served


def stored(site: Site, job_id: str) -> list[int]:
    return [entry.sequence for entry in read_entries(site.database, job_id)]


def numbers(events: list[Event]) -> list[int]:
    return [event.number for event in events if event.number is not None]


def test_every_event_comes_once_in_order_until_the_final_one(calls: Calls, site: Site, client: Client) -> None:
    job_id = submitted(client)
    worker = threading.Thread(target=work, args=[site])
    worker.start()
    events = calls("events", job_id)
    worker.join()
    assert numbers(events) == stored(site, job_id)
    assert events[0].value["state"] == "queued"
    assert events[-1].final
    assert {event.kind for event in events} >= {"state", "record", "progress"}
    assert all(0 <= event.value["fraction"] <= 1 for event in events if event.kind == "progress")
    assert numbers(calls("events", job_id, after=3)) == stored(site, job_id)[3:]
    assert calls("events", job_id, after=stored(site, job_id)[-1]) == []


def test_a_connection_lost_between_two_events_loses_none_and_doubles_none(
    calls: Calls, site: Site, finished: str
) -> None:
    heard: list[tuple[ClientError, float]] = []

    def note(error: ClientError, seconds: float) -> None:
        heard.append((error, seconds))

    with losing(calls.address, behind_the_third, after(b"id: 5\nevent: re")) as lossy:
        events = calls.through(lossy)("events", finished, on_lost=note)
    assert numbers(events) == stored(site, finished)
    assert len(heard) == 2
    assert all(isinstance(error, ServerUnreachable) and pause > 0 for error, pause in heard)


def behind_the_third(seen: bytes) -> int | None:
    """Just behind the third event."""
    began = seen.find(b"id: 3\n")
    end = seen.find(b"\n\n", began)
    return end + 2 if 0 <= began < end else None


@pytest.mark.slow
def test_an_api_that_is_stopped_and_started_again_is_gone_on_with(calls: Calls, site: Site) -> None:
    app = create_app(site)
    with served(app) as address, Client(address) as client:
        port = int(address.rpartition(":")[2])
        job_id = submitted(client)
        work(site, messages=2)
        events: list[Event] = []
        heard: list[ClientError] = []
        there = Calls(calls.kind, address)

        def note(error: ClientError, _seconds: float) -> None:
            heard.append(error)

        def follow() -> None:
            events.extend(there("events", job_id, on_lost=note))

        watcher = threading.Thread(target=follow)
        watcher.start()
        deadline = time.monotonic() + 20
        while not app.state.hub._feeds and time.monotonic() < deadline:
            time.sleep(0.01)
    while not heard and time.monotonic() < deadline:
        time.sleep(0.01)
    work(site, messages=3)
    with served(create_app(site), port):
        work(site)
        watcher.join(30)
    assert heard
    assert numbers(events) == stored(site, job_id)
    assert events[-1].value["state"] == "succeeded"


def test_the_end_of_a_job_is_waited_for(calls: Calls, site: Site, client: Client) -> None:
    job_id = submitted(client)
    with pytest.raises(StillGoing):
        calls("wait", job_id, timeout_seconds=0.2)
    worker = threading.Thread(target=work, args=[site])
    worker.start()
    job = calls("wait", job_id, timeout_seconds=60)
    worker.join()
    assert (job.state, job.outcome) == ("succeeded", "completed")


def test_a_deleted_job_ends_the_watch_and_an_unknown_one_has_none(
    calls: Calls, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.hub.ASK_ANYWAY", 1)
    job_id = submitted(client)
    threading.Timer(0.3, client.delete, [job_id]).start()
    assert calls("events", job_id)[-1].final
    with pytest.raises(NotThere):
        calls("events", job_id)


def test_nobody_there_ends_when_patience_is_over(calls: Calls, finished: str) -> None:
    def nothing(_seen: bytes) -> int:
        return 0

    with losing(calls.address, *[nothing] * 50) as lossy:
        impatient = Calls(calls.kind, lossy, patience_seconds=0.5)
        with pytest.raises(ServerUnreachable):
            impatient("events", finished)


def test_watchers_may_stop_early_and_many_share_one_client(address: str, finished: str) -> None:
    with Client(address) as client:
        assert next(client.events(finished)).number == 1

    async def both() -> list[list[Event]]:
        async with AsyncClient(address) as client:

            async def first(number: int) -> list[Event]:
                seen: list[Event] = []
                async for event in client.events(finished):
                    seen.append(event)
                    if len(seen) == number:
                        break
                return seen

            return list(await asyncio.gather(first(2), first(4), first(10**6)))

    seen = asyncio.run(both())
    assert [len(each) for each in seen[:2]] == [2, 4]
    assert seen[2][-1].final


STREAM = (
    ": hi\nretry: 1500\n\nid: 7\r\nevent: state\r\ndata: {\r\ndata: }\r\n\r\n"
    "data\n\nid: 8\ndata:é\n\ndata: never\n"
)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_events_are_read_from_pieces_of_any_size(size: int) -> None:
    data = STREAM.encode()
    stream = EventStream()
    told = [each for at in range(0, len(data), size) for each in stream.feed(data[at : at + size])]
    assert [(each.kind, each.id, each.data) for each in told] == [
        ("state", "7", "{\n}"),
        ("message", "7", ""),
        ("message", "8", "é"),
    ]
    assert stream.retry_seconds == 1.5
