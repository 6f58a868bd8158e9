"""Pictures channel by channel: what a reduction over the short last axis gives, several times as quick."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from worlds.world import Mask

Bytes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float64]


def largest(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """(…, 3) -> (…) `values.max(axis=-1)`."""
    return np.maximum(np.maximum(values[..., 0], values[..., 1]), values[..., 2])


def differs(picture: Bytes, colour: npt.NDArray[Any], levels: float) -> Mask:
    """(…, 3) -> (…) whether some channel is more than `levels` away from `colour` (3,)."""
    low = np.ceil(colour - levels).clip(0, 255).astype(np.uint8)
    high = np.floor(colour + levels).clip(0, 255).astype(np.uint8)
    away: Mask = np.zeros(picture.shape[:-1], np.bool_)
    for channel in range(3):
        away |= picture[..., channel] < low[channel]
        away |= picture[..., channel] > high[channel]
    return away


def median(colours: Bytes) -> Floats:
    """(…, 3) -> (3,) the median of every channel over all pixels, at least one; by counting."""
    found = np.empty(3, np.float64)
    for channel in range(3):
        counts = np.bincount(colours[..., channel].ravel(), minlength=256).cumsum()
        size = int(counts[-1])
        low, high = np.searchsorted(counts, [(size - 1) // 2, size // 2], side="right")
        found[channel] = (int(low) + int(high)) / 2
    return found
