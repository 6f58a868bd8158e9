"""The OpenAPI document says what the service does, and the service stays light."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx

from tests.service.asking import posted, submission

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
