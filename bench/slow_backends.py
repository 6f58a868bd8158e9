"""Backends at the speed of real models, for `bench.load`: a generator that sleeps, a model that sleeps.

Frames are real, drawn by the simulated generator or the start frame shifted. Named in `cliploop.toml` by
`type = "bench.slow_backends:GENERATOR"` and `type = "bench.slow_backends:MODEL"`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np
from pydantic import Field

from generators.profile import load_profile
from generators.simulated import SimulatedGenerator
from media.frames import FrameReader
from orchestrator.catalogs import Line
from orchestrator.errors import JobCancelled
from orchestrator.frame_counts import snap
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
from planners.oracle import ONE_CALL, Oracle

ASKED_EVERY_SECONDS = 0.1
R = TypeVar("R", bound=Record)


class SlowGeneratorOptions(Record):
    """`seconds`: of one render in all. `marks`: a file that gets a line "began ended" of each, if named.

    `draws`: the task as the perfect simulated generator does it, or a piece of the start frame that moves, which
    takes next to no time.
    """

    draws: Literal["task", "shift"] = "task"
    seconds: float = Field(default=0.98, ge=0)
    marks: str = ""


class SlowModelOptions(Record):
    """`seconds`: slept in each ask. `reads`: what answers go by, all clips, only pictures, or nothing at all.

    Pictures: plans are the oracle's, every clip is accepted unseen. Nothing: so many `steps`, of no meaning.
    """

    seconds: float = Field(default=0.068, ge=0)
    reads: Literal["clips", "pictures", "nothing"] = "clips"
    steps: int = Field(default=1, ge=1)


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
    reader: FrameReader | None

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
        """(T, H, W, 3) uint8 RGB. Raises BackendFailed, JobCancelled."""
        began = time.monotonic()
        if self.given.draws == "shift":
            frames = self._shifted(shot)
        else:
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

    def _shifted(self, shot: Shot) -> Frames:
        """A square in the middle moves on by two pixels with every frame; the rest stands still."""
        assert self.reader is not None
        start = self.reader.picture(shot.start_frame)
        frames = np.repeat(start[np.newaxis], snap(shot.num_frames, self.capabilities), axis=0)
        height, width = start.shape[0] // 4, start.shape[1] // 4
        square = start[height : 2 * height, width : 2 * width].copy()
        for number, frame in enumerate(frames):
            left = width + 2 * number % (2 * width)
            frame[height : 2 * height, left : left + width] = square
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
    given: SlowModelOptions

    def accepts(self, task: Task) -> None:
        if self.given.reads != "nothing":
            self.inner.accepts(task)

    def plan(self, task: Task, view: View) -> Answer[Plan]:
        made_up = Plan(instruction=f"step {view.step}", task_complete=view.step > self.given.steps)
        return self._slowly(lambda: self.inner.plan(task, view), made_up)

    def verify(
        self, task: Task, plan: Plan, prompt: str, candidate: Footage, notes: Sequence[str], view: View
    ) -> Answer[Verdict]:
        made_up = Verdict(decision="accept", progress="complete", good_fraction=1.0, reason="not looked at")
        ask = lambda: self.inner.verify(task, plan, prompt, candidate, notes, view)  # noqa: E731
        return self._slowly(ask, made_up, sees_clips=True)

    def route(self, task: Task, plan: Plan, attempts: Sequence[Attempt], view: View) -> Answer[Route]:
        return self._slowly(lambda: self.inner.route(task, plan, attempts, view), Route(action="fallback"))

    def assess(self, task: Task, view: View) -> Answer[Assessment]:
        made_up = Assessment(task_complete=True, reason="not looked at")
        return self._slowly(lambda: self.inner.assess(task, view), made_up)

    def _slowly(self, ask: Callable[[], Answer[R]], made_up: R, *, sees_clips: bool = False) -> Answer[R]:
        time.sleep(self.given.seconds)
        if self.given.reads == "clips" or (self.given.reads == "pictures" and not sees_clips):
            return ask()
        return Answer(value=made_up, spend=ONE_CALL, model="made up")


def build_generator(options: SlowGeneratorOptions, reader: FrameReader | None) -> SlowGenerator:
    """Raises BackendMisconfigured."""
    return SlowGenerator(SimulatedGenerator(reader, load_profile("perfect")), options, reader)


def build_model(options: SlowModelOptions, reader: FrameReader | None) -> SlowModel:
    """An exact oracle that sleeps, or less than that."""
    return SlowModel(Oracle(reader), options)


def figures(options: Any) -> dict[str, Any]:
    """Nothing but the options decides how they behave."""
    return options.model_dump(mode="json")
