"""Finds a base with three pegs, and bars of other colours around it. Knows no rules."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from worlds import regions
from worlds.world import Frame, Mask

Floats = npt.NDArray[np.float64]
APART = 24  # levels between what is drawn and the background
LIKE = 30  # levels within one colour
RIM = 2  # px beside a disc's box where its round ends may blend


@dataclass(frozen=True)
class Bar:
    """A disc seen from the side: its box in px and its colour, (3,) levels."""

    top: int
    left: int
    bottom: int
    right: int
    colour: Floats

    @property
    def width(self) -> int:
        return self.right - self.left

    @property
    def height(self) -> int:
        return self.bottom - self.top


@dataclass(frozen=True)
class Stand:
    """Base and pegs in px."""

    base_top: int
    base_left: int
    base_right: int
    pole_top: int
    poles: tuple[tuple[int, int], ...]  # left and right edge of each
    colour: Floats

    def across(self, x: float) -> float:
        """Pixel of a place from peg to peg: 0, 1, 2 are the pegs' centres."""
        centres = [(one + other) / 2 for one, other in self.poles]
        low = 0 if x < 1 else 1
        return centres[low] + (x - low) * (centres[low + 1] - centres[low])

    def place(self, pixel: float) -> float:
        """The inverse of `across`."""
        centres = [(one + other) / 2 for one, other in self.poles]
        low = 0 if pixel < centres[1] else 1
        return low + (pixel - centres[low]) / (centres[low + 1] - centres[low])


