"""Effects in bytes are what they are in floating point."""

from __future__ import annotations

import numpy as np
import pytest

from generators import effects
from worlds.world import Frames


def clip(seed: int) -> Frames:
    return np.random.default_rng(seed).integers(0, 256, (12, 21, 34, 3), dtype=np.uint8)


@pytest.mark.parametrize("levels", [0.4, 9.0, 80.0, 400.0])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_drift_adds_whole_levels_and_stops_at_black_and_white(levels: float, seed: int) -> None:
    frames, before = clip(seed), clip(seed)
    effects.drift(frames, levels, np.random.default_rng(seed))
    shift = np.random.default_rng(seed).choice(np.array([-1.0, 1.0]), 3) * levels
    for index in range(12):
        expected = (before[index] + np.rint(shift * index / 11)).clip(0, 255).astype(np.uint8)
        assert np.array_equal(frames[index], expected)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_picture_imagined_anew_has_the_same_grain_in_every_frame(seed: int) -> None:
    frames, before = clip(seed), clip(seed)
    effects.reimagine(frames, np.random.default_rng(seed))
    grain = np.random.default_rng(seed).normal(0, effects.REIMAGINED_LEVELS, before.shape[1:])
    assert np.array_equal(frames, (before + grain).clip(0, 255).astype(np.uint8))


@pytest.mark.parametrize("first", [0, 4, 11])
def test_a_scene_melts_from_its_frame_on_and_then_stays_melted(first: int) -> None:
    frames, before = clip(3), clip(3)
    effects.collapse(frames, first, np.random.default_rng(3))
    assert np.array_equal(frames[:first], before[:first])
    assert not np.array_equal(frames[first], before[first])
    gone = frames[first + 4 :]
    assert all(np.array_equal(frame, gone[0]) for frame in gone)
