"""Signs of life in the broker: which workers live, for health checks and metrics. Light to import, on purpose."""

from __future__ import annotations

import os
from typing import Any

KEPT_SECONDS = 15  # a worker that says nothing for so long is not counted as living
_PREFIX = "cliploop:worker:"


def note(redis: Any, worker: str) -> None:
    """This worker lives; forgotten soon, unless it says so again. Raises what the client raises."""
    redis.set(_PREFIX + worker, "", ex=KEPT_SECONDS)


def forget(redis: Any, worker: str) -> None:
    """It has ended."""
    redis.delete(_PREFIX + worker)


def living(redis: Any) -> list[str]:
    """The workers that live, by name: role@machine:process."""
    keys = redis.scan_iter(match=f"{_PREFIX}*", count=1000)
    return sorted({key.decode(errors="replace").removeprefix(_PREFIX) for key in keys})


def machine() -> str:
    """This machine, or this container, as names of processes give it."""
    return os.uname().nodename[:64]
