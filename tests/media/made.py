"""Clips, drawings and a whole trajectory made for the tests of pictures and video."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO, cast

import av
import numpy as np

from media.editor import VideoEditor
from media.frames import FrameReader
from media.pictures import Frame, Frames, encode_png
from orchestrator.footage import first_frames, join, whole
from orchestrator.records import (
    Assessment,
    Attempt,
    Box,
    Canvas,
    Capabilities,
    Clip,
    Footage,
    Outcome,
    Plan,
    Policy,
    Prefix,
    Route,
    Shot,
    Size,
    Spend,
    Step,
    Task,
    Trajectory,
    Verdict,
)
from storage.artifacts import MemoryArtifacts


class Studio:
    """An editor with its store and reader, and shorthands."""

    def __init__(self) -> None:
        self.artifacts = MemoryArtifacts()
        self.reader = FrameReader(self.artifacts)
        self.editor = VideoEditor(self.artifacts, self.reader)

    def picture(self, frame: Frame) -> str:
        return self.artifacts.put(encode_png(frame), ".png")

    def store(
        self, frames: Frames, *, start: Frame | None = None, fps: float = 16.0, canvas: Size | None = None
    ) -> Clip:
        """Store frames as the clip that continues `start`; by default its own first frame."""
        size = canvas or size_of(frames)
        first = frames[0] if start is None else start
        return self.editor.store(frames, shot(self.picture(first), len(frames), size, fps))

    def forget(self) -> None:
        """Read from the artifacts again, not from memory."""
        self.reader = FrameReader(self.artifacts)
        self.editor = VideoEditor(self.artifacts, self.reader)


def size_of(frames: Frames) -> Size:
    return Size(width=frames.shape[-2], height=frames.shape[-3])


def identity(size: Size) -> Canvas:
    return Canvas(size=size, content=Box(left=0, top=0, width=size.width, height=size.height), fit="identity")


def shot(start: str, num_frames: int, canvas: Size, fps: float = 16.0, seed: int = 7, prompt: str = "go") -> Shot:
    return Shot(
        prompt=prompt,
        start_frame=start,
        seconds=(num_frames - 1) / fps,
        num_frames=max(2, num_frames),
        fps=fps,
        seed=seed,
        canvas=canvas,
        denoising_steps=20,
        guidance=5.0,
    )


def noise(num_frames: int, height: int, width: int, seed: int = 0) -> Frames:
    return np.random.default_rng(seed).integers(0, 256, (num_frames, height, width, 3), dtype=np.uint8)


def drawing(height: int = 96, width: int = 128) -> Frame:
    """A pale board with walls, a green goal and grid lines."""
    board = np.full((height, width, 3), 236, dtype=np.uint8)
    board[::16] = board[:, ::16] = (200, 204, 210)
    board[20:52, 40:46] = (40, 44, 60)
    board[height - 28 : height - 16, width - 28 : width - 16] = (40, 160, 90)
    return board


def photograph(height: int = 96, width: int = 128, seed: int = 3, grain: float = 4) -> Frame:
    """Smooth colours with grain, as a camera gives."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width]
    base = np.stack([120 + 70 * np.sin(x / 23 + c) * np.cos(y / 17 - c) for c in range(3)], axis=-1)
    return np.clip(base + rng.normal(0, grain, (height, width, 3)), 0, 255).astype(np.uint8)


def dot_moves(
    ground: Frame, num_frames: int, side: int = 8, travel: int = 60, colour: Sequence[int] = (200, 40, 40)
) -> Frames:
    """A square of `side` pixels that moves `travel` pixels to the right over the ground."""
    frames = np.repeat(ground[None], num_frames, axis=0)
    for index in range(num_frames):
        left = 10 + round(travel * index / max(1, num_frames - 1))
        frames[index, 60 : 60 + side, left : left + side] = colour
    return frames


def still(ground: Frame, num_frames: int) -> Frames:
    return np.repeat(ground[None], num_frames, axis=0)


