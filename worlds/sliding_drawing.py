"""Draws sliding puzzles in many looks. A look comes from its own seed and knows nothing of the task."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from PIL import Image, ImageDraw

from worlds.lettering import LETTERINGS, Lettering, number
from worlds.world import Configuration, Frame, Look

Colour = tuple[int, int, int]
SMOOTH = 4  # tiles are drawn larger and reduced


@dataclass(frozen=True)
class Palette:
    """Background, board under the tiles, grid lines, and per tile its colour, border and number."""

    background: Colour
    board: Colour
    line: Colour
    tiles: tuple[Colour, ...]
    border: Colour
    ink: Colour


PALETTES = (
    Palette((255, 255, 255), (255, 255, 255), (70, 74, 82), ((74, 144, 226),), (40, 62, 92), (255, 255, 255)),
    Palette((250, 246, 238), (233, 222, 201), (176, 158, 128), ((199, 120, 62),), (120, 68, 30), (255, 247, 235)),
    Palette((24, 27, 36), (36, 41, 54), (66, 74, 94), ((88, 101, 242),), (130, 142, 255), (240, 243, 255)),
    Palette((246, 250, 247), (223, 236, 228), (150, 180, 163), ((167, 215, 186),), (96, 150, 118), (28, 66, 46)),
    Palette((253, 247, 250), (243, 226, 235), (196, 160, 178), ((246, 183, 206),), (190, 110, 145), (92, 30, 58)),
    Palette((18, 18, 18), (30, 30, 30), (58, 58, 58), ((214, 162, 60),), (255, 208, 112), (32, 22, 6)),
    Palette((240, 244, 248), (214, 223, 232), (140, 155, 170), ((52, 73, 94),), (24, 36, 48), (236, 240, 241)),
    Palette(
        (255, 253, 248),
        (238, 234, 226),
        (170, 164, 154),
        ((231, 111, 81), (244, 162, 97), (233, 196, 106), (42, 157, 143), (38, 110, 131)),
        (60, 56, 50),
        (24, 24, 28),
    ),
    Palette((236, 240, 252), (205, 214, 244), (130, 142, 190), ((255, 255, 255),), (98, 112, 170), (48, 58, 110)),
    Palette(
        (32, 38, 46),
        (46, 54, 66),
        (84, 96, 112),
        ((129, 178, 154), (224, 122, 95), (242, 204, 143), (154, 140, 196)),
        (20, 24, 30),
        (30, 32, 44),
    ),
)


@dataclass(frozen=True)
class Style:
    """Everything that a look decides; lengths as shares of a cell."""

    palette: Palette
    lettering: Lettering
    gap: float
    radius: float
    border: float
    line: float
    digit: float
    frame: float
    margin: float


def style(seed: int) -> Style:
    """The style of a look, from its own stream."""
    rng = np.random.default_rng([seed, 47])
    radius = float(rng.choice([0.0, 0.06, 0.12, 0.2]))
    return Style(
        palette=PALETTES[int(rng.integers(len(PALETTES)))],
        lettering=LETTERINGS[int(rng.integers(len(LETTERINGS)))],
        gap=float(rng.choice([0.03, 0.05, 0.09])),
        radius=radius,
        border=float(rng.choice([0.0, 0.012, 0.025])),
        line=float(rng.choice([0.0, 0.0, 0.008, 0.014])),
        digit=float(rng.choice([0.3, 0.36, 0.44])),
        frame=float(rng.choice([0.0, 0.05, 0.1])),
        margin=float(rng.choice([0.06, 0.15, 0.3])),
    )


@dataclass(frozen=True)
class Measures:
    """The picture's geometry in px: cell side, board corner, picture size, tile inset."""

    cell: int
    top: int
    left: int
    height: int
    width: int
    inset: int
    frame: int


def measures(rows: int, cols: int, look: Look, drawn: Style) -> Measures:
    """Whole pixels, so that a tile looks the same in every cell."""
    long = max(rows, cols)
    cell = max(8, int(look.side_px / (long + 2 * (drawn.margin + drawn.frame))))
    height = look.side_px if rows == long else cell * rows + (look.side_px - cell * long)
    width = look.side_px if cols == long else cell * cols + (look.side_px - cell * long)
    inset = max(1, round(drawn.gap * cell))
    return Measures(
        cell,
        (height - cell * rows) // 2,
        (width - cell * cols) // 2,
        height,
        width,
        inset,
        round(drawn.frame * cell),
    )


