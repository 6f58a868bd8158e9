"""The quick ways by channel give exactly what the plain reductions give."""

from __future__ import annotations

import numpy as np
import pytest

from worlds import channels

SEEDS = range(12)


def picture(seed: int) -> channels.Bytes:
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (int(rng.integers(1, 30)), int(rng.integers(1, 30)), 3), dtype=np.uint8)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("levels", [0, 10, 13.5, 22, 300])
def test_differs_is_the_largest_difference_above_the_limit(seed: int, levels: float) -> None:
    shown = picture(seed)
    colour = np.random.default_rng(seed + 99).integers(0, 511, 3) / 2
    expected = np.abs(shown.astype(np.int16) - colour).max(axis=2) > levels
    assert np.array_equal(channels.differs(shown, colour, levels), expected)


@pytest.mark.parametrize("seed", SEEDS)
def test_medians_of_even_and_odd_counts(seed: int) -> None:
    shown = picture(seed)
    assert np.array_equal(channels.median(shown), np.median(shown.reshape(-1, 3), axis=0))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_largest_channel(seed: int) -> None:
    assert np.array_equal(channels.largest(picture(seed)), picture(seed).max(axis=2))
