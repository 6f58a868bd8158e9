"""Clips and questions for tests of Gemini: real mezzanines, and the roles that ask about them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from media.encode import mezzanine
from media.frames import FrameReader
from media.pictures import Frames, encode_png
from orchestrator.records import Footage, Plan, Segment, Size, Task, View
from planners.catalog import build
from planners.questions import Clip, Part, Picture, Question, Reply
from planners.roles import VlmModel
from planners.schemas import SCHEMAS
from storage.artifacts import MemoryArtifacts

KEY = "g-a-key-that-is-never-told"
PLAN = Plan(instruction="The square moves to the right.", target_state="The square is at the right.")


@dataclass
class Cinema:
    """Artifacts with clips in them, and a Gemini that looks at them."""

    address: str
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    artifacts: MemoryArtifacts = field(default_factory=MemoryArtifacts)

    def __post_init__(self) -> None:
        self.reader = FrameReader(self.artifacts)
        self.first = self.artifacts.put(encode_png(frames(1)[0]), ".png")
        self.task = Task(
            prompt="Move the square to the right.", picture=self.first, size=Size(width=96, height=64)
        )
        self.view = View(first_picture=self.first, current_frame=self.first, step=1, max_steps=3, seed=7)

    def model(self, **options: Any) -> VlmModel:
        given = {"base_url": self.address, "timeout_seconds": 20, "file_poll_seconds": 0.01}
        return build("gemini", {**given, **self.options, **options}, self.reader)

    def clip(self, num_frames: int = 33, fps: float = 16.0, width: int = 96) -> Footage:
        pixels = frames(num_frames, width)
        size = Size(width=pixels.shape[2], height=pixels.shape[1])
        key = self.artifacts.put(mezzanine(pixels, size, fps), ".mp4")
        return Footage(segments=(Segment(mezzanine=key, first=0, stop=num_frames, fps=fps),))

    def ask(self, *parts: Part, seed: int = 7, **options: Any) -> Reply:
        """One verifier's question, straight to the client."""
        return self.model(**options).client.ask(self.question(*parts, seed=seed))

    def question(self, *parts: Part, seed: int = 7) -> Question:
        shown = parts or ("Look at the clip.", Picture(self.first), Clip(self.clip()), "Is it right?")
        return Question("verifier", "You verify clips.", shown, SCHEMAS["verifier"], seed=seed)


def frames(count: int, width: int = 96) -> Frames:
    """(T, 64, W, 3): a square that walks to the right on grey, another place in every frame."""
    pixels = np.full((count, 64, width, 3), 128, dtype=np.uint8)
    for number in range(count):
        left = min(number, width - 16)
        pixels[number, 24:40, left : left + 16] = (30, 80, 200)
    return pixels