def draw(rows: int, cols: int, configuration: Configuration, look: Look) -> Frame:
    """The board with its tiles where the configuration has them: (H, W, 3) uint8."""
    drawn = style(look.seed)
    layout = measures(rows, cols, look, drawn)
    picture = _board(rows, cols, look).copy()
    for name, (row, col) in configuration.items():
        pixels, alpha = _tile(int(name.split("-")[1]), layout.cell - 2 * layout.inset, drawn)
        top = layout.top + layout.inset + round(row * layout.cell)
        left = layout.left + layout.inset + round(col * layout.cell)
        _blend(picture, pixels, alpha, top, left)
    return picture


def _blend(picture: Frame, pixels: Frame, alpha: Frame, top: int, left: int) -> None:
    """Lay a tile on the picture in place; `alpha`: (h, w, 1) 0 … 255. Edges clip it."""
    first_row, first_col = max(0, -top), max(0, -left)
    view = picture[max(0, top) : top + pixels.shape[0], max(0, left) : left + pixels.shape[1]]
    part = np.s_[first_row : first_row + view.shape[0], first_col : first_col + view.shape[1]]
    share = alpha[part].astype(np.uint16)
    view[:] = ((pixels[part] * share + view * (255 - share) + 127) // 255).astype(np.uint8)


@lru_cache(maxsize=32)
def _board(rows: int, cols: int, look: Look) -> Frame:
    """Background, frame, board and grid lines."""
    drawn = style(look.seed)
    at = measures(rows, cols, look, drawn)
    picture = np.full((at.height, at.width, 3), drawn.palette.background, np.uint8)
    bottom, right = at.top + rows * at.cell, at.left + cols * at.cell
    if at.frame:
        picture[at.top - at.frame : bottom + at.frame, at.left - at.frame : right + at.frame] = drawn.palette.line
    picture[at.top : bottom, at.left : right] = drawn.palette.board
    thick = round(drawn.line * at.cell) if drawn.line and at.inset >= 2 else 0
    if drawn.line and at.inset >= 2:
        thick = min(max(1, thick), at.inset - 1)
        for row in range(rows + 1):
            middle = at.top + row * at.cell
            picture[middle - thick // 2 : middle - thick // 2 + thick, at.left : right] = drawn.palette.line
        for col in range(cols + 1):
            middle = at.left + col * at.cell
            picture[at.top : bottom, middle - thick // 2 : middle - thick // 2 + thick] = drawn.palette.line
    return picture


@lru_cache(maxsize=256)
def _tile(label: int, side: int, drawn: Style) -> tuple[Frame, Frame]:
    """(side, side, 3) pixels and (side, side, 1) alpha of one tile."""
    large = side * SMOOTH
    radius = round(drawn.radius * large)
    shape = Image.new("L", (large, large), 0)
    ImageDraw.Draw(shape).rounded_rectangle((0, 0, large - 1, large - 1), radius, fill=255)
    face = Image.new("RGB", (large, large), drawn.palette.border)
    border = max(SMOOTH, round(drawn.border * large)) if drawn.border else 0
    colour = drawn.palette.tiles[label % len(drawn.palette.tiles)]
    ImageDraw.Draw(face).rounded_rectangle(
        (border, border, large - 1 - border, large - 1 - border), max(0, radius - border), fill=colour
    )
    size = (side, side)
    pixels = np.asarray(face.resize(size, Image.Resampling.BOX)).copy()
    ink = number(str(label), max(5, round(drawn.digit * side)), drawn.lettering)
    wide = min(1.0, 0.8 * side / ink.shape[1])
    if wide < 1:
        ink = number(str(label), max(5, int(drawn.digit * side * wide)), drawn.lettering)
    top, left = (side - ink.shape[0]) // 2, (side - ink.shape[1]) // 2
    view = pixels[top : top + ink.shape[0], left : left + ink.shape[1]]
    share = ink[: view.shape[0], : view.shape[1], None]
    view[:] = np.round(np.array(drawn.palette.ink) * share + view * (1 - share)).astype(np.uint8)
    alpha = np.asarray(shape.resize(size, Image.Resampling.BOX))[:, :, None]
    return pixels, alpha