def decoded(video: str | IO[bytes]) -> Frames:
    """Every frame of a foreign video: (T, H, W, 3) uint8 RGB."""
    with av.open(video, mode="r") as container:
        frames = [cast("Frame", frame.to_ndarray(format="rgb24")) for frame in container.decode(video=0)]
    return np.stack(frames)


def attempt(
    studio: Studio,
    index: int,
    frames: Frames | None,
    *,
    verdict: Verdict | None = None,
    kept: Footage | None = None,
    failed: str | None = None,
    seed: int = 7,
) -> Attempt:
    """An attempt whose clip goes on from `kept`."""
    start = frames[0] if frames is not None else drawing()
    asked = shot(studio.picture(start), len(frames) if frames is not None else 17, size_of(start), seed=seed)
    prefix = Prefix(footage=kept, last_frame=studio.editor.frame(kept, -1)) if kept else None
    if frames is None:
        return Attempt(index=index, shot=asked, kept=prefix, failed=failed)
    clip = studio.editor.store(frames, asked)
    candidate = join(kept, whole(clip)) if kept else whole(clip)
    return Attempt(index=index, shot=asked, kept=prefix, clip=clip, candidate=candidate, verdict=verdict)


def trajectory(
    studio: Studio, frames: Frames, prompt: str = "Move the red circle to the green square."
) -> Trajectory:
    """Two steps of a task: rejected, repaired, accepted; then failed, rejected, best effort."""
    half, size = len(frames) // 2, size_of(frames)
    wrong = Verdict(
        decision="reject",
        failure="wrong_direction",
        reason="From frame 12 on the circle turns back to the left, away from the green square.",
        suggestion="After the corner, move the circle to the right along the white squares.",
        good_fraction=0.5,
    )
    good = Verdict(decision="accept", progress="partial", confidence="high", reason="It stops in row 3.")
    first = attempt(studio, 1, np.concatenate([frames[:half], frames[half:1:-1]]), verdict=wrong, seed=101)
    assert first.candidate is not None
    kept = first_frames(first.candidate, half)
    second = attempt(studio, 2, frames[half - 1 :], kept=kept, verdict=good, seed=102)
    assert second.candidate is not None
    failed = attempt(studio, 1, None, failed="out of memory at step 18; use offload = 'model'", seed=103)
    slow = Verdict(decision="reject", failure="incomplete", reason="It stops half-way.", good_fraction=1.0)
    third = attempt(studio, 2, frames[-1 : half - 1 : -1].copy(), verdict=slow, seed=104)
    assert third.candidate is not None
    last = studio.picture(frames[-1])
    steps = (
        Step(
            index=1,
            plan=Plan(
                instruction="The red circle slides along the white squares to row 3, column 4.",
                target_state="The red circle stands in row 3, column 4; nothing else has changed.",
            ),
            attempts=(first, second),
            status="accepted",
            chosen_attempt=2,
            footage=second.candidate,
            last_frame=last,
        ),
        Step(
            index=2,
            plan=Plan(instruction="The red circle slides to the green square.", target_state="It covers it."),
            attempts=(failed, third),
            route=Route(action="fallback", reason="One atomic move; the best attempt ends nearest to the goal."),
            status="best_effort",
            chosen_attempt=2,
            footage=third.candidate,
            last_frame=studio.editor.frame(third.candidate, -1),
        ),
    )
    return Trajectory(
        id="3f9c21d07ab4",
        task=Task(prompt=prompt, picture=studio.picture(frames[0]), size=size),
        policy=policy(size),
        first_frame=studio.picture(frames[0]),
        steps=steps,
        assessment=Assessment(task_complete=False, reason="The circle is one square short of the goal."),
        outcome=Outcome(kind="exhausted", reason="All 2 steps are used.", best_effort=True),
        spend=Spend(video_seconds=12.25, vlm_calls=7, vlm_tokens=9120, gpu_seconds=1.25, wall_seconds=3.5),
    )


def policy(size: Size) -> Policy:
    return Policy(
        generator="simulated",
        planner="oracle",
        verifier="oracle",
        router="oracle",
        assessor="oracle",
        capabilities=Capabilities(name="simulated"),
        canvas=identity(size),
        encoder="test",
    )
