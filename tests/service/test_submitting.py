"""POST /v1/jobs: accepted, refused with a remedy, or known already."""

from __future__ import annotations

import httpx
import pytest

from cliploop.site import Site
from tests.service.asking import as_data_url, maze, posted, submission, work


def test_a_json_submission_is_accepted_and_runs_to_its_end(site: Site, client: httpx.Client) -> None:
    response = client.post("/v1/jobs", json=submission())
    assert response.status_code == 202
    job = response.json()
    assert response.headers["location"] == f"/v1/jobs/{job['id']}"
    assert job["state"] == "queued"
    assert job["queue_position"] == 0
    work(site)
    job = client.get(response.headers["location"]).json()
    assert (job["state"], job["outcome"]) == ("succeeded", "completed")
    assert job["spend"]["video_seconds"] > 0
    assert job["spend"]["vlm_calls"] > 0
    assert job["progress"]["step"] >= 1
    assert job["queue_position"] is None


def test_a_form_with_a_file_is_the_same_request_as_json(site: Site, client: httpx.Client) -> None:
    png, prompt = maze()
    fields = {"prompt": prompt, "generator": "simulated-perfect", "max_steps": "6", "seed": "3"}
    headers = {"Idempotency-Key": "one"}
    form = client.post(
        "/v1/jobs", data=fields, files={"picture": ("../../maze.png", png, "text/html")}, headers=headers
    )
    assert form.status_code == 202, form.text
    same = client.post("/v1/jobs", json=submission(), headers=headers)
    assert same.json()["id"] == form.json()["id"]
    assert work(site) > 0


def test_the_same_key_with_another_body_is_a_conflict(client: httpx.Client) -> None:
    headers = {"Idempotency-Key": "one"}
    first = client.post("/v1/jobs", json=submission(), headers=headers)
    assert client.post("/v1/jobs", json=submission(), headers=headers).json()["id"] == first.json()["id"]
    other = client.post("/v1/jobs", json=submission(seed=4), headers=headers)
    assert other.status_code == 409
    assert other.json()["code"] == "idempotency_key_reused"


@pytest.mark.parametrize(
    ("changed", "status", "says"),
    [
        ({"colour": "red"}, 422, "colour"),
        ({"max_steps": "6"}, 422, "max_steps"),
        ({"max_steps": 0}, 422, "max_steps"),
        ({"max_steps": True}, 422, "max_steps"),
        ({"seed": -1}, 422, "seed"),
        ({"prompt": "  "}, 422, "prompt"),
        ({"prompt": "word " * 2000}, 422, "shorten"),
        ({"prompt": "Paint the sky."}, 422, ""),
        ({"generator": "simulatd"}, 422, "simulated"),
        ({"preset": "best"}, 422, "preset"),
        ({"strategy": "pass@1", "gate": "single_shot"}, 422, "gate"),
        ({"budget": {"usd": -1}}, 422, "usd"),
        ({"budget": {"euros": 1}}, 422, "budget"),
        ({"budget": "usd=lots"}, 422, "usd"),
        ({"picture": "https://example.org/a.png"}, 422, "data:"),
        ({"picture": "data:image/png;base64,!!"}, 422, "base64"),
        ({"picture": as_data_url(b"not a picture")}, 422, "picture"),
        ({"priority": "now"}, 422, "priority"),
        ({"strategy": "x" * 300}, 422, "strategy"),
    ],
)
def test_what_cannot_run_is_refused_with_a_problem_document(
    client: httpx.Client, changed: dict[str, object], status: int, says: str
) -> None:
    response = client.post("/v1/jobs", json={**submission(), **changed})
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    problem = response.json()
    assert problem["status"] == status
    assert says in problem["detail"]
    assert "--" not in problem["detail"]
    assert client.get("/v1/jobs").json()["data"] == []


def test_malformed_bodies_are_refused(client: httpx.Client) -> None:
    def post(content: bytes, kind: str) -> int:
        return client.post("/v1/jobs", content=content, headers={"Content-Type": kind}).status_code

    assert post(b'{"prompt": ', "application/json") == 400
    assert post(b"[" * 100_000, "application/json") == 400
    assert post(b'{"prompt": "\xff"}', "application/json") == 400
    assert post(b"[]", "application/json") == 422
    assert post(b"prompt", "text/plain") == 415
    assert post(b"x", "multipart/form-data") == 400
    assert post(b"x", "multipart/form-data; boundary=y") in (400, 422)
    assert post(b"", "application/json") == 400


def test_a_large_data_url_is_read_and_one_over_the_limit_is_refused(site: Site, client: httpx.Client) -> None:
    png, prompt = maze()
    padded = png + b"\0" * 2_000_000
    asked = {**submission(), "picture": as_data_url(padded)}
    assert client.post("/v1/jobs", json=asked).status_code == 202
    as_text = {"prompt": prompt, "picture": as_data_url(padded)}
    assert client.post("/v1/jobs", data=as_text, files={"nothing": b""}).status_code == 422
    fields = {name: (None, value) for name, value in as_text.items()}
    assert client.post("/v1/jobs", files=fields).status_code == 202
    over = client.post("/v1/jobs", content=b" " * 71_000_000, headers={"Content-Type": "application/json"})
    assert over.status_code == 413
    assert over.json()["code"] == "too_large"

    def unstated() -> list[bytes]:
        return [b" " * 10_000_000] * 8

    chunked = client.post("/v1/jobs", content=iter(unstated()), headers={"Content-Type": "application/json"})
    assert chunked.status_code == 413


def test_a_picture_bomb_is_refused_by_its_header(client: httpx.Client) -> None:
    header = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + (20_000).to_bytes(4, "big") * 2 + b"\x08\x02\0\0\0"
    response = client.post("/v1/jobs", json={**submission(), "picture": as_data_url(header + b"\0" * 64)})
    assert response.status_code == 413, response.text


def test_a_broker_that_is_away_costs_no_submission(site: Site, client: httpx.Client) -> None:
    site.messages._redis.shutdown(nosave=True)
    job_id = posted(client)
    assert client.get(f"/v1/jobs/{job_id}").json()["state"] == "queued"
