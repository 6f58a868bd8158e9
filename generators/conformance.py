"""What every generator must do, checked on any of them: findings, whatever it raises.

Knows the port alone. Expensive backends are asked for about a dozen of their shortest clips.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from PIL import Image

from media.canvas import choose, place
from media.measures import psnr
from media.pictures import Frame, encode_png
from orchestrator.errors import BackendMisconfigured, CliploopError, JobCancelled
from orchestrator.frame_counts import clip_seconds, snap
from orchestrator.ports import Artifacts, Generator
from orchestrator.records import Canvas, Shot, Size
from worlds.catalog import load
from worlds.sampling import sample

SIZES = (Size(width=320, height=256), Size(width=321, height=241), Size(width=240, height=416))
ASKED_FRAMES = (15, 80)
SEEDS = (11, 12, 13, 14)
DENOISING_STEPS = 4
FIRST_FRAME = "first frame"  # the check of whether its clips can be chained


@dataclass(frozen=True)
class Finding:
    """One check: whether it passed, and what was measured or what is wrong."""

    name: str
    passed: bool
    detail: str


@dataclass
class _Heard:
    """What a render said while it ran."""

    progress: list[float] = field(default_factory=list[float])
    tokens: list[str] = field(default_factory=list[str])
    asked: int = 0  # how often it asked whether it was cancelled


class Failed(Exception):
    """A check's own word that the backend does not conform."""


def check(generator: Generator, artifacts: Artifacts) -> Iterator[Finding]:
    """Run the suite, one finding at a time. The generator must read its start frames from `artifacts`.

    Raises BackendMisconfigured for one that cannot be used at all.
    """
    suite = _Suite(generator, artifacts)
    checks: list[tuple[str, Callable[[], str]]] = [
        ("shape", suite.shape),
        (FIRST_FRAME, suite.first_frame),
        ("sizes", suite.sizes),
        ("frame counts", suite.frame_counts),
        ("seeds", suite.seeds),
        ("cancel", suite.cancel),
        ("progress", suite.progress),
        ("checkpoint", suite.checkpoint),
    ]
    for name, one in checks:
        try:
            yield Finding(name, True, one())
        except Failed as failed:
            yield Finding(name, False, str(failed))
        except BackendMisconfigured:
            raise  # nothing of it was checked
        except (CliploopError, ValueError, TypeError, IndexError, AttributeError, RuntimeError) as error:
            yield Finding(name, False, f"{type(error).__name__}: {error}")


