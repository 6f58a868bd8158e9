"""Backends at the speed of real models, for `bench.load`: a generator that sleeps, a model that sleeps.

What they return is real: frames of the simulated generator, answers of the oracle. Named in `cliploop.toml` by
`type = "bench.slow_backends:GENERATOR"` and `type = "bench.slow_backends:MODEL"`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from pydantic import Field

from generators.profile import load_profile
from generators.simulated import SimulatedGenerator
from media.frames import FrameReader
from orchestrator.catalogs import Line
from orchestrator.errors import JobCancelled
from orchestrator.ports import Frames
from orchestrator.records import (
    Answer,
    Assessment,
    Attempt,
    Capabilities,
    Footage,
    Plan,
    Record,
    Route,
    Shot,
    Task,
    Verdict,
    View,
)
from planners.oracle import Oracle

ASKED_EVERY_SECONDS = 0.1
T = TypeVar("T")


class SlowGeneratorOptions(Record):
    """`seconds`: of one render in all. `marks`: a file that gets a line "began ended" of each, if named."""

    profile: Literal["perfect", "vbvr-wan2.2"] = "perfect"
    seconds: float = Field(default=0.98, ge=0)
    marks: str = ""


class SlowModelOptions(Record):
    """`seconds`: slept in each ask."""

    seconds: float = Field(default=0.068, ge=0)


GENERATOR = Line(
    "bench.slow_backends:build_generator",
    "bench.slow_backends:SlowGeneratorOptions",
    "bench.slow_backends:figures",
)
MODEL = Line(
    "bench.slow_backends:build_model", "bench.slow_backends:SlowModelOptions", "bench.slow_backends:figures"
)


@dataclass(frozen=True)
class SlowGenerator:
    """A simulated generator that takes its time. Implements orchestrator.ports.Generator.

    The frames are made first; the rest of the time is slept, as a thread does that waits for an accelerator.
    """

    inner: SimulatedGenerator
    given: SlowGeneratorOptions

    @property
    def capabilities(self) -> Capabilities:
        return self.inner.capabilities

    def render(
        self,
        shot: Shot,
        *,
        resume: str | None,
        checkpoint: Callable[[str], None],
        progress: Callable[[float], None],
        cancelled: Callable[[], bool],
    ) -> Frames:
        """As the simulated generator. Raises BackendFailed, JobCancelled."""
        began = time.monotonic()
        frames = self.inner.render(
            shot, resume=resume, checkpoint=checkpoint, progress=progress, cancelled=cancelled
        )
        while (left := began + self.given.seconds - time.monotonic()) > 0:
            if cancelled():
                raise JobCancelled("the render was cancelled")
            progress(1.0 - left / self.given.seconds)
            time.sleep(min(left, ASKED_EVERY_SECONDS))
        self._mark(began, time.monotonic())
        return frames

    def _mark(self, began: float, ended: float) -> None:
        """One write of one line: whole, however many processes append."""
        if self.given.marks:
            file = os.open(self.given.marks, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(file, f"{began:.6f} {ended:.6f}\n".encode())
            finally:
                os.close(file)


@dataclass(frozen=True)
class SlowModel:
    """An oracle that sleeps in every ask. Implements the ports Planner, Verifier, Router and Assessor."""

    inner: Oracle
    seconds: float

    def accepts(self, task: Task) -> None:
        self.inner.accepts(task)

    def plan(self, task: Task, view: View) -> Answer[Plan]:
        return self._slowly(lambda: self.inner.plan(task, view))

    def verify(
        self, task: Task, plan: Plan, prompt: str, candidate: Footage, notes: Sequence[str], view: View
    ) -> Answer[Verdict]:
        return self._slowly(lambda: self.inner.verify(task, plan, prompt, candidate, notes, view))

    def route(self, task: Task, plan: Plan, attempts: Sequence[Attempt], view: View) -> Answer[Route]:
        return self._slowly(lambda: self.inner.route(task, plan, attempts, view))

    def assess(self, task: Task, view: View) -> Answer[Assessment]:
        return self._slowly(lambda: self.inner.assess(task, view))

    def _slowly(self, ask: Callable[[], T]) -> T:
        time.sleep(self.seconds)
        return ask()


def build_generator(options: SlowGeneratorOptions, reader: FrameReader | None) -> SlowGenerator:
    """Raises BackendMisconfigured."""
    return SlowGenerator(SimulatedGenerator(reader, load_profile(options.profile)), options)


def build_model(options: SlowModelOptions, reader: FrameReader | None) -> SlowModel:
    """An exact oracle that sleeps."""
    return SlowModel(Oracle(reader), options.seconds)


def figures(options: Any) -> dict[str, Any]:
    """Nothing but the options decides how they behave."""
    return options.model_dump(mode="json")
