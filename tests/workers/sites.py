"""A real site in a folder: SQLite, artifacts, an embedded broker; and jobs for it."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Generator, Mapping
from pathlib import Path

from cliploop.choosing import Wanted
from cliploop.compose import Composition
from cliploop.site import Addresses, Site
from media.pictures import encode_png
from orchestrator.records import Size, Task
from storage.submissions import Request, submit
from tests.storage.brokers import lent_broker
from worlds.catalog import load
from worlds.sampling import sample


@contextlib.contextmanager
def a_site(folder: Path, environ: Mapping[str, str] | None = None) -> Generator[Site]:
    """A new one, as the environment and the folder's cliploop.toml say; everything of it ends with the block."""
    with lent_broker() as broker:
        addresses = Addresses(data=folder / "data", broker=broker)
        with Site.opened(addresses, Composition.read(None, environ or {}, folder)) as site:
            yield site


def submitted(
    site: Site,
    *,
    generator: str = "simulated",
    max_steps: int = 6,
    seed: int = 3,
    strategy: str | None = None,
) -> str:
    """A small maze, submitted; its id."""
    task = sample(load("maze"), "easy", seed, side_px=128)
    picture = site.artifacts.put(encode_png(task.frame), ".png")
    height, width = task.frame.shape[:2]
    asked = Task(prompt=task.prompt, picture=picture, size=Size(width=width, height=height))
    wanted = Wanted(generator=generator, max_steps=max_steps, seed=seed, strategy=strategy)
    policy = site.composition.policy(wanted, asked.size)
    job_id, _ = submit(site.database, f"job-{secrets.token_hex(4)}", asked, policy, Request("", "default"))
    return job_id
