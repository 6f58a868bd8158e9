"""Metrics of what leaves no trace in a journal: jobs that were taken up again, and news of jobs."""

from __future__ import annotations

import httpx

from cliploop.site import Site
from service.app import create_app
from storage.reaper import reap
from storage.webhooks import new_secret
from tests.service.asking import posted, submission, work
from tests.service.serving import client_of, served


def test_jobs_that_were_taken_up_again_are_counted_for_all_processes(site: Site, client: httpx.Client) -> None:
    assert "cliploop_reaped_total 0.0" in client.get("/metrics").text
    posted(client)
    while site.messages.take(["reason"], 1) is not None:
        pass  # taken by somebody who died
    assert len(reap(site.database, site.messages, "tester")) == 1
    with served(create_app(site)) as other, client_of(other) as elsewhere:
        for answer in (client.get("/metrics"), elsewhere.get("/metrics")):
            assert "cliploop_reaped_total 1.0" in answer.text
    work(site)


def test_news_are_counted_by_how_they_fare(site: Site, client: httpx.Client) -> None:
    hook = {"url": "https://example.org/", "secret": new_secret()}
    job = client.post("/v1/jobs", json={**submission(), "webhook": hook}).json()
    assert 'cliploop_webhook_deliveries{state="pending"} 0.0' in client.get("/metrics").text
    client.post(f"/v1/jobs/{job['id']}/cancel")
    told = client.get("/metrics").text
    assert 'cliploop_webhook_deliveries{state="pending"} 1.0' in told
    assert 'cliploop_webhook_deliveries{state="delivered"} 0.0' in told
    work(site)
