"""What is measured with: drawings compress well, natural pictures do not, both move and repeat."""

from __future__ import annotations

import zlib
from collections.abc import Callable

import numpy as np
import pytest

from bench.content import Frames, flat, natural


@pytest.mark.parametrize("make", [flat, natural])
def test_content_moves_has_the_asked_shape_and_repeats(make: Callable[[int, int, int], Frames]) -> None:
    frames = make(96, 64, 5)
    assert frames.shape == (5, 64, 96, 3)
    assert frames.dtype == np.uint8
    assert (frames[0] != frames[4]).any()
    assert (frames == make(96, 64, 5)).all()


def test_natural_content_is_much_harder_to_compress_than_flat() -> None:
    packed = {make.__name__: len(zlib.compress(make(128, 128, 4).tobytes(), 1)) for make in (flat, natural)}
    assert packed["natural"] > 20 * packed["flat"]
