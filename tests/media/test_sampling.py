"""Which frames stand for a clip: first and last always, never more than there are; and the sheet of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from media.frame_sheet import LABEL_PX, Cell, frame_sheet
from media.sampling import sample, seconds_at
from orchestrator.records import Footage, Segment

RATE = {"per_second": 1.0, "least": 8, "most": 64}


@given(
    st.integers(1, 400),
    st.floats(0.01, 60),
    st.floats(0.1, 30),
    st.integers(2, 16),
    st.integers(2, 80),
)
def test_first_and_last_are_always_among_them_and_none_twice(
    num_frames: int, seconds: float, per_second: float, least: int, most: int
) -> None:
    chosen = sample(num_frames, seconds, per_second=per_second, least=least, most=most)
    assert chosen[0] == (0 if num_frames > 1 else num_frames - 1)
    assert chosen[-1] == num_frames - 1
    assert list(chosen) == sorted(set(chosen))
    assert len(chosen) <= min(most, num_frames)
    assert len(chosen) >= min(least, most, num_frames)


@pytest.mark.parametrize(
    ("num_frames", "fps", "expected"),
    [
        (81, 16, 8),  # 5 s at one a second are 6: at least 8
        (193, 16, 13),  # 12 s: one a second, both ends
        (9, 16, 8),
        (1600, 16, 64),
    ],
)
def test_one_a_second_and_at_least_eight(num_frames: int, fps: int, expected: int) -> None:
    assert len(sample(num_frames, num_frames / fps, **RATE)) == expected  # pyright: ignore[reportArgumentType]


def test_more_frames_asked_than_the_clip_has_are_all_of_them() -> None:
    """lmms-eval#874: 16 of a clip of 9."""
    assert sample(9, 9 / 16, per_second=1, least=16, most=64) == tuple(range(9))


def test_a_single_one_is_the_last_and_none_is_refused() -> None:
    assert sample(81, 5, per_second=1, least=8, most=1) == (80,)
    with pytest.raises(ValueError, match="nothing to sample"):
        sample(0, 0, **RATE)  # pyright: ignore[reportArgumentType]


def test_a_frames_time_counts_every_segment_at_its_own_rate() -> None:
    still = Segment(mezzanine="a.png", first=0, stop=1, fps=16)
    slow = Segment(mezzanine="b.mp4", first=1, stop=9, fps=8)
    footage = Footage(segments=(still, slow))
    assert [seconds_at(footage, index) for index in (0, 1, 8)] == [0, 1 / 16, 1 / 16 + 7 / 8]
    with pytest.raises(ValueError, match="no such frame"):
        seconds_at(footage, 9)


def plain(width: int, height: int, level: int) -> np.ndarray:
    return np.full((height, width, 3), level, dtype=np.uint8)


@pytest.mark.parametrize(
    ("width", "height", "count"), [(832, 480, 9), (64, 48, 9), (480, 832, 3), (210, 210, 25)]
)
def test_a_sheet_keeps_to_its_size_and_shows_every_picture_unmixed(width: int, height: int, count: int) -> None:
    levels = [10 + 9 * number for number in range(count)]
    sheet = frame_sheet([Cell(f"Frame {level}", plain(width, height, level)) for level in levels], 1536)
    assert max(sheet.size) <= 1536
    pixels = np.asarray(sheet)
    for level in levels:
        area = np.count_nonzero((pixels == level).all(axis=2))
        assert area >= 0.9 * (min(width, 180) * min(height, 120)) / 4, level


def test_a_sheet_reads_row_by_row() -> None:
    shades = [20, 60, 100, 140]
    pixels = np.asarray(frame_sheet([Cell(str(shade), plain(200, 200, shade)) for shade in shades], 900))
    first = {shade: tuple(np.argwhere((pixels == shade).all(axis=2))[0]) for shade in shades}
    assert sorted(shades, key=lambda shade: first[shade]) == shades


def test_labels_differ_so_that_frames_can_be_told_apart() -> None:
    same = plain(200, 150, 80)
    sheet = frame_sheet([Cell("Frame 0 · 0.00 s", same), Cell("Frame 12 · 0.75 s", same)], 900)
    left, right = sheet.crop((10, 10, 200, 10 + LABEL_PX)), sheet.crop((220, 10, 410, 10 + LABEL_PX))
    assert isinstance(left, Image.Image)
    assert left.tobytes() != right.tobytes()


def test_a_sheet_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing"):
        frame_sheet([], 900)
