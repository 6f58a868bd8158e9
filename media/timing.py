"""Frame rates and timestamps as exact fractions: at mixed rates every frame keeps its own time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from orchestrator.records import Footage

_DENOMINATOR_MAX = 1001  # 24000/1001 and its kin
_TICKS_MIN, _TICKS_MAX = 10_000, 10_000_000


def rate(fps: float) -> Fraction:
    """Frames per second as a fraction: 23.976023976 is 24000/1001."""
    return max(Fraction(fps).limit_denominator(_DENOMINATOR_MAX), Fraction(1, _DENOMINATOR_MAX))


@dataclass(frozen=True)
class Run:
    """Frames `first` … `stop` − 1, all shown at one rate."""

    first: int
    stop: int
    fps: Fraction


@dataclass(frozen=True)
class Timeline:
    """When each frame of a piece of footage is shown. `seconds` = Σ frames / fps, exact."""

    runs: tuple[Run, ...]
    timescale: int  # ticks a second, so that every frame lasts whole ticks (rounded past 10 million)

    @property
    def seconds(self) -> Fraction:
        return sum(((run.stop - run.first) / run.fps for run in self.runs), start=Fraction(0))

    @property
    def num_frames(self) -> int:
        return self.runs[-1].stop

    @property
    def tick_seconds(self) -> Fraction:
        return Fraction(1, self.timescale)

    @property
    def last_rate(self) -> Fraction:
        return self.runs[-1].fps

    def expression(self) -> str | None:
        """ffmpeg's `setpts` expression in ticks by the frame's number N; None at one constant rate."""
        if len(self.runs) == 1:
            return None
        parts: list[str] = []
        start = Fraction(0)
        for run in self.runs:
            step = self.timescale / run.fps
            parts.append(f"round({start}+(N-{run.first})*{step})")
            start += (run.stop - run.first) * step
        return f"'{_by_number(parts, [run.stop for run in self.runs])}'"


def timeline(footage: Footage) -> Timeline:
    """The timeline of footage that has at least one frame; neighbours at the same rate are one run."""
    runs: list[Run] = []
    at = 0
    for segment in footage.segments:
        fps, stop = rate(segment.fps), at + segment.num_frames
        if runs and runs[-1].fps == fps:
            runs[-1] = Run(runs[-1].first, stop, fps)
        elif stop > at:
            runs.append(Run(at, stop, fps))
        at = stop
    ticks = math.lcm(*(run.fps.numerator for run in runs))
    ticks *= -(-_TICKS_MIN // ticks) if ticks < _TICKS_MIN else 1
    return Timeline(runs=tuple(runs), timescale=ticks if ticks <= _TICKS_MAX else 90_000)


def _by_number(parts: Sequence[str], stops: Sequence[int]) -> str:
    """A balanced tree of ifs: ffmpeg's parser has a limited depth."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    left, right = _by_number(parts[:half], stops[:half]), _by_number(parts[half:], stops[half:])
    return f"if(lt(N,{stops[half - 1]}),{left},{right})"
