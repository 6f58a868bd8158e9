"""The OpenAPI document says what the service does, and the service stays light."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import jsonschema

from cliploop.site import Site
from cliploop.terminal import version
from service.examples import ANSWERS as EXAMPLES
from service.examples import SUBMISSION
from storage.delivering import message
from storage.jobs import JobState, change_state
from storage.journal import read_entries
from storage.webhooks import Due, Webhook
from tests.service.asking import posted, submission, work

ROOT = Path(__file__).resolve().parents[2]


def test_every_reference_leads_somewhere(client: httpx.Client) -> None:
    document = client.get("/openapi.json").json()
    named = set(re.findall(r'"\$ref": "#/components/schemas/([^"]+)"', json.dumps(document)))
    assert named <= set(document["components"]["schemas"])
    assert {"Submission", "FormSubmission", "Problem", "Budget"} <= named


def test_every_route_documents_its_problems(client: httpx.Client) -> None:
    document: dict[str, Any] = client.get("/openapi.json").json()
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            answers = operation["responses"]
            if path.startswith("/v1/") and path != "/v1/worlds":
                assert "503" in answers, (method, path)
            if "{job_id}" in path:
                assert "404" in answers, (method, path)
            assert operation.get("summary"), (method, path)


def operations(document: Any) -> Iterator[tuple[str, str, Any]]:
    for path, said in document["paths"].items():
        for method, operation in said.items():
            yield method.upper(), path, operation


def values(document: Any, content: Any) -> list[Any]:
    """The examples of a content, by reference too."""
    said = list(content.get("examples", {}).values())
    named = [each.get("$ref", "").rpartition("/")[2] for each in said]
    found = [
        document["components"]["examples"][name] if name else each for each, name in zip(said, named, strict=True)
    ]
    return [each["value"] for each in found] + ([content["example"]] if "example" in content else [])


def validated(document: Any, schema: Any, value: Any) -> None:
    kind = jsonschema.Draft202012Validator({**schema, "components": document["components"]})
    wrong = [error.message for error in kind.iter_errors(value)]  # pyright: ignore[reportUnknownMemberType]
    assert not wrong, (schema, value, wrong)


def test_every_route_has_examples_that_fit_their_schemas(client: httpx.Client) -> None:
    document = client.get("/openapi.json").json()
    sent = answered = 0
    for method, path, operation in operations(document):
        for kind, content in operation.get("requestBody", {}).get("content", {}).items():
            found = values(document, content)
            is_file = content["schema"].get("format") == "binary" or "file" in content["schema"].get(
                "properties", {}
            )
            assert found or is_file, (method, path, kind)
            for value in found if kind == "application/json" else ():
                validated(document, content["schema"], value)
                sent += 1
        for status, answer in operation["responses"].items():
            for kind, content in answer.get("content", {}).items():
                found = values(document, content)
                assert found or not kind.endswith(("json", "event-stream")), (method, path, status, kind)
                for value in found:
                    validated(document, content["schema"], value)
                    answered += 1
    assert sent >= 10
    assert answered > 100


def test_an_answers_example_has_every_field_of_the_answer(site: Site, client: httpx.Client) -> None:
    job_id = posted(client)
    assert EXAMPLES["read_job"].keys() == client.get(f"/v1/jobs/{job_id}").json().keys()
    assert EXAMPLES["retrieve_video"].keys() == client.get(f"/v1/videos/{job_id}").json().keys()


def parent_of(site: Site, client: httpx.Client, name: str, value: Any) -> str:
    """A job that the request can be about: it has used its steps, or waits where a person is asked."""
    job_id = client.post("/v1/jobs", json={**SUBMISSION, "max_steps": 1}).json()["id"]
    if name != "review_job":
        work(site)
        return job_id
    reason = "backend" if "action" in value else "review"
    while "verdict" in value and not any(
        entry.key.startswith("step/1/attempt/1/clip") for entry in read_entries(site.database, job_id)
    ):
        work(site, messages=1)
    with site.database.write() as connection:
        now = site.database.now(connection)
        if "verdict" not in value:
            change_state(connection, job_id, JobState("running"), now)
        change_state(connection, job_id, JobState("waiting", reason, "", ""), now)
    return job_id


def test_every_json_example_works_as_it_stands(client: httpx.Client, site: Site) -> None:
    document = client.get("/openapi.json").json()
    for method, path, operation in operations(document):
        content = operation.get("requestBody", {}).get("content", {}).get("application/json")
        for value in () if content is None else values(document, content):
            name = operation["operationId"]
            there = {"job_id": "", "video_id": "", "name": "maze"}
            if "_id}" in path:
                there |= dict.fromkeys(("job_id", "video_id"), parent_of(site, client, name, value))
            response = client.request(method, path.format(**there), json=value)
            assert response.is_success, (name, value, response.text)


def test_every_form_example_works_as_it_stands(client: httpx.Client) -> None:
    document = client.get("/openapi.json").json()
    for path in ("/v1/jobs", "/v1/videos"):
        content = document["paths"][path]["post"]["requestBody"]["content"]["multipart/form-data"]
        for value in values(document, content):
            form = {name: (None, str(text)) for name, text in value.items()}
            response = client.post(path, files=form)
            assert response.is_success, response.text


def test_every_route_has_a_group_and_a_short_name_of_its_own(client: httpx.Client) -> None:
    document = client.get("/openapi.json").json()
    names = [operation["operationId"] for _, _, operation in operations(document)]
    assert len(names) == len(set(names))
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+){0,3}", name) for name in names), names
    groups = {tag["name"] for tag in document["tags"]}
    assert {tag for _, _, operation in operations(document) for tag in operation["tags"]} == groups
    assert all(len(operation["tags"]) == 1 for _, _, operation in operations(document))


def test_the_document_tells_its_readers_how_to_call(client: httpx.Client) -> None:
    document = client.get("/openapi.json").json()
    for subject in ("Who may call", "Errors", "Idempotency-Key", "Last-Event-ID", "Webhooks"):
        assert subject in document["info"]["description"]
    assert document["info"]["version"] == version()


def test_the_document_describes_what_webhooks_are_sent(client: httpx.Client) -> None:
    document = client.get("/openapi.json").json()
    content = document["webhooks"]["job_changed"]["post"]["requestBody"]["content"]["application/json"]
    hook = Webhook("https://example.org", "whsec_")
    state = {"state": "waiting", "reason": "review", "outcome": None, "message": "look", "key": "step/1"}
    due = Due("job-1", 3, 1, "", hook, state, 1796098615.5, 1796098610.0, "default", None)
    sent = json.loads(message(due))
    validated(document, content["schema"], sent)
    validated(document, content["schema"], content["example"])
    assert sent["data"].keys() == content["example"]["data"].keys()


def test_the_service_loads_no_model_library() -> None:
    code = (
        "import sys, service.app\n"
        "print([name for name in ('torch', 'diffusers', 'transformers', 'workers') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_body_that_stops_half_way_stores_nothing(client: httpx.Client) -> None:
    body = json.dumps(submission()).encode()
    address = client.base_url
    with socket.create_connection((address.host, address.port or 80)) as connection:
        head = f"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}"
        head += "\r\nContent-Type: application/json"
        connection.sendall(f"{head}\r\n\r\n".encode() + body[: len(body) // 2])
    assert client.get("/v1/jobs").json()["data"] == []
    posted(client)


def test_a_watcher_that_leaves_costs_the_service_nothing(client: httpx.Client) -> None:
    job_id = posted(client)
    for _ in range(3):
        with client.stream("GET", f"/v1/jobs/{job_id}/events") as response:
            next(response.iter_lines())
    assert client.get(f"/v1/jobs/{job_id}").json()["state"] == "queued"


def test_text_that_is_no_text_is_refused(client: httpx.Client) -> None:
    picture = {"picture": ("a.png", b"x", "image/png")}
    assert client.post("/v1/jobs", data={"prompt": b"\xff\xfe"}, files=picture).status_code in (400, 422)  # pyright: ignore[reportArgumentType]
    said = json.dumps({**submission(), "prompt": "\ud800"}).encode()
    assert client.post("/v1/jobs", content=said, headers={"Content-Type": "application/json"}).status_code in (
        400,
        422,
    )
    assert client.post("/v1/jobs", json=submission(), headers={"Idempotency-Key": "a b"}).status_code == 422


def test_the_root_points_to_where_to_read_on(client: httpx.Client) -> None:
    said = client.get("/").json()
    assert (said["name"], said["version"]) == ("cliploop", version())
    for address in said["links"].values():
        assert client.get(address).status_code in (200, 503), address
