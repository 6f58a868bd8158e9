"""Draws circles in many looks. A look comes from its own seed and knows nothing of the task."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from worlds.circles_rules import FULL, UNIT, Circles
from worlds.world import Configuration, Frame, Look

Colour = tuple[int, int, int]


@dataclass(frozen=True)
class Palette:
    """Background, outline (or none), and named colours for the circles."""

    background: Colour
    outline: Colour | None
    circles: tuple[tuple[str, Colour], ...]


PALETTES = (
    Palette(
        (255, 255, 255),
        (40, 40, 46),
        (
            ("red", (235, 87, 87)),
            ("yellow", (250, 208, 72)),
            ("cyan", (86, 204, 222)),
            ("gray", (176, 180, 188)),
            ("blue", (66, 110, 230)),
            ("green", (76, 175, 100)),
            ("purple", (155, 90, 200)),
        ),
    ),
    Palette(
        (22, 26, 36),
        None,
        (
            ("coral", (255, 127, 96)),
            ("amber", (255, 193, 70)),
            ("mint", (140, 230, 190)),
            ("sky blue", (120, 190, 255)),
            ("lavender", (196, 176, 255)),
            ("pink", (255, 150, 190)),
            ("white", (240, 242, 246)),
        ),
    ),
    Palette(
        (250, 245, 236),
        None,
        (
            ("rust", (186, 84, 50)),
            ("mustard", (218, 165, 52)),
            ("sage", (132, 165, 126)),
            ("teal", (36, 122, 128)),
            ("navy", (44, 62, 96)),
            ("rose", (214, 120, 130)),
            ("brown", (122, 88, 66)),
        ),
    ),
    Palette(
        (243, 247, 255),
        (96, 108, 150),
        (
            ("pink", (255, 190, 206)),
            ("peach", (255, 214, 170)),
            ("lemon", (250, 240, 160)),
            ("mint", (180, 232, 200)),
            ("powder blue", (168, 208, 244)),
            ("lilac", (208, 188, 240)),
            ("silver", (200, 206, 218)),
        ),
    ),
    Palette(
        (226, 236, 228),
        (30, 56, 44),
        (
            ("orange", (242, 140, 56)),
            ("white", (252, 252, 250)),
            ("green", (64, 150, 90)),
            ("blue", (60, 100, 190)),
            ("red", (206, 60, 66)),
            ("gold", (232, 190, 60)),
            ("violet", (130, 90, 190)),
        ),
    ),
)


@dataclass(frozen=True)
class Style:
    """What a look decides: colours by rank, and the outline's share of a small radius."""

    background: Colour
    outline: Colour | None
    circles: tuple[tuple[str, Colour], ...]
    outline_lengths: float


@lru_cache(maxsize=64)
def style(seed: int, count: int) -> Style:
    """The style of a look for so many circles, from its own stream."""
    rng = np.random.default_rng([seed, 174])
    palette = PALETTES[int(rng.integers(len(PALETTES)))]
    order = rng.permutation(len(palette.circles))
    colours = tuple(palette.circles[int(order[rank % len(order)])] for rank in range(count))
    return Style(palette.background, palette.outline, colours, float(rng.choice([3.0, 5.0])))


def draw(state: Circles, configuration: Configuration, look: Look) -> Frame:
    """(H, W, 3) uint8; the longer side is `look.side_px`. Larger circles lie below smaller ones."""
    drawn = style(look.seed, len(state.radii))
    scale = look.side_px / FULL
    height, width = (max(1, round(side * scale)) for side in state.field)
    picture = np.full((height, width, 3), drawn.background, np.uint8)
    for name, (y, x) in configuration.items():
        rank = int(name.split("-")[1])
        radius = state.radii[rank - 1] * scale
        line = max(1.0, drawn.outline_lengths * scale) if drawn.outline else 0.0
        _disc(picture, y * UNIT * scale, x * UNIT * scale, radius, drawn.outline or drawn.circles[rank - 1][1])
        if line and radius > 3 * line:
            _disc(picture, y * UNIT * scale, x * UNIT * scale, radius - line, drawn.circles[rank - 1][1])
    return picture


def _disc(picture: Frame, y: float, x: float, radius: float, colour: Colour) -> None:
    """Paint a disc in place, its edge smooth."""
    top, left = max(0, int(y - radius) - 1), max(0, int(x - radius) - 1)
    view = picture[top : int(y + radius) + 2, left : int(x + radius) + 2]
    if view.size == 0:
        return
    share = _coverage(view.shape[0], view.shape[1], y - top, x - left, radius)[:, :, None]
    view[:] = np.round(np.array(colour) * share + view * (1 - share)).astype(np.uint8)


def _coverage(height: int, width: int, y: float, x: float, radius: float) -> npt.NDArray[np.float64]:
    """(height, width) share of each pixel that a disc covers, by its distance to the edge."""
    rows, cols = np.arange(height)[:, None] + 0.5, np.arange(width)[None, :] + 0.5
    return np.clip(radius - np.hypot(rows - y, cols - x) + 0.5, 0, 1)
