"""Reading, listing, cancelling and deleting jobs over HTTP."""

from __future__ import annotations

import httpx
import pytest

from cliploop.site import Site
from service.app import create_app
from storage.leases import hand_back, take
from tests.service.asking import posted, work
from tests.service.serving import client_of, served


def test_an_unknown_id_is_a_404_everywhere_and_after_a_restart(site: Site, client: httpx.Client) -> None:
    def ask(client: httpx.Client, method: str, path: str) -> None:
        for unknown in ("job-nobody", "%00", "x" * 500, "..%2f..%2fetc", "'; drop table jobs"):
            response = client.request(method, f"/v1/jobs/{unknown}{path}")
            assert response.status_code == 404, (method, path, unknown, response.text)
            assert response.headers["content-type"] == "application/problem+json"

    paths = [("GET", ""), ("DELETE", ""), ("POST", "/cancel")]
    for method, path in paths:
        ask(client, method, path)
    with served(create_app(site)) as address, client_of(address) as again:
        for method, path in paths:
            ask(again, method, path)


def test_jobs_are_listed_newest_first_with_a_cursor(site: Site, client: httpx.Client) -> None:
    ids = [posted(client, seed) for seed in (1, 2, 3)]
    first = client.get("/v1/jobs", params={"limit": 2}).json()
    assert [job["id"] for job in first["data"]] == ids[:0:-1]
    rest = client.get("/v1/jobs", params={"limit": 2, "after": first["after"]}).json()
    assert [job["id"] for job in rest["data"]] == ids[:1]
    assert rest["after"] is None
    assert [job["queue_position"] for job in (*rest["data"], *first["data"][::-1])] == [0, 1, 2]
    client.post(f"/v1/jobs/{ids[0]}/cancel")
    found = client.get("/v1/jobs", params={"state": ["cancelled", "failed"]}).json()["data"]
    assert [job["id"] for job in found] == ids[:1]
    for wrong in ({"limit": 0}, {"limit": 1000}, {"state": "done"}, {"after": "a b"}):
        assert client.get("/v1/jobs", params=wrong).status_code == 422
    assert client.get("/v1/jobs", params={"after": "job-nobody"}).status_code == 404


def test_a_queued_job_is_cancelled_at_once_and_an_ended_one_is_a_conflict(
    site: Site, client: httpx.Client
) -> None:
    job_id = posted(client)
    assert client.post(f"/v1/jobs/{job_id}/cancel").json()["state"] == "cancelled"
    again = client.post(f"/v1/jobs/{job_id}/cancel")
    assert again.status_code == 409
    assert "cancelled" in again.json()["detail"]
    work(site)
    assert client.get(f"/v1/jobs/{job_id}").json()["progress"]["key"] == ""


def test_a_running_job_is_cancelling_until_its_work_has_stopped(site: Site, client: httpx.Client) -> None:
    job_id = posted(client)
    work(site, messages=1)
    assert client.get(f"/v1/jobs/{job_id}").json()["state"] == "running"
    assert client.post(f"/v1/jobs/{job_id}/cancel").json()["state"] == "cancelling"
    work(site)
    assert client.get(f"/v1/jobs/{job_id}").json()["state"] == "cancelled"


def test_delete_waits_until_the_work_has_stopped(
    site: Site, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.jobs.DELETE_WAITS_SECONDS", 0.5)
    job_id = posted(client)
    work(site, messages=1)
    lease = take(site.database, f"clip/{job_id}/step/1/attempt/1/clip", "a render worker")
    assert lease is not None
    stopping = client.delete(f"/v1/jobs/{job_id}")
    assert stopping.status_code == 409
    assert stopping.headers["retry-after"] == "5"
    hand_back(site.database, lease)
    work(site)
    assert client.delete(f"/v1/jobs/{job_id}").status_code == 204
    assert client.get(f"/v1/jobs/{job_id}").status_code == 404


def test_a_queued_and_a_finished_job_are_deleted_at_once(site: Site, client: httpx.Client) -> None:
    done = posted(client, 1)
    work(site)
    queued = posted(client, 2)
    for job_id in (done, queued):
        assert client.delete(f"/v1/jobs/{job_id}").status_code == 204
        assert client.delete(f"/v1/jobs/{job_id}").status_code == 404
    assert client.get("/v1/jobs").json()["data"] == []


def test_progress_says_how_far_the_clip_is_and_nothing_once_it_is_recorded(
    site: Site, client: httpx.Client
) -> None:
    job_id = posted(client)
    work(site, messages=1)
    key = "step/1/attempt/1/clip"
    site.messages.tell(job_id, {"key": key, "fraction": 0.25}, "progress")
    progress = client.get(f"/v1/jobs/{job_id}").json()["progress"]
    assert (progress["key"], progress["fraction"]) == (key, 0.25)
    work(site, messages=2)
    assert client.get(f"/v1/jobs/{job_id}").json()["progress"]["fraction"] is None
