"""Signs of life in the broker: which workers live, for health checks and metrics. Light to import, on purpose."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

KEPT_SECONDS = 15  # a worker that says nothing for so long is not counted as living
_PREFIX = "cliploop:worker:"
_BETWEEN = "\n"


def note(redis: Any, worker: str, generators: Sequence[str] = ()) -> None:
    """This worker lives and renders these; forgotten soon, unless it says so again. The client may raise."""
    redis.set(_PREFIX + worker, _BETWEEN.join(generators), ex=KEPT_SECONDS)


def forget(redis: Any, worker: str) -> None:
    """It has ended."""
    redis.delete(_PREFIX + worker)


def living(redis: Any) -> list[str]:
    """The workers that live, by name: role@machine:process."""
    keys = redis.scan_iter(match=f"{_PREFIX}*", count=1000)
    return sorted({key.decode(errors="replace").removeprefix(_PREFIX) for key in keys})


def crew(redis: Any) -> dict[str, tuple[str, ...]]:
    """The workers that live, with the generators of those that render."""
    names = living(redis)
    told: list[bytes | None] = redis.mget([_PREFIX + name for name in names]) if names else []
    found = zip(names, told, strict=True)
    return {
        name: tuple(filter(None, said.decode(errors="replace").split(_BETWEEN)))
        for name, said in found
        if said is not None
    }


def role_of(worker: str) -> str:
    """`reason` or `render`, of a worker's name."""
    return worker.partition("@")[0]


def machine() -> str:
    """This machine, or this container, as names of processes give it."""
    return os.uname().nodename[:64]
