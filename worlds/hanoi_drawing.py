"""Draws towers in many looks. A look comes from its own seed and knows nothing of the task."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from PIL import Image, ImageDraw

from worlds.hanoi_rules import half_width, number
from worlds.world import Configuration, Frame, Look

Colour = tuple[int, int, int]
SMOOTH = 4


@dataclass(frozen=True)
class Palette:
    """Background, base and pegs, discs."""

    background: Colour
    wood: Colour
    discs: tuple[Colour, ...]


PALETTES = (
    Palette(
        (255, 255, 255),
        (139, 103, 72),
        ((231, 76, 60), (243, 176, 50), (46, 170, 110), (52, 122, 219), (150, 89, 190), (38, 60, 90)),
    ),
    Palette(
        (24, 27, 36),
        (92, 99, 120),
        ((255, 120, 100), (255, 200, 90), (110, 220, 160), (100, 170, 255), (190, 150, 255), (240, 240, 245)),
    ),
    Palette(
        (250, 244, 232),
        (110, 84, 62),
        ((198, 84, 58), (226, 160, 70), (120, 150, 90), (60, 120, 130), (70, 80, 130), (170, 100, 130)),
    ),
    Palette(
        (240, 245, 255),
        (70, 80, 110),
        ((255, 170, 190), (255, 214, 150), (150, 214, 180), (150, 190, 245), (190, 170, 235), (230, 120, 140)),
    ),
    Palette(
        (214, 230, 222),
        (52, 74, 66),
        ((240, 96, 72), (250, 206, 90), (30, 130, 120), (60, 100, 190), (250, 250, 246), (120, 60, 110)),
    ),
)


@dataclass(frozen=True)
class Style:
    """What a look decides; lengths as shares."""

    palette: Palette
    colours: tuple[int, ...]
    aspect: float
    roundness: float
    pole: float


@lru_cache(maxsize=64)
def style(seed: int) -> Style:
    """The style of a look, from its own stream."""
    rng = np.random.default_rng([seed, 3])
    return Style(
        PALETTES[int(rng.integers(len(PALETTES)))],
        tuple(int(index) for index in rng.permutation(6)),
        float(rng.choice([0.625, 0.75, 0.75, 1.0])),
        float(rng.choice([0.15, 0.3, 0.5])),
        float(rng.choice([0.16, 0.22, 0.3])),
    )


@dataclass(frozen=True)
class Measures:
    """Geometry in px: `unit` across, `pitch` per level, `gap` between discs, tops of base and poles."""

    height: int
    width: int
    unit: float
    left: float
    pitch: int
    gap: int
    base_top: int
    pole_top: int
    pole: int


def measures(count: int, look: Look, drawn: Style) -> Measures:
    """Whole pixels where things repeat, so that a disc looks the same everywhere."""
    width = look.side_px
    height = max(48, round(width * drawn.aspect))
    unit = width / 12.4
    base_top = round(0.9 * height)
    pitch = max(5, min(int(base_top / (count + 2.4)), int(0.95 * unit)))
    pole = 2 * max(1, round(drawn.pole * unit / 2))
    pole_top = base_top - round((count + 0.6) * pitch)
    return Measures(
        height, width, unit, (width - 8 * unit) / 2, pitch, max(1, pitch // 9), base_top, pole_top, pole
    )


def draw(count: int, configuration: Configuration, look: Look) -> Frame:
    """Base, pegs, discs: (H, W, 3) uint8; the longer side is `look.side_px`."""
    drawn = style(look.seed)
    at = measures(count, look, drawn)
    picture = _stand(count, look).copy()
    for name, (y, x) in configuration.items():
        disc = number(name)
        width = 2 * round(half_width(disc, count) * at.unit)
        pixels, alpha = _disc(
            width, at.pitch - at.gap, drawn.roundness, drawn.palette.discs[drawn.colours[disc - 1]]
        )
        top = at.base_top + round((y - 1) * at.pitch)
        left = round(at.left + x * at.unit) - width // 2
        _blend(picture, pixels, alpha, top, left)
    return picture


@lru_cache(maxsize=32)
def _stand(count: int, look: Look) -> Frame:
    drawn = style(look.seed)
    at = measures(count, look, drawn)
    picture = np.full((at.height, at.width, 3), drawn.palette.background, np.uint8)
    thick = max(3, round(0.035 * at.height))
    edge = round(0.25 * at.unit)
    picture[at.base_top : at.base_top + thick, edge : at.width - edge] = drawn.palette.wood
    for peg in range(3):
        left = round(at.left + 4 * peg * at.unit) - at.pole // 2
        picture[at.pole_top : at.base_top, left : left + at.pole] = drawn.palette.wood
    return picture


@lru_cache(maxsize=128)
def _disc(width: int, height: int, roundness: float, colour: Colour) -> tuple[Frame, Frame]:
    """(h, w, 3) pixels and (h, w, 1) alpha 0 … 255."""
    shape = Image.new("L", (width * SMOOTH, height * SMOOTH), 0)
    radius = round(roundness * height * SMOOTH)
    ImageDraw.Draw(shape).rounded_rectangle((0, 0, width * SMOOTH - 1, height * SMOOTH - 1), radius, fill=255)
    alpha = np.asarray(shape.resize((width, height), Image.Resampling.BOX))[:, :, None]
    return np.full((height, width, 3), colour, np.uint8), alpha


def _blend(picture: Frame, pixels: Frame, alpha: Frame, top: int, left: int) -> None:
    """Lay a disc on the picture in place; edges clip it."""
    first_row, first_col = max(0, -top), max(0, -left)
    view = picture[max(0, top) : max(0, top + pixels.shape[0]), max(0, left) : max(0, left + pixels.shape[1])]
    part = np.s_[first_row : first_row + view.shape[0], first_col : first_col + view.shape[1]]
    share = alpha[part].astype(np.uint16)
    view[:] = ((pixels[part] * share + view * (255 - share) + 127) // 255).astype(np.uint8)
