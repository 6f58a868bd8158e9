"""What callers are told: in the words of requests, with what to do, and without what is the operator's alone."""

from __future__ import annotations

import io
import json
import re
from typing import Any

import httpx
import pytest
from PIL import Image

from cliploop.site import Site
from orchestrator.errors import CliploopError
from service.problems import of_error
from storage.postgres import PostgresDatabase
from tests.service.asking import as_data_url, maze, posted, submission, work

THEIRS = re.compile(r"Input should|valid (dictionary|string|integer)|Value error|Field required|cliploop\.toml")


def told(response: httpx.Response, status: int = 422) -> str:
    assert response.status_code == status, response.text
    assert not THEIRS.search(response.text), response.text
    return response.json()["detail"]


@pytest.fixture
def done(site: Site, client: httpx.Client) -> str:
    job_id = posted(client, seed=3)
    work(site)
    assert client.get(f"/v1/jobs/{job_id}").json()["outcome"] == "completed"
    return job_id


@pytest.mark.parametrize(
    ("sent", "says"),
    [
        ({"max_steps": 0}, "max_steps: must be at least 1"),
        ({"max_steps": "6"}, "max_steps: must be an integer, such as 3"),
        ({"priority": "now"}, "priority: must be 'high', 'normal' or 'low'"),
        ({"prompt": None}, "prompt: must be a text"),
        ({"budget": {"usd": -1}}, "budget.usd: must be at least 0"),
        ({"budget": 3}, "budget: must be an object, or a text"),
        ({"budget": {"euros": 1}}, "budget.euros: there is no such field; known: gpu_seconds"),
        ({"sede": 1}, "sede: there is no such field; did you mean 'seed'? known: budget"),
        ({"webhook": {"adress": "x", "url": "https://example.org"}}, "webhook.adress: there is no such field"),
        ({"webhook": {"url": "https://example.org", "secret": "x"}}, "webhook.secret: write whsec_"),
        ({"webhook": {}}, "webhook.url: is missing"),
        ({"preset": "quality"}, "preset: this server has no presets: leave it out"),
    ],
)
def test_a_wrong_field_says_what_it_must_be(client: httpx.Client, sent: dict[str, Any], says: str) -> None:
    assert says in told(client.post("/v1/jobs", json={**submission(), **sent}))


def test_a_wrong_query_is_told_in_the_same_words(client: httpx.Client) -> None:
    assert "state.0: must be 'queued', 'running'" in told(client.get("/v1/jobs?state=done"))
    assert "limit: must be at most 100" in told(client.get("/v1/jobs?limit=1000"))


def test_a_body_that_is_not_sent_as_json_is_told_which_header_is_missing(client: httpx.Client, done: str) -> None:
    as_form = {"Content-Type": "application/x-www-form-urlencoded"}
    for path in (f"/v1/jobs/{done}/fork", f"/v1/jobs/{done}/retry", f"/v1/jobs/{done}/review"):
        said = told(client.post(path, content='{"step": 2}', headers=as_form), 415)
        assert "Content-Type: application/json" in said
    remix = client.post(f"/v1/videos/{done}/remix", content='{"prompt": "x"}', headers=as_form)
    assert remix.status_code == 415
    assert "application/json" in remix.json()["error"]["message"]


def test_json_that_is_no_object_is_told_so(client: httpx.Client, done: str) -> None:
    assert "must be an object" in told(client.post(f"/v1/jobs/{done}/fork", json=[1]))


def test_a_form_whose_file_has_another_name_is_told_both(client: httpx.Client) -> None:
    png, prompt = maze()
    said = told(client.post("/v1/jobs", data={"prompt": prompt}, files={"image": ("a.png", png)}))
    assert "picture: is missing" in said
    assert "image: there is no such field" in said
    assert "picture" in said.split("known:")[1]


def test_a_field_of_the_command_line_leads_to_its_name_here(client: httpx.Client, done: str) -> None:
    said = told(client.post(f"/v1/jobs/{done}/fork", json={"step": 2, "prompt": "The circle moves down."}))
    assert "prompt: there is no such field" in said
    assert "instruction" in said


def test_a_picture_that_nobody_reads_is_told_what_the_caller_can_do(client: httpx.Client) -> None:
    buffer = io.BytesIO()
    Image.radial_gradient("L").convert("RGB").save(buffer, "PNG")
    said = told(client.post("/v1/jobs", json=submission(picture=as_data_url(buffer.getvalue()))))
    assert "/v1/worlds/{name}/sample" in said


def test_a_completed_job_has_nothing_to_retry(client: httpx.Client, done: str) -> None:
    assert "there is nothing to retry" in told(client.post(f"/v1/jobs/{done}/retry"), 409)


def test_a_step_beyond_the_last_one_names_the_limit(client: httpx.Client, done: str) -> None:
    response = client.post(f"/v1/jobs/{done}/fork", json={"step": 9})
    assert "max_steps must be at least 9 for step 9: the job may do 6 steps" in told(response)
    assert response.json()["errors"][0]["where"] == "max_steps"


def test_no_caller_is_told_where_the_database_is(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(CliploopError) as raised:
        PostgresDatabase("postgresql://somebody@127.0.0.1:1/secret-name")
    assert "secret-name" in str(raised.value)
    answer = of_error(raised.value)
    problem = json.loads(bytes(answer.body))
    assert (answer.status_code, problem["code"]) == (503, "unavailable")
    assert problem["detail"] == "the database cannot be reached now: try again later"
    assert "secret-name" in caplog.text


def test_a_private_webhook_is_refused_with_the_name_of_the_operators_setting(client: httpx.Client) -> None:
    hook = {"url": "http://127.0.0.1:9/hook"}
    said = told(client.post("/v1/jobs", json=submission(webhook=hook)))
    assert "not a public address" in said
    assert "private_webhooks" in said
    assert "private_webhooks" not in told(client.post("/v1/jobs", json=submission(webhook={"url": "ftp://a.b"})))
