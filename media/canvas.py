"""The one frame size of a job: chosen once from the picture's size and what the backend can render.

In this order: the picture as it is; the picture unscaled with its edges replicated; the picture scaled, with
as little border as the backend's sizes allow. Choosing touches no pixels; `place` and `Placement` do.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from PIL import Image

from media.pictures import Frame, to_array
from orchestrator.errors import BackendMisconfigured
from orchestrator.records import Box, Canvas, Capabilities, Size

_PAD_SHARE_MIN = 0.5  # unscaled pixels stay exact; but a canvas that is mostly border is rendered for nothing


def choose(size: Size, capabilities: Capabilities) -> Canvas:
    """The canvas on which this backend renders a picture of this size.

    Raises BackendMisconfigured when the backend's own limits leave no size at all.
    """
    if _allowed(size.width, size.height, capabilities):
        return _canvas(size.width, size.height, size, "identity")
    multiple = capabilities.size_multiple
    width = _round_up(max(size.width, capabilities.min_side), multiple)
    height = _round_up(max(size.height, capabilities.min_side), multiple)
    share = size.width * size.height / (width * height)
    if _allowed(width, height, capabilities) and share >= _PAD_SHARE_MIN:
        return _canvas(width, height, size, "pad")
    best = max(_scaled(size, capabilities), key=lambda canvas: _worth(canvas, size), default=None)
    if best is None:
        raise BackendMisconfigured(
            f"backend '{capabilities.name}' allows no frame size: sides {capabilities.min_side} to"
            f" {capabilities.max_side} in steps of {multiple}, at most {capabilities.max_pixels} pixels;"
            " correct its options"
        )
    return best


def _round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


def _allowed(width: int, height: int, capabilities: Capabilities) -> bool:
    sides_fit = all(
        side % capabilities.size_multiple == 0 and capabilities.min_side <= side <= capabilities.max_side
        for side in (width, height)
    )
    return sides_fit and width * height <= capabilities.max_pixels


def _scaled(size: Size, capabilities: Capabilities) -> Iterator[Canvas]:
    """For every width the backend has, the two heights that come nearest to the picture's shape."""
    multiple = capabilities.size_multiple
    first = _round_up(capabilities.min_side, multiple)
    for width in range(first, capabilities.max_side + 1, multiple):
        wanted = width * size.height // size.width
        below = max(first, wanted // multiple * multiple)
        for height in (below, below + multiple):
            if _allowed(width, height, capabilities):
                yield _fitted(width, height, size)
    lowest = range(first, capabilities.max_side + 1, multiple)
    if lowest and _allowed(first, first, capabilities):
        yield _fitted(first, first, size)


def _fitted(width: int, height: int, size: Size) -> Canvas:
    """The picture as large as it goes on this canvas, in whole pixels."""
    ratio = min(width / size.width, height / size.height)
    inner_width = min(width, max(1, round(size.width * ratio)))
    inner_height = min(height, max(1, round(size.height * ratio)))
    if (inner_width, inner_height) == (width, height):
        return _canvas(width, height, Size(width=width, height=height), "scale")
    return _canvas(width, height, Size(width=inner_width, height=inner_height), "scale_pad")


def _worth(canvas: Canvas, size: Size) -> tuple[float, float]:
    """Pixels of the picture that are kept, less what is spent on a border or on inventing pixels.

    A picture that must grow takes the smallest canvas that holds it; one that must shrink the largest.
    """
    inner = canvas.content.width * canvas.content.height
    outer = canvas.size.width * canvas.size.height
    own = size.width * size.height
    detail = min(inner, own) / own  # 1 = nothing lost
    cost = max(inner, own) / own  # 1 = nothing invented
    return detail * (inner / outer) / cost**0.5, -outer


def _canvas(width: int, height: int, inner: Size, fit: str) -> Canvas:
    return Canvas.model_validate(
        {
            "size": Size(width=width, height=height),
            "content": Box(
                left=(width - inner.width) // 2,
                top=(height - inner.height) // 2,
                width=inner.width,
                height=inner.height,
            ),
            "fit": fit,
        }
    )


def place(picture: Image.Image, canvas: Canvas) -> Frame:
    """The picture on the canvas, its edges replicated into the border: (H, W, 3) uint8 RGB."""
    content = canvas.content
    if picture.size != (content.width, content.height):
        picture = picture.resize((content.width, content.height), Image.Resampling.LANCZOS, reducing_gap=3.0)
    right = canvas.size.width - content.left - content.width
    below = canvas.size.height - content.top - content.height
    pixels = to_array(picture)
    if not (content.left or content.top or right or below):
        return pixels
    return np.pad(pixels, ((content.top, below), (content.left, right), (0, 0)), mode="edge")


def fit_frame(frame: Frame, size: Size) -> Frame:
    """A frame of another size stretched to `size`: (H, W, 3) uint8 RGB."""
    if frame.shape[:2] == (size.height, size.width):
        return frame
    image = Image.fromarray(np.ascontiguousarray(frame))
    return to_array(image.resize((size.width, size.height), Image.Resampling.BICUBIC))


def deliverable_size(size: Size, long_side_max: int) -> tuple[Size, tuple[str, ...]]:
    """The video's frame size for a picture of `size`, and what was adapted.

    H.264 with subsampled colour has even sides: an odd one gains a pixel. A cap scales to even sides.
    """
    longest = max(size.width, size.height)
    if longest > max(2, long_side_max):
        ratio = max(2, long_side_max) / longest
        width, height = (max(2, round(side * ratio / 2) * 2) for side in (size.width, size.height))
        note = f"scaled from {size} to {width}x{height}: the longer side is limited to {long_side_max} pixels"
        return Size(width=width, height=height), (note,)
    width, height = size.width + size.width % 2, size.height + size.height % 2
    if (width, height) == (size.width, size.height):
        return size, ()
    note = f"encoded at {width}x{height} for {size}: odd sides gained one replicated pixel"
    return Size(width=width, height=height), (note,)
