"""Retry and fork: a new job from an old one's steps, with shared artifacts and nothing changed in the old one."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from sqlalchemy import update

from cliploop.site import Site
from storage.jobs import load_job
from storage.journal import Entry, read_entries
from storage.tables import JobRow
from tests.service.asking import posted, work


def entries(site: Site, job_id: str) -> list[Entry]:
    return read_entries(site.database, job_id)


def keys(site: Site, job_id: str) -> list[str]:
    return [entry.key for entry in entries(site, job_id) if entry.kind != "state"]


def clips(site: Site, job_id: str) -> dict[str, Any]:
    return {entry.key: entry.value for entry in entries(site, job_id) if entry.key.endswith("/clip")}


@pytest.fixture
def done(site: Site, client: httpx.Client) -> str:
    """A job of several steps."""
    job_id = posted(client, seed=3)
    work(site)
    assert "step/2/plan" in keys(site, job_id)
    return job_id


def test_a_fork_goes_on_from_its_step_with_the_steps_before(site: Site, client: httpx.Client, done: str) -> None:
    before = entries(site, done)
    response = client.post(f"/v1/jobs/{done}/fork", json={"step": 2})
    assert response.status_code == 202, response.text
    child = response.json()
    assert child["parent_id"] == done
    assert child["state"] == "queued"
    inherited = keys(site, child["id"])
    assert inherited
    assert all(key.startswith(("start", "step/1/")) for key in inherited)
    work(site)
    assert client.get(f"/v1/jobs/{child['id']}").json()["state"] == "succeeded"
    theirs, ours = clips(site, done), clips(site, child["id"])
    assert ours["step/1/attempt/1/clip"] == theirs["step/1/attempt/1/clip"]
    assert [clip["clip"]["frames_digest"] for clip in ours.values()] == [
        clip["clip"]["frames_digest"] for clip in theirs.values()
    ]
    assert entries(site, done) == before
    seen = keys(site, child["id"])
    assert len(seen) == len(set(seen))


def test_a_fork_does_what_a_person_says_in_its_step(site: Site, client: httpx.Client, done: str) -> None:
    told = "Move the piece one cell to the left."
    response = client.post(f"/v1/jobs/{done}/fork", json={"step": 2, "instruction": told, "max_steps": 7})
    assert response.status_code == 202, response.text
    child = response.json()["id"]
    work(site)
    steps = client.get(f"/v1/jobs/{child}/trajectory").json()["steps"]
    assert steps[1]["plan"]["instruction"] == told
    assert steps[1]["attempts"][0]["shot"]["prompt"].startswith(told)
    assert client.get(f"/v1/jobs/{child}").json()["state"] == "succeeded"


def test_a_deleted_parent_leaves_its_children_what_they_share(
    site: Site, client: httpx.Client, done: str
) -> None:
    child = client.post(f"/v1/jobs/{done}/fork", json={"step": 2}).json()["id"]
    assert client.delete(f"/v1/jobs/{done}").status_code == 204
    work(site)
    job = client.get(f"/v1/jobs/{child}").json()
    assert (job["state"], job["parent_id"]) == ("succeeded", None)
    assert client.get(f"/v1/jobs/{child}/steps/1/attempts/1/clip").status_code == 200


def test_a_cancelled_job_is_retried_after_its_last_accepted_step(site: Site, client: httpx.Client) -> None:
    job_id = posted(client)
    while "step/2/plan" not in keys(site, job_id):
        work(site, messages=1)
    refused = client.post(f"/v1/jobs/{job_id}/retry")
    assert refused.status_code == 409
    assert "running" in refused.json()["detail"]
    client.post(f"/v1/jobs/{job_id}/cancel")
    work(site)
    before = entries(site, job_id)
    retried = client.post(f"/v1/jobs/{job_id}/retry", json={})
    assert retried.status_code == 202, retried.text
    child = retried.json()["id"]
    assert {key.split("/")[1] for key in keys(site, child) if key.startswith("step/")} == {"1"}
    work(site)
    assert client.get(f"/v1/jobs/{child}").json()["state"] == "succeeded"
    assert entries(site, job_id) == before


def test_a_job_that_failed_at_its_third_step_is_retried_from_there(site: Site, client: httpx.Client) -> None:
    job_id = posted(client, seed=10)
    while "step/3/plan" not in keys(site, job_id):
        work(site, messages=1)
    policy = load_job(site.database, job_id).policy
    set_policy(site, job_id, {**policy, "of_another_version": True})
    work(site)
    failed = client.get(f"/v1/jobs/{job_id}").json()
    assert failed["state"] == "failed", failed
    assert "of_another_version" in failed["message"]
    set_policy(site, job_id, policy)
    before = entries(site, job_id)
    child = client.post(f"/v1/jobs/{job_id}/retry").json()["id"]
    assert {key.split("/")[1] for key in keys(site, child) if key.startswith("step/")} == {"1", "2"}
    work(site)
    ended = client.get(f"/v1/jobs/{child}").json()
    assert (ended["state"], ended["parent_id"]) == ("succeeded", job_id), ended
    assert entries(site, job_id) == before


def set_policy(site: Site, job_id: str, policy: Any) -> None:
    with site.database.write() as connection:
        connection.execute(update(JobRow).where(JobRow.id == job_id).values(policy=policy))


def test_a_job_that_never_began_is_retried_from_its_start(site: Site, client: httpx.Client) -> None:
    job_id = posted(client)
    client.post(f"/v1/jobs/{job_id}/cancel")
    child = client.post(f"/v1/jobs/{job_id}/retry").json()["id"]
    assert keys(site, child) == []
    work(site)
    assert client.get(f"/v1/jobs/{child}").json()["state"] == "succeeded"


def test_the_same_key_forks_once(client: httpx.Client, done: str) -> None:
    def fork(step: int) -> httpx.Response:
        return client.post(f"/v1/jobs/{done}/fork", json={"step": step}, headers={"Idempotency-Key": "k"})

    assert fork(2).json()["id"] == fork(2).json()["id"]
    assert fork(1).status_code == 409


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({}, "step"),
        ({"step": 0}, "step"),
        ({"step": "2"}, "step"),
        ({"step": 6}, "cannot be reached"),
        ({"step": 99}, "max_steps"),
        ({"step": 2, "seed": 99}, "cannot be reached"),
        ({"step": 2, "instruction": "  "}, "instruction"),
        ({"step": 2, "instruction": "go " * 5000}, "shorten"),
        ({"step": 2, "budget": {"usd": -1}}, "usd"),
        ({"step": 2, "prompt": "another"}, "prompt"),
    ],
)
def test_forks_that_cannot_be_are_refused(
    client: httpx.Client, done: str, asked: dict[str, Any], says: str
) -> None:
    response = client.post(f"/v1/jobs/{done}/fork", json=asked)
    assert response.status_code == 422, response.text
    assert says in response.json()["detail"]
    assert len(client.get("/v1/jobs").json()["data"]) == 1


def test_an_unknown_job_cannot_be_forked(client: httpx.Client) -> None:
    assert client.post("/v1/jobs/job-nobody/fork", json={"step": 1}).status_code == 404
    assert client.post("/v1/jobs/job-nobody/retry").status_code == 404


def test_a_job_of_several_shots_is_done_anew_as_a_whole_and_has_no_plan_to_replace(
    site: Site, client: httpx.Client
) -> None:
    parent = posted(client, strategy="pass@2")
    work(site)
    for asked in ({"step": 2}, {"step": 1, "instruction": "Go on."}):
        assert client.post(f"/v1/jobs/{parent}/fork", json=asked).status_code == 422
    same = client.post(f"/v1/jobs/{parent}/retry").json()["id"]
    other = client.post(f"/v1/jobs/{parent}/retry", json={"seed": 99}).json()["id"]
    work(site)
    told = {job: client.get(f"/v1/jobs/{job}").json() for job in (parent, same, other)}
    assert {job["state"] for job in told.values()} == {"succeeded"}
    assert told[same]["parent_id"] == parent
    seeds = {
        job: [
            each["shot"]["seed"]
            for each in client.get(f"/v1/jobs/{job}/trajectory").json()["steps"][0]["attempts"]
        ]
        for job in told
    }
    assert seeds[same] == seeds[parent]
    assert not set(seeds[other]) & set(seeds[parent])
    assert told[parent]["progress"]["max_steps"] == 1
