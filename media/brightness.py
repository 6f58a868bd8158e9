"""What happens to a clip's brightness as a whole: black frames, flashes, jumps, ramps.

Judged on 8 × 8 blocks that have room to change: a white ground cannot get brighter, so it does not vote.
"""

from __future__ import annotations

import itertools
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from media.motion import Grid

Lumas: TypeAlias = npt.NDArray[np.float32]  # (T, h, w) brightness of blocks, 0 … 255

_BLACK_SHARE, _BLACK_LEVELS = 0.15, 20.0
_STEP_LEVELS = 5.0  # a block that changes by less has not flashed
_RETURN_SHARE = 0.35  # of a flash must be undone a frame later
_FLASH_SHARE = 0.5  # of the blocks that could change
_VOTERS_MIN = 0.02  # of all blocks, or there is too little to judge by
_RAMP_LEVELS, _RAMP_FRAMES, _RAMP_SAME_SIGN = 8.0, 4, 0.8


def block_luma(cells: Grid) -> npt.NDArray[np.float32]:
    """Brightness (BT.601) of 8 × 8 blocks, from a grid of 4 × 4 means: (h, w)."""
    height, width = (max(1, side // 2) for side in cells.shape[:2])
    luma = cells @ np.array([0.299, 0.587, 0.114], dtype=np.float32)
    if min(luma.shape) < 2:
        return luma
    return luma[: height * 2, : width * 2].reshape(height, 2, width, 2).mean(axis=(1, 3))


def brightness_notes(lumas: Lumas) -> tuple[str, ...]:
    """What a verifier should know, a line each; frames are counted from 0."""
    return (*_black(lumas), *_sudden(lumas), *_ramp(lumas))


def _black(lumas: Lumas) -> list[str]:
    means = lumas.mean(axis=(1, 2))
    if means[0] < _BLACK_LEVELS:
        return []
    black = np.flatnonzero(means < means[0] * _BLACK_SHARE)
    if not len(black):
        return []
    return [f"{_frames(black.tolist())} black, while the start is not"]


def _frames(numbers: list[int]) -> str:
    if len(numbers) == 1:
        return f"frame {numbers[0]} is"
    return f"frames {numbers[0]} to {numbers[-1]} are" + (
        "" if numbers[-1] - numbers[0] + 1 == len(numbers) else " partly"
    )


def _sudden(lumas: Lumas) -> list[str]:
    """Flashes (up and back within a frame, or the other way) and jumps (there to stay)."""
    notes: list[str] = []
    at = 1
    while at < len(lumas):
        sign = _jump_sign(lumas[at - 1], lumas[at])
        if sign and at + 1 < len(lumas) and _undone(lumas[at - 1], lumas[at], lumas[at + 1]):
            notes.append(f"frame {at} flashes: it alone is {'brighter' if sign > 0 else 'darker'} as a whole")
            at += 1
        elif sign:
            notes.append(f"the whole picture jumps {'brighter' if sign > 0 else 'darker'} at frame {at}")
        at += 1
    return notes if len(notes) <= 3 else [*notes[:3], f"and {len(notes) - 3} more sudden changes of brightness"]


def _jump_sign(before: npt.NDArray[np.float32], after: npt.NDArray[np.float32]) -> int:
    for sign, free in ((1, before < 255 - 1.5 * _STEP_LEVELS), (-1, before > 1.5 * _STEP_LEVELS)):
        if free.mean() >= _VOTERS_MIN and ((after - before)[free] * sign > _STEP_LEVELS).mean() >= _FLASH_SHARE:
            return sign
    return 0


def _undone(
    before: npt.NDArray[np.float32], during: npt.NDArray[np.float32], after: npt.NDArray[np.float32]
) -> bool:
    step = np.abs(during - before)
    changed = step > _STEP_LEVELS
    return bool((np.abs(after - before)[changed] <= _RETURN_SHARE * step[changed]).mean() >= _FLASH_SHARE)


def _ramp(lumas: Lumas) -> list[str]:
    """Slow change in one direction: the median step of the blocks that are neither black nor white."""
    steps: list[float] = []
    for before, after in itertools.pairwise(lumas):
        free = (before > 5) & (after > 5) & (before < 250) & (after < 250)
        if free.mean() >= _VOTERS_MIN:
            steps.append(float(np.median((after - before)[free])))
    moving = [step for step in steps if 0.05 < abs(step) <= 2 * _STEP_LEVELS]
    total = sum(moving)
    if len(moving) < _RAMP_FRAMES or abs(total) < _RAMP_LEVELS:
        return []
    if sum(step * total > 0 for step in moving) < _RAMP_SAME_SIGN * len(moving):
        return []
    direction = "brighter" if total > 0 else "darker"
    return [f"the whole picture grows {direction}, by {abs(total) / len(steps):.1f} levels a frame"]
