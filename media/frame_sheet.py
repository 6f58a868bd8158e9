"""One picture that holds several, each under its label: for models that take only a single image."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from PIL import Image, ImageDraw

from media.lettering import font, shorten
from media.pictures import Frame
from media.sheet_parts import CARD, EDGE, INK, PAPER, thumbnail

LABEL_PX = 26  # height of a label's line
GAP_PX = 10
LABEL_WIDTH_PX = 180  # that a label should have


@dataclass(frozen=True)
class Cell:
    """A picture and its label: `Frame 12 · 0.75 s`."""

    label: str
    frame: Frame


def frame_sheet(cells: Sequence[Cell], side_max: int) -> Image.Image:
    """All cells in reading order, on a sheet of at most `side_max` pixels a side.

    As many columns as make the pictures largest, but no larger than they are (tiny ones, whose labels would not
    fit, grow in whole steps); of these the most nearly square sheet. ValueError without a cell.
    """
    if not cells:
        raise ValueError("a sheet of nothing")
    tallest = max(cell.frame.shape[0] for cell in cells)
    widest = max(cell.frame.shape[1] for cell in cells)
    grid = max(
        (
            _Grid(count, math.ceil(len(cells) / count), widest, tallest, side_max)
            for count in range(1, len(cells) + 1)
        ),
        key=lambda grid: (grid.scale, -abs(math.log(grid.size[0] / grid.size[1]))),
    )
    width, height = grid.cell
    sheet = Image.new("RGB", grid.size, PAPER)
    for place, cell in enumerate(cells):
        left = GAP_PX + place % grid.columns * (width + GAP_PX)
        top = GAP_PX + place // grid.columns * (height + LABEL_PX + GAP_PX)
        _draw(sheet, (left, top), cell, (width, height))
    return sheet


@dataclass(frozen=True)
class _Grid:
    """So many columns and rows of pictures that are at most so large, on a sheet of at most so many pixels."""

    columns: int
    rows: int
    widest: int
    tallest: int
    side_max: int

    @property
    def scale(self) -> float:
        across = (self.side_max - GAP_PX) / self.columns - GAP_PX
        down = (self.side_max - GAP_PX) / self.rows - GAP_PX - LABEL_PX
        fits = max(0.0, min(across / self.widest, down / self.tallest))
        return min(fits, max(1.0, math.floor(min(fits, math.ceil(LABEL_WIDTH_PX / self.widest)))))

    @property
    def cell(self) -> tuple[int, int]:
        return max(1, int(self.widest * self.scale)), max(1, int(self.tallest * self.scale))

    @property
    def size(self) -> tuple[int, int]:
        width, height = self.cell
        return self.columns * (width + GAP_PX) + GAP_PX, self.rows * (height + LABEL_PX + GAP_PX) + GAP_PX


def _draw(sheet: Image.Image, corner: tuple[int, int], cell: Cell, size: tuple[int, int]) -> None:
    left, top = corner
    pen, face = ImageDraw.Draw(sheet), font(LABEL_PX - 8, "Semibold")
    pen.rectangle((left, top, left + size[0] - 1, top + LABEL_PX - 1), fill=CARD)
    pen.text((left + 4, top + 1), shorten(cell.label, face, size[0] - 8), font=face, fill=INK)
    below = top + LABEL_PX
    pen.rectangle((left - 1, below - 1, left + size[0], below + size[1]), outline=EDGE)
    picture = thumbnail(cell.frame, *size)
    sheet.paste(picture, (left, below))
