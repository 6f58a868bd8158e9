"""A canvas inside a vendor's frame: in and out again, whatever their shapes, and never stretched."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generators.remote_window import Aspect, Fill, require_shape, window
from media.measures import psnr
from media.pictures import Frame
from orchestrator.errors import BackendFailed
from orchestrator.records import Size

FRAMES = [Size(width=320, height=180), Size(width=180, height=320)]
SIDES = st.integers(min_value=8, max_value=300)


def smooth(size: Size) -> Frame:
    """A picture that survives scaling: slopes in all three colours."""
    across = np.linspace(0, 255, size.width)[np.newaxis, :].repeat(size.height, axis=0)
    down = np.linspace(255, 0, size.height)[:, np.newaxis].repeat(size.width, axis=1)
    return np.stack([across, down, (across + down) / 2], axis=2).astype(np.uint8)


@given(SIDES, SIDES, st.sampled_from(["pad", "crop"]))
def test_what_is_shown_keeps_its_shape(width: int, height: int, aspect: Aspect) -> None:
    lies = window(Size(width=width, height=height), FRAMES, aspect)
    across = lies.frame.width / lies.canvas.width
    down = lies.frame.height / lies.canvas.height
    pixel = max(
        across / lies.canvas.width, down / lies.canvas.height, across / lies.frame.width, down / lies.frame.height
    )
    assert abs(across - down) <= pixel * 1.0001


@given(SIDES, SIDES, st.sampled_from(["pad", "crop"]))
def test_out_of_the_frame_comes_what_went_in(width: int, height: int, aspect: Aspect) -> None:
    size = Size(width=width, height=height)
    lies, start = window(size, FRAMES, aspect), smooth(size)
    sent = lies.picture(start, "edge")
    assert sent.shape == (lies.frame_size.height, lies.frame_size.width, 3)
    back = lies.canvas_frame(sent, start)
    assert back.shape == start.shape
    assert psnr(back, start) > 24  # tall strips lose detail, but nothing moves


def test_a_canvas_of_the_frames_own_size_is_not_touched() -> None:
    start = smooth(FRAMES[0])
    lies = window(FRAMES[0], FRAMES, "pad")
    assert np.array_equal(lies.picture(start, "black"), start)
    assert np.array_equal(lies.canvas_frame(start, start), start)


def test_the_fill_is_what_was_asked_for() -> None:
    size = Size(width=90, height=90)
    lies = window(size, FRAMES, "pad")
    start = smooth(size)
    assert (lies.frame.left, lies.frame.width) == (70, 180)
    levels: dict[Fill, int] = {"black": 0, "white": 255, "grey": 128}
    for fill, level in levels.items():
        sent = lies.picture(start, fill)
        assert (sent[:, :70] == level).all()
        assert (sent[:, 250:] == level).all()


def test_a_frame_that_came_back_smaller_is_read_at_the_same_places() -> None:
    size = Size(width=90, height=90)
    lies, start = window(size, FRAMES, "pad"), smooth(size)
    small = lies.picture(start, "black")[::2, ::2]
    assert psnr(lies.canvas_frame(small, start), start) > 28


def test_a_frame_of_another_shape_is_refused() -> None:
    require_shape(Size(width=854, height=480), Size(width=1280, height=720))  # 16:9 in whole pixels
    for width, height in ((640, 480), (480, 854), (832, 480)):
        with pytest.raises(BackendFailed, match="not stretched"):
            require_shape(Size(width=width, height=height), Size(width=1280, height=720))
