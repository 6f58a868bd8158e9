"""A desk for oracle tests: one task, stored; clips are frames put straight into the reader's memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from media.frames import FrameReader
from media.pictures import encode_png
from orchestrator.records import (
    Attempt,
    Footage,
    Plan,
    Progressed,
    Segment,
    Shot,
    Size,
    Task,
    Verdict,
    View,
)
from planners.catalog import build
from storage.artifacts import MemoryArtifacts
from worlds.catalog import load
from worlds.chain import chain
from worlds.judging import nearest
from worlds.motion import move
from worlds.world import Frame, Frames, Look, Scene


@dataclass
class Desk:
    """A task of a world, and an oracle that sees it."""

    world: Any
    state: Any
    frame: Frame
    prompt: str
    artifacts: MemoryArtifacts = field(default_factory=MemoryArtifacts)
    clips: int = 0

    def __post_init__(self) -> None:
        self.reader = FrameReader(self.artifacts)
        self.oracle = build("oracle", {}, self.reader)
        found = self.world.understand(self.frame, self.prompt)
        assert found is not None
        self.scene: Scene = found
        self.first = self.store(self.frame)
        size = Size(width=self.frame.shape[1], height=self.frame.shape[0])
        self.task = Task(prompt=self.prompt, picture=self.first, size=size)

    @property
    def plan(self) -> list[Any]:
        return self.world.oracle_plan(self.state)

    def store(self, frame: Frame) -> str:
        return self.artifacts.put(encode_png(np.ascontiguousarray(frame)), ".png")

    def view(self, frame: Frame | None = None, **more: Any) -> View:
        key = self.first if frame is None else self.store(frame)
        plain = {"first_picture": self.first, "current_frame": key, "step": 1, "max_steps": 3}
        return View.model_validate({**plain, **more})

    def does(self, actions: Sequence[Any], num_frames: int = 25, start: Frame | None = None) -> Frames:
        """A clip that does these actions from a frame."""
        frame = self.frame if start is None else start
        reading = self.scene.read(frame)
        assert reading is not None
        return move(self.scene, frame, reading, chain(self.world, reading, actions).path, num_frames)

    def goes(self, path: Sequence[Any], num_frames: int = 25) -> Frames:
        """A clip in which the pieces take a path of any kind."""
        reading = self.scene.start
        full = [{**reading.configuration, **place} for place in path]
        return move(self.scene, self.frame, reading, full, num_frames)

    def footage(self, frames: Frames) -> Footage:
        self.clips += 1
        key = f"clip-{self.clips}.mp4"
        self.reader.keep(key, np.ascontiguousarray(frames))
        return Footage(segments=(Segment(mezzanine=key, first=0, stop=len(frames), fps=16),))

    def planned(self, count: int, first: int = 0) -> Plan:
        actions = self.plan[first : first + count]
        return Plan(instruction=self.world.describe(actions, self.scene.legend), target_state="so and so")

    def wrong_ways(self, most: int = 6) -> list[tuple[str, Frames]]:
        """Clips that go wrong in the world's own ways; those that only stop short of the end are none."""
        way = chain(self.world, self.scene.start, self.plan[:1])
        clips: list[tuple[str, Frames]] = []
        for kind, path in self.world.alternatives(self.state, self.plan[0]):
            full = [{**self.scene.start.configuration, **place} for place in path]
            if any(nearest(way.path, place, 0.0, way.length)[0] > 0.3 for place in full):
                clips.append((kind, self.goes(path)))
        return clips[:most]

    def verdict(self, frames: Frames, plan: Plan, **more: Any) -> Verdict:
        view = self.view(frames[0], **more)
        oracle: Any = more.get("oracle", self.oracle)
        return oracle.verify(self.task, plan, plan.instruction, self.footage(frames), (), view).value

    def attempt(self, index: int, verdict: Verdict, plan: Plan) -> Attempt:
        shot = Shot(
            prompt=plan.instruction,
            start_frame=self.first,
            seconds=1,
            num_frames=17,
            fps=16,
            seed=index,
            canvas=self.task.size,
            denoising_steps=1,
            guidance=1,
        )
        return Attempt(index=index, shot=shot, verdict=verdict)

    def told(self, count: int, progress: Any = "complete") -> tuple[Progressed, ...]:
        """History: so many actions done, one per step."""
        return tuple(
            Progressed(step=i + 1, instruction=self.planned(1, i).instruction, progress=progress)
            for i in range(count)
        )


def desk(name: str, seed: int = 3, difficulty: Any = "medium", side_px: int = 224) -> Desk:
    world: Any = load(name)
    state = world.sample(np.random.default_rng(seed), difficulty)
    look = Look(seed=seed, side_px=side_px)
    return Desk(world, state, world.render(state, look), world.prompt(state, seed, look))
