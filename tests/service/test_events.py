"""Following a job: every stored event once and in order, whatever happens to the connection or the broker."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from cliploop.site import Site
from storage.journal import read_entries
from tests.service.asking import posted, work
from tests.service.serving import client_of


@dataclass
class Seen:
    kind: str
    number: int | None
    words: dict[str, Any]


def events(response: httpx.Response) -> Iterator[Seen]:
    """What a browser's EventSource would hand over."""
    kind, number, data = "message", None, ""
    for line in response.iter_lines():
        name, _, value = line.partition(": ")
        if name == "event":
            kind = value
        elif name == "id":
            number = int(value)
        elif name == "data":
            data = value
        elif not line and data:
            yield Seen(kind, number, json.loads(data))
            kind, number, data = "message", None, ""


def stored(site: Site, job_id: str) -> list[int]:
    return [entry.sequence for entry in read_entries(site.database, job_id)]


def numbers(seen: list[Seen]) -> list[int]:
    return [each.number for each in seen if each.number is not None]


def test_a_watcher_gets_every_event_in_order_and_the_stream_ends_with_the_job(
    site: Site, client: httpx.Client
) -> None:
    job_id = posted(client)
    worker = threading.Thread(target=work, args=[site])
    with client.stream("GET", f"/v1/jobs/{job_id}/events") as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        worker.start()
        seen = list(events(response))
    worker.join()
    assert numbers(seen) == stored(site, job_id)
    assert seen[0].words["value"]["state"] == "queued"
    assert seen[-1].words["value"]["state"] == "succeeded"
    told = [each for each in seen if each.kind == "progress"]
    assert told
    assert all(each.number is None for each in told)


def test_a_watcher_that_comes_back_goes_on_after_its_last_event(site: Site, client: httpx.Client) -> None:
    job_id = posted(client)
    work(site)
    path, whole = f"/v1/jobs/{job_id}/events", stored(site, job_id)

    def after(number: str) -> httpx.Response:
        return client.get(path, headers={"Last-Event-ID": number})

    assert numbers(list(events(after("3")))) == whole[3:]
    assert numbers(list(events(after("")))) == whole
    assert after(str(whole[-1])).status_code == 204
    assert after("9" * 400).status_code == 204
    assert after("three").status_code == 422
    assert after("-1").status_code == 422
    assert client.get("/v1/jobs/job-nobody/events").status_code == 404


def test_events_come_while_the_broker_is_away(site: Site, client: httpx.Client) -> None:
    job_id = posted(client)
    work(site, messages=1)
    with client.stream("GET", f"/v1/jobs/{job_id}/events") as response:
        coming = events(response)
        assert next(coming).words["value"]["state"] == "queued"
        site.messages._redis.shutdown(nosave=True)
        assert client_cancel(client, job_id) == "cancelling"
        assert [each.words["value"]["state"] for each in coming_until(coming, "cancelling")][-1] == "cancelling"


def client_cancel(client: httpx.Client, job_id: str) -> str:
    with client_of(str(client.base_url)) as other:
        return other.post(f"/v1/jobs/{job_id}/cancel").json()["state"]


def coming_until(coming: Iterator[Seen], state: str) -> list[Seen]:
    seen: list[Seen] = []
    for each in coming:
        if each.kind == "state":
            seen.append(each)
            if each.words["value"]["state"] == state:
                return seen
    return seen


def test_a_watcher_of_a_quiet_job_hears_a_heartbeat_and_of_a_deleted_one_its_end(
    site: Site, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.hub.HEARTBEAT_SECONDS", 0.1)
    monkeypatch.setattr("service.hub.ASK_ANYWAY", 1)
    job_id = posted(client)
    with client.stream("GET", f"/v1/jobs/{job_id}/events") as response:
        lines = response.iter_lines()
        assert next(line for line in lines if line.startswith(":")) == ": still there"
        with client_of(str(client.base_url)) as other:
            other.delete(f"/v1/jobs/{job_id}")
        rest = list(lines)
    assert "event: deleted" in rest or any("cancelled" in line for line in rest)


def test_many_watchers_share_one_reader_and_one_ear(site: Site, client: httpx.Client) -> None:
    job_id = posted(client)
    results: list[list[int]] = []

    def watch() -> None:
        with client_of(str(client.base_url)) as own, own.stream("GET", f"/v1/jobs/{job_id}/events") as response:
            results.append(numbers(list(events(response))))

    watchers = [threading.Thread(target=watch) for _ in range(20)]
    for watcher in watchers:
        watcher.start()
    deadline = time.monotonic() + 20
    while len(results) < 20 and time.monotonic() < deadline:
        work(site, messages=5)
    for watcher in watchers:
        watcher.join(timeout=20)
    assert results == [stored(site, job_id)] * 20
    assert site.messages._redis.pubsub_numpat() == 1


def test_the_ear_outlives_what_others_say_on_the_broker(site: Site, client: httpx.Client) -> None:
    job_id = posted(client)
    with client.stream("GET", f"/v1/jobs/{job_id}/events") as response:
        coming = events(response)
        assert next(coming).kind == "state"
        for said in (b"no json", b"[]", b"\xff", b'{"kind": []}'):
            site.messages._redis.publish(f"cliploop:job:{job_id}", said)
        site.messages.tell(job_id, {"fraction": 0.5}, "progress")  # only the ear hears of progress
        assert next(each for each in coming if each.kind == "progress").words == {"fraction": 0.5}
