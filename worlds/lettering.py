"""Draws numbers in several hands: Pillow's own font (Aileron, CC0), plain and bold, and two stroke alphabets.

Nothing here depends on the fonts of the machine, so a look is the same everywhere.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

Lettering = Literal["plain", "bold", "rounded", "hand"]
LETTERINGS: tuple[Lettering, ...] = get_args(Lettering)
OVERSAMPLED = 4
Point = tuple[float, float]
Strokes = list[list[Point]]


def _arc(x: float, y: float, rx: float, ry: float, start: float, stop: float) -> list[Point]:
    """Points of an ellipse, degrees clockwise from the right."""
    steps = max(6, int(abs(stop - start) / 12))
    angles = [math.radians(start + (stop - start) * index / steps) for index in range(steps + 1)]
    return [(x + rx * math.cos(angle), y + ry * math.sin(angle)) for angle in angles]


# x 0 … 0.6, y 0 … 1 downwards
STROKES: dict[str, Strokes] = {
    "0": [_arc(0.3, 0.5, 0.28, 0.48, 0, 360)],
    "1": [[(0.1, 0.2), (0.34, 0.02), (0.34, 0.98)]],
    "2": [[*_arc(0.3, 0.28, 0.27, 0.26, 195, 380), (0.04, 0.98), (0.58, 0.98)]],
    "3": [[*_arc(0.28, 0.26, 0.25, 0.24, 205, 445)], [*_arc(0.28, 0.73, 0.29, 0.25, 275, 515)]],
    "4": [[(0.42, 0.98), (0.42, 0.02), (0.02, 0.68), (0.6, 0.68)]],
    "5": [[(0.52, 0.02), (0.12, 0.02), (0.07, 0.44), *_arc(0.28, 0.68, 0.29, 0.3, 230, 510)]],
    "6": [[(0.46, 0.03), *_arc(0.62, 0.62, 0.6, 0.5, 225, 180), *_arc(0.3, 0.69, 0.28, 0.29, 180, 540)]],
    "7": [[(0.03, 0.02), (0.57, 0.02), (0.2, 0.98)]],
    "8": [_arc(0.3, 0.26, 0.23, 0.24, 90, 450), _arc(0.3, 0.74, 0.28, 0.24, -90, 270)],
    "9": [[*_arc(0.3, 0.31, 0.28, 0.29, 0, 360), *_arc(-0.02, 0.38, 0.6, 0.5, 0, 45), (0.14, 0.97)]],
}


@lru_cache(maxsize=512)
def number(text: str, height_px: int, lettering: Lettering) -> npt.NDArray[np.float32]:
    """Ink of a number, digits `height_px` tall: (h, w) in 0 … 1, cut to its box."""
    tall = max(4, height_px) * OVERSAMPLED
    canvas = Image.new("L", (int(tall * (len(text) + 1)), tall * 2), 0)
    if lettering in ("rounded", "hand"):
        _strokes(canvas, text, tall, lettering == "hand")
    else:
        font = ImageFont.load_default(tall / 0.72)
        width = tall // 16 if lettering == "bold" else 0
        ImageDraw.Draw(canvas).text((tall // 2, tall // 3), text, fill=255, font=font, stroke_width=width)
    box = canvas.getbbox() or (0, 0, OVERSAMPLED, OVERSAMPLED)
    cut = canvas.crop(box)
    size = (max(1, round(cut.width / OVERSAMPLED)), max(1, round(cut.height / OVERSAMPLED)))
    return (np.asarray(cut.resize(size, Image.Resampling.BOX)) / 255).astype(np.float32)


def _strokes(canvas: Image.Image, text: str, tall: int, by_hand: bool) -> None:
    pen = ImageDraw.Draw(canvas)
    width = max(2, round(tall * (0.115 if by_hand else 0.14)))
    left = tall * 0.4
    for index, digit in enumerate(text):
        for stroke in STROKES[digit]:
            points = [_hand(x, y, index) if by_hand else (x, y) for x, y in stroke]
            places = [(left + x * tall, tall * 0.4 + y * tall) for x, y in points]
            pen.line(places, fill=255, width=width, joint="curve")
            for x, y in places:
                pen.ellipse((x - width / 2, y - width / 2, x + width / 2, y + width / 2), fill=255)
        left += tall * 0.86


def _hand(x: float, y: float, index: int) -> Point:
    """A slant and a slow waver, as a pen has."""
    waver = 0.018 * math.sin(7 * y + 3 * x + index)
    return x - 0.12 * (y - 0.5) + waver, y + 0.016 * math.sin(9 * x + 2 * index) + 0.02 * (index % 2)
