"""Workers that are missing are named: by readyz, in the job that waits for them, and in the metrics."""

from __future__ import annotations

import httpx
import pytest

from cliploop.client import Client, Event
from cliploop.site import Site
from storage.leases import take
from storage.queue import REASON, render_queue
from tests.service.asking import posted, work

REASONER, RENDERER = "reason@here:1", "render@here:2"


@pytest.fixture(autouse=True)
def seen_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept for a second is kept for none."""
    monkeypatch.setattr("service.crew.KEPT_SECONDS", 0.0)


def missing(client: httpx.Client) -> dict[str, str]:
    answer = client.get("/readyz")
    assert answer.status_code == (503 if answer.json()["missing"] else 200)
    return answer.json()["missing"]


def waits_for(client: httpx.Client, job_id: str) -> str | None:
    return client.get(f"/v1/jobs/{job_id}").json()["waits_for"]


def test_readyz_names_the_roles_that_nobody_has(site: Site, client: httpx.Client) -> None:
    assert list(missing(client)) == ["reason", "render"]
    site.messages.beat(REASONER)
    told = missing(client)
    assert list(told) == ["render"]
    assert "cliploop worker render" in told["render"]
    site.messages.beat(RENDERER, ["simulated"])
    assert missing(client) == {}
    site.messages.forget_beat(RENDERER)
    assert list(missing(client)) == ["render"]


def test_without_the_broker_only_the_broker_is_named(site: Site, client: httpx.Client) -> None:
    site.messages._redis.shutdown(nosave=True)
    assert list(missing(client)) == ["broker"]
    told = client.get("/metrics").text
    assert 'cliploop_workers{role="reason"} 0.0' in told
    assert 'cliploop_workers{role="render"} 0.0' in told


def test_a_job_whose_clip_nobody_renders_says_for_whom_it_waits(site: Site, client: httpx.Client) -> None:
    job_id = posted(client, generator="simulated")
    assert waits_for(client, job_id) == "a reason worker"
    site.messages.beat(REASONER)
    site.messages.beat(RENDERER, ["another"])
    assert waits_for(client, job_id) is None, "it is queued, and will be begun"
    work(site, messages=1)
    assert client.get(f"/v1/jobs/{job_id}").json()["state"] == "running"
    assert waits_for(client, job_id) == "a render worker (simulated)"
    assert (
        f'cliploop_queue_seconds{{queue="{render_queue("simulated", "normal")}"}}' in client.get("/metrics").text
    )
    site.messages.beat(RENDERER, ["another", "simulated"])
    assert waits_for(client, job_id) is None


def test_a_job_that_somebody_works_on_waits_for_nobody(site: Site, client: httpx.Client) -> None:
    job_id = posted(client, generator="simulated")
    site.messages.beat(REASONER)
    work(site, messages=1)
    assert waits_for(client, job_id) == "a render worker (simulated)"
    take(site.database, f"job/{job_id}", REASONER)
    assert waits_for(client, job_id) is None


def test_the_age_of_the_oldest_message_grows(site: Site, client: httpx.Client) -> None:
    posted(client)
    first = site.messages.ages()[REASON]
    assert site.messages.ages()[REASON] > first >= 0.0


def test_who_watches_a_job_that_waits_for_a_worker_is_told_once(
    site: Site, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.hub.ASK_EVERY_SECONDS", 0.05)
    monkeypatch.setattr("service.hub.ASK_ANYWAY", 1)
    job_id = posted(client, generator="simulated")
    site.messages.beat(REASONER)
    work(site, messages=1)
    told: list[Event] = []
    with Client(str(client.base_url)) as watching:
        for event in watching.events(job_id):
            told.append(event)
            if event.kind == "waits" and event.value["for"] is not None:
                site.messages.beat(RENDERER, ["simulated"])
            elif event.kind == "waits":
                break
    said = [event.value["for"] for event in told if event.kind == "waits"]
    assert said == ["a render worker (simulated)", None]