class _Suite:
    def __init__(self, generator: Generator, artifacts: Artifacts) -> None:
        self._generator = generator
        self._artifacts = artifacts
        self._task = sample(load("maze"), "easy", 0)
        world, prompt = self._task.world, self._task.prompt
        scene = world.understand(self._task.frame, prompt)
        actions = world.oracle_plan(self._task.state)[:1]
        self._prompt = world.describe(actions, scene.legend) if scene is not None else prompt

    @cached_property
    def base(self) -> tuple[Shot, Any, _Heard]:
        """A plain shot, rendered once: (shot, frames, what it said)."""
        shot = self._shot()
        return shot, *self._render(shot)

    def shape(self) -> str:
        """(T, H, W, 3) uint8."""
        returned = self.base[1]
        if not isinstance(returned, np.ndarray):
            raise Failed(f"returned {type(returned).__name__}, not an array of frames")
        frames = cast("npt.NDArray[Any]", returned)
        if frames.dtype != np.uint8 or frames.ndim != 4 or frames.shape[-1] != 3:
            raise Failed(f"returned {frames.dtype} of shape {frames.shape}, not (T, H, W, 3) uint8 RGB")
        return f"uint8 {frames.shape}"

    def first_frame(self) -> str:
        """Frame 0 is the start frame, or the next clip cannot go on from this one."""
        shot, frames, _ = self.base
        limit = self._generator.capabilities.first_frame_psnr_min
        start = self._picture(choose(SIZES[0], self._generator.capabilities))
        worst = 100.0
        for seed in SEEDS[:2]:
            again = frames if seed == shot.seed else self._render(self._shot(seed=seed))[0]
            worst = min(worst, _likeness(again[0], start))
        if worst < limit:
            raise Failed(
                f"frame 0 differs from the start frame, PSNR {worst:.1f} dB < {limit:.0f}: it drifts at frame 0,"
                " so its clips cannot be chained (strategy pass@1, or allow_unchainable)"
            )
        if not self._generator.capabilities.chainable:
            raise Failed("it says of itself that it re-imagines frame 0: its clips cannot be chained")
        return f"PSNR {worst:.1f} dB"

    def sizes(self) -> str:
        """Frames have the canvas' size, odd ones too."""
        told: list[str] = []
        for size in SIZES:
            shot = self._shot(size)
            frames, _ = self._render(shot)
            rendered = Size(width=frames.shape[2], height=frames.shape[1])
            if rendered != shot.canvas:
                raise Failed(f"asked for {shot.canvas}, rendered {rendered}")
            told.append(f"{size} on {rendered}")
        return ", ".join(told)

    def frame_counts(self) -> str:
        """A count that it cannot render is snapped to the nearest that it can."""
        told: list[str] = []
        for asked in ASKED_FRAMES:
            wanted = snap(asked, self._generator.capabilities)
            got = len(self._render(self._shot(num_frames=asked))[0])
            if got != wanted:
                raise Failed(f"asked for {asked} frames, rendered {got}; its capabilities say {wanted}")
            told.append(f"{asked} → {got}")
        return ", ".join(told)

    def seeds(self) -> str:
        """The same seed gives the same frames; seeds that change nothing are told."""
        shot, frames, _ = self.base
        same = np.array_equal(self._render(shot)[0], frames)
        if not self._generator.capabilities.seeded:
            return f"takes no seed; the same shot twice gave {'the same' if same else 'other'} frames"
        if not same:
            raise Failed("the same shot with the same seed gave other frames")
        others = [self._render(self._shot(seed=seed))[0] for seed in SEEDS[1:]]
        alike = sum(np.array_equal(other, frames) for other in others)
        ignored = "; the seed seems to be ignored" if alike == len(others) else ""
        return f"repeatable; {len(others) - alike} of {len(others)} other seeds gave other frames{ignored}"

    def cancel(self) -> str:
        """It stops when told to, and can be used again."""
        shot, frames, _ = self.base
        heard = _Heard()
        try:
            self._call(shot, heard, lambda: heard.asked >= 2)
        except JobCancelled:
            if not np.array_equal(self._render(shot)[0], frames) and self._generator.capabilities.seeded:
                raise Failed("after a cancelled render the same shot gave other frames") from None
            return f"stopped when asked for the {_nth(heard.asked)} time, usable after"
        raise Failed(f"it rendered to its end although cancelled (asked {heard.asked} times)")

    def progress(self) -> str:
        """Fractions from 0 to 1 that never fall and reach 1."""
        told = self.base[2].progress
        if not told or not all(0 <= value <= 1 for value in told):
            raise Failed(f"progress is not from 0 to 1: {told[:5]}")
        if sorted(told) != told:
            raise Failed("progress falls")
        if told[-1] != 1:
            raise Failed(f"progress ends at {told[-1]:.2f}, not at 1")
        return f"{len(told)} reports, the last 1"

    def checkpoint(self) -> str:
        """A remote render has a token by which it is found again."""
        shot, frames, heard = self.base
        if not self._generator.capabilities.remote:
            return "renders here: nothing to take up again"
        if not heard.tokens:
            raise Failed("a remote render gave no token: after a restart it would be submitted again")
        again = _Heard()
        resumed = self._call(shot, again, lambda: False, resume=heard.tokens[-1])
        if again.tokens:
            raise Failed("taken up by its token it was submitted anew")
        if not np.array_equal(resumed, frames):
            raise Failed("taken up by its token it gave other frames")
        return "taken up again by its token"

    def _shot(self, size: Size = SIZES[0], *, num_frames: int | None = None, seed: int = SEEDS[0]) -> Shot:
        capabilities = self._generator.capabilities
        canvas = choose(size, capabilities)
        count = num_frames or snap(17, capabilities)
        return Shot(
            prompt=self._prompt[: capabilities.prompt_chars],
            start_frame=self._artifacts.put(encode_png(self._picture(canvas)), ".png"),
            seconds=clip_seconds(count, capabilities.fps),
            num_frames=count,
            fps=capabilities.fps,
            seed=seed,
            canvas=canvas.size,
            denoising_steps=DENOISING_STEPS,
            guidance=5.0,
        )

    def _picture(self, canvas: Canvas) -> Frame:
        size = (canvas.content.width, canvas.content.height)
        picture = Image.fromarray(self._task.frame).resize(size, Image.Resampling.NEAREST)
        return place(picture, canvas)

    def _render(self, shot: Shot) -> tuple[Any, _Heard]:
        heard = _Heard()
        return self._call(shot, heard, lambda: False), heard

    def _call(self, shot: Shot, heard: _Heard, cancelled: Callable[[], bool], resume: str | None = None) -> Any:
        def asked() -> bool:
            heard.asked += 1
            return cancelled()

        return self._generator.render(
            shot,
            resume=resume,
            checkpoint=heard.tokens.append,
            progress=heard.progress.append,
            cancelled=asked,
        )


def _likeness(frame: Frame, start: Frame) -> float:
    """PSNR, dB; 0 for another size."""
    return psnr(frame, start) if frame.shape == start.shape else 0.0


def _nth(number: int) -> str:
    return {1: "first", 2: "second", 3: "third"}.get(number, f"{number}th")
