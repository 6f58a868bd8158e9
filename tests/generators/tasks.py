"""Tasks for generator tests: a small picture of a world, stored, and shots of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from generators.profile import load_profile
from generators.simulated import SimulatedGenerator
from media.frames import FrameReader
from media.pictures import encode_png
from orchestrator.records import Shot, Size
from storage.artifacts import MemoryArtifacts
from worlds.catalog import load
from worlds.world import Frame, Frames, Look, Scene

SIDE_PX = 192


@dataclass
class Table:
    """One task of a world on the table, and a generator that sees it."""

    world: Any
    state: Any
    frame: Frame
    prompt: str
    scene: Scene
    artifacts: MemoryArtifacts = field(default_factory=MemoryArtifacts)

    @property
    def plan(self) -> list[Any]:
        return self.world.oracle_plan(self.state)

    def says(self, first: int, count: int) -> str:
        """The instruction for some actions of the plan."""
        return self.world.describe(self.plan[first : first + count], self.scene.legend)

    def generator(self, profile: str, **changes: Any) -> SimulatedGenerator:
        figures = load_profile(profile).model_copy(update=changes)
        return SimulatedGenerator(FrameReader(self.artifacts), figures)

    def shot(self, prompt: str, *, seed: int = 1, num_frames: int = 33, start: Frame | None = None) -> Shot:
        frame = self.frame if start is None else start
        return Shot(
            prompt=prompt,
            start_frame=self.artifacts.put(encode_png(np.ascontiguousarray(frame)), ".png"),
            seconds=(num_frames - 1) / 16,
            num_frames=num_frames,
            fps=16,
            seed=seed,
            canvas=Size(width=frame.shape[1], height=frame.shape[0]),
            denoising_steps=4,
            guidance=5.0,
        )

    def render(self, generator: SimulatedGenerator, shot: Shot) -> Frames:
        return generator.render(
            shot, resume=None, checkpoint=lambda _: None, progress=lambda _: None, cancelled=lambda: False
        )


def table(name: str, seed: int = 3, difficulty: Any = "easy", side_px: int = SIDE_PX) -> Table:
    """A task of a world. Raises AssertionError if its own reader does not understand it."""
    world: Any = load(name)
    state = world.sample(np.random.default_rng(seed), difficulty)
    look = Look(seed=seed, side_px=side_px)
    frame = world.render(state, look)
    prompt = world.prompt(state, seed, look)
    scene = world.understand(frame, prompt)
    assert scene is not None, f"{name} {seed} is not understood by its own reader"
    return Table(world, state, frame, prompt, scene)
