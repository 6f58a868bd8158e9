"""A client of the HTTP API as somebody else's program would be: httpx and the documented routes alone."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import av
import httpx

from tests.deploy.composed import ROOT

EXAMPLE = ROOT / "examples" / "maze"
ENDS_WITHIN_SECONDS = 180.0
FINAL = ("succeeded", "failed", "cancelled")


@dataclass(frozen=True)
class Event:
    """One server-sent event; `number` is None where it has no id."""

    kind: str
    said: dict[str, Any]
    number: int | None


def submitted(client: httpx.Client, choices: Mapping[str, str], *, key: str = "") -> httpx.Response:
    """The example maze as a form, as the README's curl line does it."""
    headers = {"Idempotency-Key": key} if key else {}
    with (EXAMPLE / "first_frame.png").open("rb") as picture:
        return client.post(
            "/v1/jobs",
            files={"picture": ("first_frame.png", picture, "image/png")},
            data={
                "prompt": (EXAMPLE / "prompt.txt").read_text(),
                **choices,
            },
            headers=headers,
        )


def followed(client: httpx.Client, job_id: str, after: int = 0) -> Iterator[Event]:
    """Its events to the end."""
    headers = {"Last-Event-ID": str(after)} if after else {}
    with client.stream("GET", f"/v1/jobs/{job_id}/events", headers=headers, timeout=60) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        fields: dict[str, str] = {}
        for line in response.iter_lines():
            if line:
                name, _, value = line.partition(":")
                fields[name] = value.strip()
            elif "data" in fields:
                number = int(fields["id"]) if "id" in fields else None
                yield Event(fields["event"], json.loads(fields["data"]), number)
                fields = {}
            else:
                fields = {}


def read(client: httpx.Client, job_id: str) -> dict[str, Any]:
    """The job as it stands."""
    response = client.get(f"/v1/jobs/{job_id}")
    assert response.status_code == 200, response.text
    return response.json()


def until(client: httpx.Client, job_id: str, true: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Ask until it is so."""
    limit = time.monotonic() + ENDS_WITHIN_SECONDS
    while not true(job := read(client, job_id)):
        assert time.monotonic() < limit, job
        time.sleep(0.05)
    return job


def ended(client: httpx.Client, job_id: str) -> dict[str, Any]:
    """The job at its end."""
    return until(client, job_id, lambda job: job["state"] in FINAL)


def fetched(client: httpx.Client, job_id: str, what: str) -> bytes:
    """A file of the job."""
    response = client.get(f"/v1/jobs/{job_id}/{what}")
    assert response.status_code == 200, response.text
    return response.content


def clips(trajectory: dict[str, Any]) -> list[str]:
    """The name of each clip's lossless file, which is a hash of its frames as they are stored."""
    return [
        attempt["clip"]["mezzanine"]
        for step in trajectory["steps"]
        for attempt in step["attempts"]
        if attempt["clip"] is not None
    ]


def num_frames(video: bytes) -> int:
    """How many frames a player finds in it."""
    with av.open(io.BytesIO(video), "r") as container:
        return sum(1 for _ in container.decode(video=0))