def stand_of(frame: Frame, background: Floats) -> Stand | None:
    """The widest bar low in the picture, and three thin bars of its colour that rise from it."""
    height = frame.shape[0]
    drawn = np.abs(frame.astype(np.int16) - background).max(axis=2) > APART
    ends = np.argmax(drawn[:, ::-1], axis=1) + np.argmax(drawn, axis=1)
    one_run = drawn.sum(axis=1) >= 0.98 * (drawn.shape[1] - ends)
    full = np.flatnonzero((drawn.mean(axis=1) > 0.6) & one_run)
    full = full[full > 0.5 * height]
    if full.size == 0 or full.size > 0.2 * height or int(full[-1]) - int(full[0]) + 1 != full.size:
        return None
    base_top = int(full[0])
    across = np.flatnonzero(drawn[int(full[full.size // 2])])
    base = frame[int(full[0]) : int(full[-1]) + 1, int(across[0]) : int(across[-1]) + 1].reshape(-1, 3)
    colour = np.median(base, axis=0)
    if float((np.abs(base - colour).max(axis=1) < LIKE).mean()) < 0.85:
        return None
    away = np.abs(frame[:base_top].astype(np.int16) - colour).max(axis=2)
    for like in (LIKE, 2 * LIKE):  # thin pegs lose colour in compressed pictures
        rows = np.flatnonzero((away < like).any(axis=1))
        middle = (int(across[0]) + int(across[-1]) + 1) / 2
        for top in rows[:: max(1, height // 400)][:200]:  # a disc in the air may blend into wood above the tips
            poles = _poles(away < like, int(top), middle)
            if poles is not None:
                return Stand(base_top, int(across[0]), int(across[-1]) + 1, int(top), poles, colour)
    return None


def _poles(wood: Mask, top: int, middle: float) -> tuple[tuple[int, int], ...] | None:
    """Edges of the three pegs, by their tips; one tip may be hidden: the middle peg stands in the middle."""
    tips = wood[top : top + 2].all(axis=0)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], tips, [False]]).astype(np.int8)))
    runs = [(int(one), int(other)) for one, other in zip(edges[::2], edges[1::2], strict=True)]
    if not 2 <= len(runs) <= 3 or max(other - one for one, other in runs) > 0.12 * wood.shape[1]:
        return None
    if max(other - one for one, other in runs) - min(other - one for one, other in runs) > 2:
        return None
    if len(runs) == 2:
        offsets = [(one + other) / 2 - middle for one, other in runs]
        size = runs[0][1] - runs[0][0]
        far = max(abs(offset) for offset in offsets)
        wanted = [middle - far, middle, middle + far]
        missing = max(wanted, key=lambda x: min(abs(x - middle - offset) for offset in offsets))
        runs = sorted([*runs, _near(wood, missing, size)])
    centres = [(one + other) / 2 for one, other in runs]
    even = abs(centres[1] - centres[0] - centres[2] + centres[1]) <= 3
    return tuple(runs) if even and abs(centres[1] - middle) <= 3 + 0.02 * wood.shape[1] else None


def _near(wood: Mask, middle: float, size: int) -> tuple[int, int]:
    """Edges of a peg whose tip is hidden: where wood stands upright near `middle`, else just there."""
    start = round(middle - size / 2)
    upright = wood[:, max(0, start - 3) : start + size + 3].sum(axis=0)
    tall = np.flatnonzero(upright > 0.6 * max(2, int(upright.max())))
    if tall.size != size or int(tall[-1]) - int(tall[0]) + 1 != size:
        return start, start + size
    return max(0, start - 3) + int(tall[0]), max(0, start - 3) + int(tall[0]) + size


def bars(frame: Frame, background: Floats, stand: Stand) -> list[Bar] | None:
    """Every bar above the base that is neither background nor wood, of one height and different widths."""
    for tolerance in (16, 28, 10):
        found = _bars(frame, background, stand, tolerance)
        heights, widths = [bar.height for bar in found], sorted(bar.width for bar in found)
        if found and max(heights) - min(heights) <= 2 and all(a < b for a, b in itertools.pairwise(widths)):
            return found
    return None


def _bars(frame: Frame, background: Floats, stand: Stand, tolerance: int) -> list[Bar]:
    """Long flat zones; none if a zone that is no fringe is no bar."""
    above = frame[: stand.base_top].astype(np.int16)
    drawn = np.abs(above - background).max(axis=2) > APART
    wood = np.abs(above - stand.colour).max(axis=2) < LIKE
    labels, count = regions.flat(frame[: stand.base_top], tolerance)
    labels = np.where(drawn & ~wood, labels, 0).astype(np.int32)
    labels, areas = regions.only(labels, count, 0.0012 * frame.shape[0] * frame.shape[1])
    found: list[Bar] = []
    for index, (area, box) in enumerate(zip(areas, regions.boxes(labels, len(areas)), strict=True), start=1):
        top, left, bottom, right = box
        if area < 0.25 * max(areas):
            continue
        if area < 0.72 * (bottom - top) * (right - left) or right - left < 1.2 * (bottom - top):
            return []
        colour = np.median(frame[: stand.base_top][labels == index], axis=0)
        found.append(_whole(frame, Bar(top, left, bottom, right, colour)))
    return found


def _whole(frame: Frame, bar: Bar) -> Bar:
    """The box with edges where at least half of a row or column has the colour."""
    top, left = max(0, bar.top - 2), max(0, bar.left - 2)
    window = frame[top : bar.bottom + 2, left : bar.right + 2].astype(np.int16)
    same = np.abs(window - bar.colour).max(axis=2) < LIKE
    rows = np.flatnonzero(same.sum(axis=1) >= 0.5 * bar.width)
    cols = np.flatnonzero(same.sum(axis=0) >= 0.4 * bar.height)
    if rows.size == 0 or cols.size == 0:
        return bar
    return Bar(
        top + int(rows[0]), left + int(cols[0]), top + int(rows[-1]) + 1, left + int(cols[-1]) + 1, bar.colour
    )


def bare(frame: Frame, background: Floats, stand: Stand, discs: Sequence[Bar]) -> Frame:
    """The frame without discs: background, and pegs of one colour from their tips down to the base."""
    clean = frame.copy()
    for disc in discs:
        rows = slice(max(0, disc.top - 1), min(stand.base_top, disc.bottom + 1))
        box = (rows, slice(max(0, disc.left - RIM), disc.right + RIM))
        clean[box] = np.round(background).astype(np.uint8)
    for left, right in stand.poles:
        clean[stand.pole_top : stand.base_top, left:right] = np.round(stand.colour).astype(np.uint8)
    return clean
