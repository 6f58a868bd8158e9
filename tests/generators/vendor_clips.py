"""What vendors' servers render in tests: real H.264 files of the start picture with something that moves."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import av
import numpy as np
from PIL import Image

from media.canvas import choose, place
from media.encode import Framing, deliverable
from media.frames import FrameReader
from media.pictures import Frame, Frames, decode_png, encode_png
from media.timing import timeline
from orchestrator.ports import Generator
from orchestrator.records import Footage, Segment, Shot, Size
from storage.artifacts import MemoryArtifacts
from worlds.catalog import load
from worlds.sampling import sample


@dataclass
class Heard:
    """What a render said, and after how many questions it is cancelled."""

    cancelled_after: int | None = None
    asked: int = 0

    def __post_init__(self) -> None:
        self.fractions: list[float] = []
        self.tokens: list[str] = []

    def cancelled(self) -> bool:
        self.asked += 1
        return self.cancelled_after is not None and self.asked > self.cancelled_after


class Studio:
    """Artifacts with a start picture, and shots of it."""

    def __init__(self, width: int = 192, height: int = 128) -> None:
        self.size = Size(width=width, height=height)
        self.artifacts = MemoryArtifacts()
        self.reader = FrameReader(self.artifacts)
        self.picture = sample(load("maze"), "easy", 0, side_px=128).frame

    def shot(
        self, generator: Generator, *, num_frames: int = 17, fps: float | None = None, seed: int = 5
    ) -> Shot:
        canvas = choose(self.size, generator.capabilities)
        inner = (canvas.content.width, canvas.content.height)
        start = place(Image.fromarray(self.picture).resize(inner), canvas)
        rate = generator.capabilities.fps if fps is None else fps
        return Shot(
            prompt="the blue square moves to the right",
            start_frame=self.artifacts.put(encode_png(start), ".png"),
            seconds=(num_frames - 1) / rate,
            num_frames=num_frames,
            fps=rate,
            seed=seed,
            canvas=canvas.size,
            denoising_steps=4,
            guidance=5.0,
        )

    def start(self, shot: Shot) -> Frame:
        return self.reader.picture(shot.start_frame)


def render(generator: Generator, shot: Shot, heard: Heard | None = None, resume: str | None = None) -> Frames:
    """What it gives, heard."""
    hears = heard or Heard()
    return generator.render(
        shot,
        resume=resume,
        checkpoint=hears.tokens.append,
        progress=hears.fractions.append,
        cancelled=hears.cancelled,
    )


def moving(png: bytes, num_frames: int, seed: int = 0) -> Frames:
    """(T, H, W, 3): the picture, and a square that walks on from frame 1; where it walks depends on the seed."""
    start = decode_png(png)
    frames = np.repeat(start[np.newaxis], num_frames, axis=0)
    side = max(4, start.shape[0] // 8)
    top = (seed * 7) % max(1, start.shape[0] - side)
    for number in range(1, num_frames):
        left = (3 * number) % max(1, start.shape[1] - side)
        frames[number, top : top + side, left : left + side] = (30, 80, 200)
    return frames


def reimagined(png: bytes, num_frames: int, seed: int = 0) -> Frames:
    """The same scene, seen otherwise from the first frame on."""
    return np.roll(moving(png, num_frames, seed) // 2 + 60, 12, axis=2)


def encoded(frames: Frames | Iterator[Frame], fps: float) -> bytes:
    """An MP4 as such servers send it: H.264, yuv420p, hardly compressed. Odd sides gain a replicated pixel."""
    file = io.BytesIO()
    opened: Any = av.open(file, "w", format="mp4")
    with opened as container:
        stream: Any = None
        for frame in frames:
            even = np.pad(frame, ((0, frame.shape[0] % 2), (0, frame.shape[1] % 2), (0, 0)), mode="edge")
            if stream is None:
                stream = container.add_stream(
                    "libx264", rate=round(fps), options={"crf": "8", "preset": "ultrafast"}
                )
                stream.width, stream.height, stream.pix_fmt = even.shape[1], even.shape[0], "yuv420p"
            container.mux(stream.encode(av.VideoFrame.from_ndarray(np.ascontiguousarray(even), format="rgb24")))
        container.mux(stream.encode())
    return file.getvalue()


def index_first(frames: Frames, fps: float) -> bytes:
    """An MP4 whose index lies in front, so that it can be played while it loads."""
    size = Size(width=frames.shape[2], height=frames.shape[1])
    times = timeline(Footage(segments=(Segment(mezzanine="-.mp4", first=0, stop=len(frames), fps=fps),)))
    whole = (size.width, size.height)
    return deliverable(iter(frames), size, times, Framing((0, 0, *whole), whole, whole))
