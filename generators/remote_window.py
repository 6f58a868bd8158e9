"""A canvas inside a frame of a size that a vendor renders: into it and out again, never stretched.

`pad`: the canvas as large as it goes in the middle of the frame, the rest filled; the fill is cut off again.
`crop`: the middle of the canvas fills the frame; around it the start picture stands still in every frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from PIL import Image

from media.pictures import Frame, to_array
from orchestrator.errors import BackendFailed
from orchestrator.records import Box, Size

Aspect: TypeAlias = Literal["pad", "crop"]
Fill: TypeAlias = Literal["edge", "black", "white", "grey"]
_LEVELS = {"black": 0, "white": 255, "grey": 128}
_SAME_SHAPE = 0.02  # of the ratio of the sides: 854x480 is 16:9, rounded to whole pixels


@dataclass(frozen=True)
class Window:
    """How a canvas lies in a frame: `canvas` is what is shown of the canvas, `frame` where that lies."""

    canvas_size: Size
    frame_size: Size
    canvas: Box
    frame: Box

    def picture(self, start: Frame, fill: Fill) -> Frame:
        """The start picture as the vendor is given it: (H, W, 3) uint8 RGB of the frame's size."""
        shown = _resized(_cut(start, self.canvas), self.frame.width, self.frame.height)
        above, left = self.frame.top, self.frame.left
        below = self.frame_size.height - above - self.frame.height
        right = self.frame_size.width - left - self.frame.width
        around = ((above, below), (left, right), (0, 0))
        if fill == "edge":
            return np.pad(shown, around, mode="edge")
        return np.pad(shown, around, mode="constant", constant_values=_LEVELS[fill])

    def canvas_frame(self, rendered: Frame, start: Frame) -> Frame:
        """A rendered frame on the canvas: (H, W, 3) uint8 RGB. It may be smaller or larger than it was asked for.

        Raises BackendFailed for one of another shape.
        """
        height, width = rendered.shape[:2]
        require_shape(Size(width=width, height=height), self.frame_size)
        across, down = width / self.frame_size.width, height / self.frame_size.height
        box = self.frame
        edges = (
            *(box.left * across, box.top * down),
            *((box.left + box.width) * across, (box.top + box.height) * down),
        )
        shown = _resized(rendered, self.canvas.width, self.canvas.height, edges)
        if (self.canvas.width, self.canvas.height) == (self.canvas_size.width, self.canvas_size.height):
            return shown
        whole = start.copy()
        top, left = self.canvas.top, self.canvas.left
        whole[top : top + self.canvas.height, left : left + self.canvas.width] = shown
        return whole


def window(canvas: Size, frames: Sequence[Size], aspect: Aspect) -> Window:
    """The frame, of those that a vendor renders, that shows most of the canvas, and how it lies there."""
    made = [_padded(canvas, frame) if aspect == "pad" else _cropped(canvas, frame) for frame in frames]
    return max(made, key=lambda one: _share(one.canvas, canvas) * _share(one.frame, one.frame_size))


def require_shape(rendered: Size, wanted: Size, tolerance: float = _SAME_SHAPE) -> None:
    """Raise BackendFailed where the sides are in another ratio: to stretch it would spoil every later clip."""
    ratio = rendered.width * wanted.height / (rendered.height * wanted.width)
    if abs(ratio - 1) > tolerance:
        raise BackendFailed(
            f"the video that came back is {rendered}, asked for was {wanted}, a frame of another shape: it is not"
            " stretched, so it cannot be used"
        )


def _padded(canvas: Size, frame: Size) -> Window:
    ratio = min(frame.width / canvas.width, frame.height / canvas.height)
    inner = Size(
        width=max(1, min(frame.width, round(canvas.width * ratio))),
        height=max(1, min(frame.height, round(canvas.height * ratio))),
    )
    return Window(canvas, frame, _middle(canvas, canvas), _middle(inner, frame))


def _cropped(canvas: Size, frame: Size) -> Window:
    ratio = min(canvas.width / frame.width, canvas.height / frame.height)
    inner = Size(
        width=max(1, min(canvas.width, round(frame.width * ratio))),
        height=max(1, min(canvas.height, round(frame.height * ratio))),
    )
    return Window(canvas, frame, _middle(inner, canvas), _middle(frame, frame))


def _middle(inner: Size, outer: Size) -> Box:
    return Box(
        left=(outer.width - inner.width) // 2,
        top=(outer.height - inner.height) // 2,
        width=inner.width,
        height=inner.height,
    )


def _share(box: Box, size: Size) -> float:
    return box.width * box.height / (size.width * size.height)


def _cut(frame: Frame, box: Box) -> Frame:
    return frame[box.top : box.top + box.height, box.left : box.left + box.width]


def _resized(
    frame: Frame, width: int, height: int, edges: tuple[float, float, float, float] | None = None
) -> Frame:
    """What lies within the edges (left, top, right, bottom), at that size."""
    if frame.shape[:2] == (height, width) and edges in (None, (0, 0, width, height)):
        return frame
    image = Image.fromarray(np.ascontiguousarray(frame))
    return to_array(image.resize((width, height), Image.Resampling.LANCZOS, box=edges))
