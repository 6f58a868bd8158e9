"""What is refused, in the form that OpenAI's clients read."""

# pyright: reportDeprecated=false

from __future__ import annotations

import contextlib
import http.client
import json
from typing import Any

import httpx
import openai
import pytest

from tests.service.asking import PERFECT, as_data_url
from tests.service.openai_videos.creating import PNG, PROMPT, refused


@pytest.mark.parametrize(
    ("more", "param", "says"),
    [
        ({"input_reference": openai.omit}, "input_reference", "picture"),
        ({"input_reference": b"not a picture"}, "input_reference", "not a picture"),
        ({"prompt": " "}, "prompt", "prompt"),
        ({"prompt": openai.omit}, "prompt", "missing"),
        ({"prompt": "word " * 2000}, "prompt", "shorten"),
        ({"extra_body": {"colour": "red"}}, "colour", "no such field"),
        ({"extra_body": {"max_steps": "many"}}, "max_steps", "integer"),
        ({"extra_body": {"preset": "default"}}, "preset", "model"),
        ({"extra_body": {"planner": "nobody"}}, "planner", "no planner"),
        ({"extra_body": {"budget": {"usd": -1}}}, "budget", "at least 0"),
    ],
)
def test_what_is_wrong_is_named_with_its_field(
    client: openai.OpenAI, more: dict[str, Any], param: str, says: str
) -> None:
    error = refused(client, **more)
    assert isinstance(error, openai.BadRequestError)
    assert (error.param, error.type) == (param, "invalid_request_error")
    assert says in error.message


@pytest.mark.parametrize(
    ("reference", "says"),
    [
        ("https://example.org/a.png", "not fetched"),
        ({"image_url": "https://example.org/a.png"}, "not fetched"),
        ({"image_url": "data:image/png;base64,&&&"}, "base64"),
        ({"file_id": "file-1"}, "/v1/artifacts"),
        ({"file_id": "ab" * 32 + ".png"}, "no such artifact"),
        ({}, "input_reference"),
        ({"image_url": "data:,", "file_id": "file-1"}, "input_reference"),
        (None, "picture"),
    ],
)
def test_a_reference_that_is_no_picture_is_refused(plain: httpx.Client, reference: Any, says: str) -> None:
    said: dict[str, Any] = {"prompt": PROMPT, "input_reference": reference}
    response = plain.post("/v1/videos", json=said)
    assert response.status_code == 400, response.text
    assert response.json()["error"]["param"] == "input_reference"
    assert says in response.json()["error"]["message"]


def test_an_uploaded_artifact_is_a_picture(plain: httpx.Client) -> None:
    uploaded = plain.post("/v1/artifacts", files={"file": ("a.png", PNG, "image/png")})
    said = {"prompt": PROMPT, "input_reference": {"file_id": uploaded.json()["id"]}}
    response = plain.post("/v1/videos", json=said)
    assert (response.status_code, response.json()["size"]) == (200, "128x128"), response.text


def test_json_does_too(plain: httpx.Client) -> None:
    for reference in (as_data_url(PNG), {"image_url": as_data_url(PNG)}):
        said: dict[str, Any] = {
            "prompt": PROMPT,
            "input_reference": reference,
            "model": PERFECT,
            "seconds": 12,
            "max_steps": 2,
        }
        response = plain.post("/v1/videos", json=said)
        assert response.status_code == 200, response.text
        assert response.json()["seconds"] == "12"


@pytest.mark.parametrize(
    ("method", "path", "body", "headers", "status", "code"),
    [
        ("GET", "/v1/videos/job-nobody", None, {}, 404, "not_found"),
        ("GET", "/v1/videos/a%00b", None, {}, 404, "not_found"),
        ("GET", "/v1/videos/x/y/z", None, {}, 404, "not_found"),
        ("DELETE", "/v1/videos/job-nobody", None, {}, 404, "not_found"),
        ("PUT", "/v1/videos", None, {}, 405, "method_not_allowed"),
        ("POST", "/v1/videos", b"{", {"Content-Type": "application/json"}, 400, "not_json"),
        ("POST", "/v1/videos", b"[]", {"Content-Type": "application/json"}, 400, "invalid"),
        ("POST", "/v1/videos", b"x", {"Content-Type": "text/plain"}, 415, "media_type"),
        ("POST", "/v1/videos", b"x", {"Content-Type": "multipart/form-data"}, 400, "bad_request"),
        ("GET", "/v1/videos?limit=0", None, {}, 400, "invalid"),
        ("GET", "/v1/videos?order=up", None, {}, 400, "invalid"),
        ("POST", "/v1/videos/edits", None, {}, 404, "not_supported"),
        ("POST", "/v1/videos/extensions", None, {}, 404, "not_supported"),
        ("GET", "/v1/videos/characters/one", None, {}, 404, "not_supported"),
        ("GET", "/v1/videos", None, {"Host": "example.org"}, 421, "other_host"),
    ],
)
def test_every_refusal_is_in_the_form_that_their_clients_read(
    plain: httpx.Client,
    method: str,
    path: str,
    body: bytes | None,
    headers: dict[str, str],
    status: int,
    code: str,
) -> None:
    response = plain.request(method, path, content=body, headers=headers)
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    error = response.json()["error"]
    assert (error["code"], error["type"]) == (code, "invalid_request_error")
    assert set(error) == {"message", "type", "param", "code"}


def test_a_refused_method_names_all_that_the_address_takes(plain: httpx.Client) -> None:
    for kind in ("jobs", "videos"):
        assert plain.put(f"/v1/{kind}").headers["allow"] == "GET, POST"
        assert plain.patch(f"/v1/{kind}/job-1").headers["allow"] == "DELETE, GET"
    assert plain.post("/v1/videos/job-1/content").headers["allow"] == "GET, HEAD"


def test_a_body_that_is_too_large_is_refused_in_their_form_before_it_is_read(address: str) -> None:
    with contextlib.closing(http.client.HTTPConnection(address.removeprefix("http://"))) as connection:
        connection.putrequest("POST", "/v1/videos")
        connection.putheader("Content-Length", "9999999999")
        connection.endheaders()
        response = connection.getresponse()
        assert response.status == 413
        assert json.loads(response.read())["error"]["code"] == "too_large"


def test_a_fault_is_in_their_form_too_and_native_routes_keep_theirs(
    plain: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr("service.openai_videos.find", broken)
    response = plain.get("/v1/videos/job-1")
    assert (response.status_code, response.json()["error"]["type"]) == (500, "server_error")
    assert "broken" not in response.text
    native = plain.get("/v1/jobs/job-nobody")
    assert native.headers["content-type"] == "application/problem+json"
