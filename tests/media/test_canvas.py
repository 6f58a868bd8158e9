"""The canvas fits the backend, wastes little, and keeps the picture's shape."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from media.canvas import choose, deliverable_size, fit_frame, place
from orchestrator.errors import BackendMisconfigured
from orchestrator.records import Capabilities, Size
from tests.media.made import drawing, noise

WAN = Capabilities(name="wan", size_multiple=16, min_side=256, max_side=1280, max_pixels=832 * 480)
WIDE = Capabilities(name="wide", size_multiple=32, min_side=256, max_side=1280, max_pixels=1280 * 704)


def sized(width: int, height: int) -> Size:
    return Size(width=width, height=height)


@pytest.mark.parametrize(
    ("size", "capabilities", "canvas", "fit"),
    [
        ((641, 481), Capabilities(name="any"), (641, 481), "identity"),
        ((832, 480), WAN, (832, 480), "identity"),
        ((480, 832), WAN, (480, 832), "identity"),
        ((641, 481), WAN, (656, 496), "pad"),
        ((848, 480), WIDE, (864, 480), "pad"),
        ((1024, 1024), WAN, (624, 624), "scale"),
        ((210, 210), WAN, (256, 256), "pad"),
        ((100, 100), WAN, (256, 256), "scale"),
        ((848, 480), WAN, (832, 480), "scale_pad"),
        ((1920, 1080), WAN, (832, 480), "scale_pad"),
        ((5000, 1000), WAN, (1280, 256), "scale"),
    ],
)
def test_the_canvas_is_the_picture_padded_or_scaled_in_that_order(
    size: tuple[int, int], capabilities: Capabilities, canvas: tuple[int, int], fit: str
) -> None:
    chosen = choose(sized(*size), capabilities)
    assert (chosen.size.width, chosen.size.height) == canvas
    assert chosen.fit == fit


@settings(max_examples=150, deadline=None)
@given(
    width=st.integers(16, 3000),
    height=st.integers(16, 3000),
    multiple=st.sampled_from([1, 2, 8, 16, 32]),
    limits=st.sampled_from(
        [(16, 1280, 832 * 480), (256, 1280, 1280 * 720), (64, 512, 512 * 512), (480, 832, 832 * 480)]
    ),
)
def test_every_picture_gets_a_canvas_that_the_backend_renders(
    width: int, height: int, multiple: int, limits: tuple[int, int, int]
) -> None:
    if max(width, height) > 5 * min(width, height):
        return
    low, high, pixels = limits
    canvas = choose(
        sized(width, height),
        Capabilities(name="b", size_multiple=multiple, min_side=low, max_side=high, max_pixels=pixels),
    )
    outer, inner = canvas.size, canvas.content
    assert outer.width % multiple == outer.height % multiple == 0
    assert low <= min(outer.width, outer.height)
    assert max(outer.width, outer.height) <= high
    assert outer.width * outer.height <= pixels
    assert 0 <= inner.left <= outer.width - inner.width
    assert 0 <= inner.top <= outer.height - inner.height
    # The shape is kept to within a pixel.
    assert abs(inner.width * height / width - inner.height) <= 1 + height / width


def test_a_backend_without_any_size_is_misconfigured_and_named() -> None:
    with pytest.raises(BackendMisconfigured, match="'odd' allows no frame size"):
        choose(sized(100, 100), Capabilities(name="odd", size_multiple=64, min_side=65, max_side=100))


def test_a_padded_picture_lies_unscaled_between_replicated_edges() -> None:
    board = noise(1, 49, 65)[0]
    canvas = choose(sized(65, 49), Capabilities(name="b", size_multiple=16))
    placed = place(Image.fromarray(board), canvas)
    box = canvas.content
    assert placed.shape == (64, 80, 3)
    assert np.array_equal(placed[box.top : box.top + 49, box.left : box.left + 65], board)
    assert np.array_equal(placed[0, box.left : box.left + 65], board[0])
    assert np.array_equal(
        placed[:, -1], np.pad(board[:, -1], ((box.top, 64 - 49 - box.top), (0, 0)), mode="edge")
    )


def test_an_identical_canvas_changes_no_pixel() -> None:
    board = drawing()
    placed = place(Image.fromarray(board), choose(sized(128, 96), Capabilities(name="b")))
    assert np.array_equal(placed, board)


def test_a_frame_of_the_right_size_is_left_alone_and_another_stretched() -> None:
    board = drawing()
    assert fit_frame(board, sized(128, 96)) is board
    assert fit_frame(board, sized(64, 48)).shape == (48, 64, 3)


@pytest.mark.parametrize(
    ("size", "cap", "shown", "noted"),
    [
        ((1920, 1080), 1920, (1920, 1080), False),
        ((641, 481), 1920, (642, 482), True),
        ((4000, 3000), 1920, (1920, 1440), True),
        ((3000, 4001), 1920, (1440, 1920), True),
        ((1921, 1081), 1920, (1920, 1080), True),
    ],
)
def test_deliverables_have_even_sides_and_say_what_changed(
    size: tuple[int, int], cap: int, shown: tuple[int, int], noted: bool
) -> None:
    found, notes = deliverable_size(sized(*size), cap)
    assert (found.width, found.height) == shown
    assert bool(notes) is noted
