"""Generators that misbehave, for the worker's guards: real ones but for what they do wrong."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from generators.catalog import build
from orchestrator.ports import Frames
from orchestrator.records import Capabilities, Shot


class OutOfMemoryError(RuntimeError):
    """Named as an accelerator's library names it."""


@dataclass
class Misbehaving:
    """Runs out of memory so many times, or takes so long; then gives frames."""

    failures: int = 0
    error: type[Exception] = OutOfMemoryError
    seconds: float = 0.0
    asked: list[str | None] = field(default_factory=list[str | None])

    @property
    def capabilities(self) -> Capabilities:
        return build("simulated", {}, None).capabilities

    def render(
        self,
        shot: Shot,
        *,
        resume: str | None,
        checkpoint: Callable[[str], None],
        progress: Callable[[float], None],
        cancelled: Callable[[], bool],
    ) -> Frames:
        self.asked.append(resume)
        if len(self.asked) <= self.failures:
            raise self.error("tried to allocate 20.00 GiB")
        limit = time.monotonic() + self.seconds
        while time.monotonic() < limit:
            time.sleep(0.01)
        return np.zeros((5, 8, 8, 3), np.uint8)


def rendered(generator: Any, shot: Shot) -> Frames:
    """What it gives, with nobody watching."""

    def unheard(_said: object) -> None:
        pass

    return generator.render(shot, resume=None, checkpoint=unheard, progress=unheard, cancelled=lambda: False)
