"""Review: a person takes a waiting job up again, or gives the verdict that it waits for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from cliploop.site import Site
from service.app import create_app
from storage.jobs import JobState, change_state, load_job
from storage.journal import read_entries
from storage.leases import hand_back, take
from tests.service.asking import posted, work
from tests.service.serving import client_of, served
from tests.workers.sites import a_site

SETTINGS = """
[verifiers.person]
type = "tests.service.persons:PERSON"

[verifiers.doubtful]
type = "tests.service.persons:PERSON"
does = "doubts"
"""
ACCEPT = {"verdict": {"decision": "accept"}}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    (folder / "cliploop.toml").write_text(SETTINGS)
    with a_site(folder) as site:
        yield site


@pytest.fixture(scope="module")
def client(site: Site) -> Iterator[httpx.Client]:
    with served(create_app(site)) as address, client_of(address) as client:
        yield client


def reviewed(client: httpx.Client, job_id: str, asked: Any) -> httpx.Response:
    return client.post(f"/v1/jobs/{job_id}/review", json=asked)


def state(client: httpx.Client, job_id: str) -> dict[str, Any]:
    return client.get(f"/v1/jobs/{job_id}").json()


def put_to_wait(site: Site, job_id: str, reason: Any, message: str = "", key: str = "") -> None:
    with site.database.write() as connection:
        now = site.database.now(connection)
        change_state(connection, job_id, JobState("running"), now)
        change_state(connection, job_id, JobState("waiting", reason, message, key), now)


def test_a_job_waits_for_a_persons_verdicts_and_goes_on_with_them_to_its_end(
    site: Site, client: httpx.Client
) -> None:
    job_id = posted(client, verifier="person")
    work(site)
    waiting = state(client, job_id)
    assert (waiting["state"], waiting["reason"]) == ("waiting", "review")
    refused = reviewed(client, job_id, {"action": "resume"})
    assert refused.status_code == 409
    assert refused.json()["code"] == "verdict_awaited"
    assert "step/1/attempt/1" in refused.json()["detail"]
    seen = {"decision": "reject", "failure": "wrong_direction", "suggestion": "Go the other way.", "reason": "no"}
    other = reviewed(client, job_id, {"verdict": seen, "at": "step/1/attempt/2"})
    assert (other.status_code, other.json()["code"]) == (409, "other_attempt")
    response = reviewed(client, job_id, {"verdict": seen, "at": "step/1/attempt/1"})
    assert response.status_code == 200, response.text
    assert response.json()["state"] == "running"
    work(site)
    verdicts = 1
    while state(client, job_id)["state"] == "waiting":
        assert reviewed(client, job_id, ACCEPT).status_code == 200
        verdicts += 1
        work(site)
    ended = state(client, job_id)
    assert (ended["state"], ended["outcome"]) == ("succeeded", "completed"), ended
    attempts = client.get(f"/v1/jobs/{job_id}/trajectory").json()["steps"][0]["attempts"]
    assert attempts[0]["verdict"]["source"] == "person"
    assert attempts[0]["verdict"]["failure"] == "wrong_direction"
    assert "Go the other way." in attempts[1]["shot"]["prompt"]
    keys = [entry.key for entry in read_entries(site.database, job_id) if entry.key.endswith("/verdict/try/1")]
    assert len(keys) == len(set(keys)) == verdicts


def test_a_person_settles_what_a_verifier_left_unclear(site: Site, client: httpx.Client) -> None:
    job_id = posted(client, verifier="doubtful", max_steps=1)
    work(site)
    assert state(client, job_id)["reason"] == "unclear"
    assert reviewed(client, job_id, ACCEPT).status_code == 200
    work(site)
    assert state(client, job_id)["state"] in ("succeeded", "waiting")
    attempts = client.get(f"/v1/jobs/{job_id}/trajectory").json()["steps"][0]["attempts"]
    assert attempts[0]["verdict"]["source"] == "person"
    assert any(entry.key.endswith("/verdict/try/4") for entry in read_entries(site.database, job_id))


def test_an_unclear_job_is_also_asked_again_on_request(site: Site, client: httpx.Client) -> None:
    job_id = posted(client, verifier="doubtful", max_steps=1)
    work(site)
    assert reviewed(client, job_id, {"action": "resume"}).json()["state"] == "running"
    work(site)
    assert state(client, job_id)["reason"] == "unclear"
    assert sum("/verdict/try/" in entry.key for entry in read_entries(site.database, job_id)) == 6


@pytest.mark.parametrize("reason", ["backend", "disk"])
def test_a_job_that_waits_for_a_backend_or_room_is_taken_up_at_once(
    site: Site, client: httpx.Client, reason: str
) -> None:
    job_id = posted(client)
    put_to_wait(site, job_id, reason, "away")
    refused = reviewed(client, job_id, ACCEPT)
    assert refused.status_code == 409
    assert refused.json()["code"] == "no_verdict_awaited"
    assert f"({reason}): away" in refused.json()["detail"]
    assert load_job(site.database, job_id).state.state == "waiting"
    assert reviewed(client, job_id, {"action": "resume"}).status_code == 200
    work(site)
    assert state(client, job_id)["state"] == "succeeded"


def test_a_job_whose_records_no_longer_fit_is_to_be_forked(site: Site, client: httpx.Client) -> None:
    job_id = posted(client)
    put_to_wait(site, job_id, "changed", "a prompt changed", "step/3/plan/try/1")
    refused = reviewed(client, job_id, {"action": "resume"})
    assert refused.status_code == 409
    assert "fork it from step 3" in refused.json()["detail"]
    assert state(client, job_id)["state"] == "waiting"


def test_a_job_that_does_not_wait_is_left_alone_and_its_state_said(site: Site, client: httpx.Client) -> None:
    job_id = posted(client)
    for asked in ({"action": "resume"}, ACCEPT):
        refused = reviewed(client, job_id, asked)
        assert refused.status_code == 409
        assert "queued" in refused.json()["detail"]
    client.post(f"/v1/jobs/{job_id}/cancel")
    assert "cancelled" in reviewed(client, job_id, {"action": "resume"}).json()["detail"]
    work(site)


def test_a_verdict_is_refused_while_somebody_works_on_the_job(site: Site, client: httpx.Client) -> None:
    job_id = posted(client, verifier="person")
    work(site)
    lease = take(site.database, f"job/{job_id}", "somebody", seconds=60)
    assert lease is not None
    refused = reviewed(client, job_id, ACCEPT)
    assert refused.status_code == 503
    assert refused.headers["retry-after"]
    hand_back(site.database, lease)
    assert reviewed(client, job_id, ACCEPT).status_code == 200


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"action": "resume", **ACCEPT},
        {"action": "go"},
        {**ACCEPT, "at": "step/x"},
        {"verdict": {"decision": "unclear"}},
        {"verdict": {}},
        {"verdict": {"decision": "reject", "failure": "ugly"}},
        {"verdict": {"decision": "accept", "good_fraction": 2}},
        {"verdict": {"decision": "accept", "source": "verifier"}},
        {"verdict": "accept"},
        [],
    ],
)
def test_reviews_that_say_nothing_are_refused(site: Site, client: httpx.Client, asked: Any) -> None:
    job_id = posted(client)
    assert reviewed(client, job_id, asked).status_code == 422
    broken = client.post(f"/v1/jobs/{job_id}/review", content=b"{", headers={"Content-Type": "application/json"})
    assert broken.status_code in (400, 422)
    assert client.delete(f"/v1/jobs/{job_id}").status_code == 204


def test_an_unknown_job_cannot_be_reviewed(client: httpx.Client) -> None:
    assert reviewed(client, "job-nobody", {"action": "resume"}).status_code == 404
