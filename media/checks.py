"""Quick checks of a candidate, without any model: rejects that are certain, and notes for the verifier."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import numpy as np
import numpy.typing as npt

from media.brightness import block_luma, brightness_notes
from media.measures import Blocks, drift, sharpness_ratio
from media.motion import Grids, Motion
from media.pictures import Frame
from orchestrator.records import Check, Clip, Drift

_SATURATION_DRIFT, _BRIGHTNESS_DRIFT, _COLOUR_DRIFT_LEVELS = 0.10, 0.08, 6.0
_SHARPNESS_TREND = 0.2
_SHARPNESS_EVERY = 8  # frames


def examine(
    frames: Iterable[Frame], new_from: int, clip: Clip, first_picture: Frame, *, psnr_min: float
) -> Check:
    """Check a candidate that is asked to change something.

    `frames`: the candidate's, in order, at least one, (H, W, 3) uint8 RGB; `new_from` is the number of the first
    one that `clip` added. Motion is judged over the whole candidate; drift is measured against `first_picture`.
    """
    seen = _Seen(new_from)
    for frame in frames:
        seen.add(frame)
    measured = drift(seen.last, first_picture)
    notes = [
        *brightness_notes(np.stack(seen.lumas)),
        *_drift_notes(measured),
        *_sharpness_notes(seen.sharpness),
    ]
    failure, reason = _rejection(clip, seen.motion, psnr_min)
    if failure != "no_motion" and seen.new_part_stands_still:
        notes.insert(
            0, f"the newly rendered part stands still, from frame {new_from} on: all motion is in what was kept"
        )
    return Check(failure=failure, reason=reason, notes=tuple(notes), drift=measured)


class _Seen:
    """What is gathered in one pass over the frames; none of them is kept but the last."""

    last: Frame
    motion: Motion

    def __init__(self, new_from: int) -> None:
        self.lumas: list[npt.NDArray[np.float32]] = []
        self._new_from = new_from
        self._new_motion: Motion | None = None
        self._grids = Grids()
        self._first: Blocks | None = None
        self._changed = False  # since sharpness was measured last
        self.sharpness: list[float] = []  # of every eighth frame, in units of the first one's

    def add(self, frame: Frame) -> None:
        index = len(self.lumas)
        cells, changed = self._grids.of(frame)
        self.lumas.append(block_luma(cells) if changed[0] < changed[1] else self.lumas[-1])
        self._changed |= changed[0] < changed[1]
        self.last = frame
        if self._first is None:
            self._first = Blocks(frame)
            self.motion = Motion(frame)
        else:
            self.motion.see(cells, changed)
        if self._new_motion is not None:
            self._new_motion.see(cells, changed)
        elif index == self._new_from - 1:
            self._new_motion = Motion(frame)
        if index % _SHARPNESS_EVERY == _SHARPNESS_EVERY - 1:
            self.sharpness.append(self._sharpness(frame, self._first))

    def _sharpness(self, frame: Frame, first: Blocks) -> float:
        if self.sharpness and not self._changed:
            return self.sharpness[-1]
        self._changed = False
        return sharpness_ratio(Blocks(frame), first)

    @property
    def new_part_stands_still(self) -> bool:
        return self._new_motion is not None and self._new_motion.amount < 1


def _rejection(
    clip: Clip, motion: Motion, psnr_min: float
) -> tuple[Literal["no_motion", "first_frame"] | None, str]:
    if clip.first_frame_psnr < psnr_min:
        return "first_frame", (
            f"the clip does not begin with its start frame: {clip.first_frame_psnr:.1f} dB,"
            f" SSIM {clip.first_frame_ssim:.3f}; at least {psnr_min:g} dB are needed"
        )
    if motion.amount < 1:
        return "no_motion", "nothing moves: all frames look alike"
    return None, ""


def _drift_notes(measured: Drift) -> list[str]:
    notes: list[str] = []
    since = "than in the first picture"
    if abs(measured.saturation - 1) > _SATURATION_DRIFT:
        notes.append(f"colours are {_percent(measured.saturation, 'more', 'less')} saturated {since}")
    if abs(measured.brightness - 1) > _BRIGHTNESS_DRIFT:
        notes.append(f"the picture is {_percent(measured.brightness, 'brighter', 'darker')} {since}")
    if measured.colour_levels > _COLOUR_DRIFT_LEVELS:
        notes.append(f"colours have shifted by {measured.colour_levels:.1f} levels since the first picture")
    return notes


def _percent(ratio: float, more: str, less: str) -> str:
    return f"{abs(ratio - 1) * 100:.0f} % {more if ratio > 1 else less}"


def _sharpness_notes(ratios: list[float]) -> list[str]:
    """A trend over the candidate: its last third against its first frame."""
    late = ratios[-max(1, len(ratios) // 3) :]
    ratio = sum(late) / len(late) if late else 1.0
    if ratio < 1 - _SHARPNESS_TREND:
        return [f"the picture loses sharpness: {(1 - ratio) * 100:.0f} % less by the end"]
    if ratio > 1 + _SHARPNESS_TREND:
        return [f"the picture gains noise or edges: {(ratio - 1) * 100:.0f} % sharper by the end"]
    return []
