"""A desk for tests of vision-language models: a stored clip, its task and plan, and what a view of it is."""

from __future__ import annotations

from typing import Any

import numpy as np
from PIL import Image, ImageDraw

from media.frames import FrameReader
from media.lettering import font
from media.pictures import Frame, Frames, encode_png
from orchestrator.records import Footage, Plan, Progressed, Segment, Size, Task, View
from storage.artifacts import MemoryArtifacts

SIDE_PX = (160, 96)


def picture(x: int, caption: str = "") -> Frame:
    """A disc at x on a plain ground, maybe with letters below it."""
    image = Image.new("RGB", SIDE_PX, (240, 240, 240))
    pen = ImageDraw.Draw(image)
    pen.ellipse((x, 30, x + 20, 50), fill=(200, 30, 30))
    pen.text((4, 70), caption, font=font(14), fill=(0, 0, 0))
    return np.asarray(image)


def moving(num_frames: int, caption: str = "") -> Frames:
    return np.stack([picture(10 + number, caption) for number in range(num_frames)])


class VlmDesk:
    """One task with a clip of it. Clips are put straight into the reader's memory."""

    def __init__(self, num_frames: int = 81, caption: str = "", prompt: str = "The disc goes right.") -> None:
        self.artifacts = MemoryArtifacts()
        self.reader = FrameReader(self.artifacts)
        self.first = self.artifacts.put(encode_png(picture(0, caption)), ".png")
        self.current = self.artifacts.put(encode_png(picture(10, caption)), ".png")
        self.task = Task(prompt=prompt, picture=self.first, size=Size(width=SIDE_PX[0], height=SIDE_PX[1]))
        self.plan = Plan(instruction="The red disc glides right.", target_state="It is further right.")
        self.candidate = self.footage(moving(num_frames, caption))

    def footage(self, frames: Frames, fps: float = 16) -> Footage:
        key = f"clip-{len(frames)}-{int(frames.sum())}.mp4"
        self.reader.keep(key, np.ascontiguousarray(frames))
        return Footage(segments=(Segment(mezzanine=key, first=0, stop=len(frames), fps=fps),))

    def view(self, **more: Any) -> View:
        plain = {"first_picture": self.first, "current_frame": self.current, "step": 1, "max_steps": 3, "seed": 7}
        return View.model_validate({**plain, **more})

    def done(self, progress: Any = "partial") -> tuple[Progressed, ...]:
        return (Progressed(step=1, instruction="The disc goes halfway.", progress=progress),)

    def verdict(self, model: Any, **more: Any) -> Any:
        """The answer of a model's verifier on the clip."""
        return model.verify(
            self.task, self.plan, "told", self.candidate, ("a flash at frame 3",), self.view(**more)
        )
