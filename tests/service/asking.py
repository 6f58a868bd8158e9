"""Submissions for tests, and workers that do what was sent."""

from __future__ import annotations

import base64
from typing import Any

import httpx

from cliploop.site import Site
from media.pictures import encode_png
from storage.queue import REASON, render_queues
from workers.desk import Desk
from workers.worker import DOES
from worlds.catalog import load
from worlds.sampling import sample

QUEUES = (REASON, *render_queues("simulated"), *render_queues("simulated-perfect"))
PERFECT = "simulated-perfect"


def maze(seed: int = 3) -> tuple[bytes, str]:
    """A small maze: its picture as PNG, and its prompt."""
    task = sample(load("maze"), "easy", seed, side_px=128)
    return encode_png(task.frame), task.prompt


def as_data_url(png: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(png).decode()


def submission(seed: int = 3, **more: Any) -> dict[str, Any]:
    """The JSON of a submission."""
    png, prompt = maze(seed)
    return {
        "picture": as_data_url(png),
        "prompt": prompt,
        "generator": PERFECT,
        "max_steps": 6,
        "seed": seed,
        **more,
    }


def posted(client: httpx.Client, seed: int = 3, **more: Any) -> str:
    """Submit; the job's id."""
    response = client.post("/v1/jobs", json=submission(seed, **more))
    assert response.status_code == 202, response.text
    return response.json()["id"]


def work(site: Site, messages: int = 1000) -> int:
    """Do messages, as workers would, until none is left; how many."""
    done = 0
    while done < messages and (message := site.messages.take(QUEUES, 1)) is not None:
        DOES[message.function](Desk(site, "tester"), message)
        done += 1
    return done
