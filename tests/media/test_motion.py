"""Measuring only the rows that changed gives what measuring whole frames gives."""

from __future__ import annotations

import numpy as np
import pytest

from media.motion import Grids, Motion, grid
from media.pictures import Frame


def clip(height: int, width: int) -> list[Frame]:
    """A piece moves down, all changes once, then all is still."""
    rng = np.random.default_rng(height)
    ground = rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
    frames: list[Frame] = []
    for index in range(9):
        frame = ground.copy() if index != 5 else 255 - ground
        frame[index * height // 12 : index * height // 12 + 3, width // 3 :] = (10, 200, 30)
        frames.append(frame)
    return [*frames, frames[-1], frames[-1].copy(), frames[0]]


@pytest.mark.parametrize(("height", "width"), [(64, 80), (97, 33), (31, 40), (36, 5), (4, 9), (250, 6)])
def test_only_changed_rows_are_measured_and_the_figures_are_the_same(height: int, width: int) -> None:
    frames = clip(height, width)
    grids, quick, whole = Grids(), Motion(frames[0]), Motion(frames[0])
    grids.of(frames[0])
    for frame in frames[1:]:
        cells, changed = grids.of(frame)
        assert np.array_equal(cells, grid(frame))
        quick.see(cells, changed)
        whole.see(grid(frame))
        assert (quick.amount, quick.levels) == (whole.amount, whole.levels)


def test_frames_that_are_the_same_have_no_changed_rows() -> None:
    frame = clip(64, 80)[0]
    grids = Grids()
    assert grids.of(frame)[1] == (0, 16)
    first, stop = grids.of(frame.copy())[1]
    assert first == stop


def test_a_small_change_is_one_band_of_rows() -> None:
    frame = clip(256, 80)[0]
    grids = Grids()
    grids.of(frame)
    after = frame.copy()
    after[130, 7] ^= 255
    assert grids.of(after)[1] == (32, 40)
