"""Draws sliding puzzles as others draw them: an independent generator, sharing no code with `worlds`.

`data/glyphs.png` holds the digits 0–9, one font a row, 64 px each: DejaVu Sans Bold, Sans, Serif, Sans Mono Bold
(Bitstream Vera licence); Liberation Sans, Sans Bold, Serif, Serif Bold, Mono; Carlito Bold, Caladea (OFL-1.1);
Open Sans, Roboto Medium (Apache-2.0); Lato Bold, Comic Neue Bold, Humor Sans, Noto Serif Bold (OFL-1.1); FreeSans
Bold (GPL-3 with font exception); URW Gothic Demi (AGPL-3 with font exception); Comfortaa Bold, Quicksand Bold,
Fira Code, Inconsolata (OFL-1.1); Purisa (GPL-2 with font exception).
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

Colour = tuple[int, int, int]
FONTS = 24
SMOOTH = 3
# background, tile, ink, line
COLOURS: tuple[tuple[Colour, Colour, Colour, Colour], ...] = (
    ((255, 255, 255), (76, 175, 80), (255, 255, 255), (51, 51, 51)),
    ((255, 255, 255), (156, 39, 176), (255, 255, 255), (51, 51, 51)),
    ((250, 250, 250), (255, 236, 179), (90, 60, 20), (120, 100, 60)),
    ((20, 20, 24), (60, 64, 80), (230, 230, 240), (100, 100, 120)),
    ((240, 235, 225), (222, 184, 135), (60, 30, 10), (101, 67, 33)),
    ((230, 240, 230), (200, 230, 201), (27, 94, 32), (76, 175, 80)),
    ((245, 245, 245), (244, 67, 54), (255, 255, 255), (80, 0, 0)),
    ((0, 0, 0), (255, 235, 59), (0, 0, 0), (255, 255, 255)),
    ((204, 204, 204), (128, 128, 128), (0, 0, 0), (60, 60, 60)),
)
SIZES = (128, 200, 256, 333, 512, 640, 1024)
BOARDS = ((2, 2), (3, 3), (4, 4), (3, 3), (4, 4), (5, 5), (3, 4), (2, 3))
STYLES = ("lined", "gaps", "touching", "bevel", "rainbow", "graded")


@dataclass(frozen=True)
class Puzzle:
    """A picture and the numbers that it shows, row-major, 0 is the blank."""

    frame: npt.NDArray[np.uint8]
    rows: int
    cols: int
    tiles: tuple[int, ...]


@cache
def _glyph(font: int, digit: int) -> Image.Image:
    with Image.open(Path(__file__).parent / "data" / "glyphs.png") as sheet:
        cut = sheet.convert("L").crop((digit * 64, font * 64, digit * 64 + 64, font * 64 + 64))
    return cut.crop(cut.getbbox())


def _ink(number: int, font: int, height: int) -> Image.Image:
    glyphs = [_glyph(font, int(digit)) for digit in str(number)]
    tall = max(glyph.height for glyph in glyphs)
    sheet = Image.new("L", (sum(glyph.width for glyph in glyphs) + 6 * (len(glyphs) - 1), tall), 0)
    left = 0
    for glyph in glyphs:
        sheet.paste(glyph, (left, (tall - glyph.height) // 2))
        left += glyph.width + 6
    return sheet.resize((max(1, round(sheet.width * height / tall)), height), Image.Resampling.BILINEAR)


def shuffled(rows: int, cols: int, rng: np.random.Generator) -> tuple[int, ...]:
    """A board some slides away from its order."""
    tiles, blank, before = [*range(1, rows * cols), 0], rows * cols - 1, -1
    for _ in range(int(rng.integers(2, 14))):
        row, col = divmod(blank, cols)
        near = [(row + 1, col), (row - 1, col), (row, col + 1), (row, col - 1)]
        cells = [r * cols + c for r, c in near if 0 <= r < rows and 0 <= c < cols and r * cols + c != before]
        other = cells[int(rng.integers(len(cells)))]
        tiles[blank], tiles[other] = tiles[other], 0
        blank, before = other, blank
    return tuple(tiles)


def draw(variant: int) -> Puzzle:
    """One of endlessly many looks; variants run through fonts, styles, sizes and boards at different paces."""
    rng = np.random.default_rng([variant, 9])
    rows, cols = BOARDS[variant % len(BOARDS)]
    size, style = SIZES[variant % len(SIZES)], STYLES[variant % len(STYLES)]
    if max(rows, cols) == 5:
        size = max(size, 200)
    background, tile, ink, line = COLOURS[variant % len(COLOURS)]
    tiles = shuffled(rows, cols, rng)
    margin = float(rng.choice([0.02, 0.05, 0.1])) * size
    cell = (size - 2 * margin) / max(rows, cols)
    gap = {"lined": 0.05, "gaps": 0.04, "bevel": 0.0, "touching": 0.0, "rainbow": 0.02, "graded": 0.03}[
        style
    ] * cell
    picture = Image.new(
        "RGB",
        (round((cell * cols + 2 * margin) * SMOOTH), round((cell * rows + 2 * margin) * SMOOTH)),
        background,
    )
    pen = ImageDraw.Draw(picture)
    thick = max(1, round(0.012 * cell)) * SMOOTH
    radius = float(rng.choice([0.0, 0.1])) * cell * SMOOTH if gap else 0.0
    digit = max(9, round(float(rng.choice([0.2, 0.32, 0.45])) * cell)) * SMOOTH
    dark_blank = bool(rng.random() < 0.4)
    for index, number in enumerate(tiles):
        top, left = ((margin + place * cell + gap) * SMOOTH for place in divmod(index, cols))
        side = (cell - 2 * gap) * SMOOTH - 1
        box = (left, top, left + side, top + side)
        colour = _face(style, number, tile)
        if number == 0:
            if dark_blank:
                pen.rounded_rectangle(box, radius, fill=(86, 88, 94))
            continue
        outline = line if style in ("lined", "touching") else None
        pen.rounded_rectangle(box, radius, fill=colour, outline=outline, width=thick)
        _dress(picture, style, box, colour)
        mark = _ink(number, variant % FONTS, digit)
        if mark.width > 0.8 * side:
            mark = mark.resize((int(0.8 * side), max(1, int(mark.height * 0.8 * side / mark.width))))
        at = (round(left + (side - mark.width) / 2), round(top + (side - mark.height) / 2))
        picture.paste((30, 30, 30) if style == "rainbow" else ink, (*at,), mark)
    if style == "lined":
        _grid(pen, rows, cols, margin * SMOOTH, cell * SMOOTH, line, thick)
    return Puzzle(np.asarray(_kept(picture, variant)), rows, cols, tiles)


def _face(style: str, number: int, tile: Colour) -> Colour:
    if style != "rainbow":
        return tile
    hues = ((235, 150, 130), (240, 200, 120), (170, 210, 140), (130, 190, 220), (200, 160, 220))
    return hues[number % len(hues)]


def _dress(picture: Image.Image, style: str, box: tuple[float, float, float, float], colour: Colour) -> None:
    """Bevelled edges or a graded face."""
    left, top, right, bottom = box
    pen = ImageDraw.Draw(picture)
    if style == "bevel":
        wide = max(SMOOTH, (right - left) * 0.04)
        light = tuple(min(255, value + 40) for value in colour)
        dark = tuple(max(0, value - 60) for value in colour)
        pen.rectangle((left, top, right, top + wide), fill=light)
        pen.rectangle((left, top, left + wide, bottom), fill=light)
        pen.rectangle((left, bottom - wide, right, bottom), fill=dark)
        pen.rectangle((right - wide, top, right, bottom), fill=dark)
    elif style == "graded":
        for row in range(int(top) + 1, int(bottom)):
            share = 1.0 - 0.18 * (row - top) / (bottom - top)
            pen.line((left, row, right, row), fill=tuple(int(value * share) for value in colour))


def _grid(
    pen: ImageDraw.ImageDraw, rows: int, cols: int, margin: float, cell: float, line: Colour, thick: int
) -> None:
    for row in range(rows + 1):
        pen.line((margin, margin + row * cell, margin + cols * cell, margin + row * cell), fill=line, width=thick)
    for col in range(cols + 1):
        pen.line((margin + col * cell, margin, margin + col * cell, margin + rows * cell), fill=line, width=thick)


def _kept(picture: Image.Image, variant: int) -> Image.Image:
    """At its own size; every third picture as a JPEG of quality 80 keeps it."""
    picture = picture.resize((picture.width // SMOOTH, picture.height // SMOOTH), Image.Resampling.BOX)
    if variant % 3:
        return picture
    packed = io.BytesIO()
    picture.save(packed, "JPEG", quality=80)
    return Image.open(packed).convert("RGB")
