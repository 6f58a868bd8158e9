"""Cells of a grid picture that look alike: their tile's colour, what lies on it, its shape and size.

Knows no roles and no prompt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from worlds.grid import Cell, Lattice
from worlds.grid_lattice import CONTENT_LEVELS, Cells, find_cells
from worlds.grid_shapes import shape_of
from worlds.legend import RGB, contrast
from worlds.world import Frame

ALIKE_LEVELS = 30.0  # two cells whose most different places differ by less are one kind
TWIN_CONTRAST = 0.03
FULL_AREA = 0.65
RIM_AREA = 0.15
FILLING_AREA = 0.4
SMALL_PITCH_PX = 22
MOTTLED_AREA = 0.1
MOTTLED_CONTRAST = 0.08
MIXED_LEVELS = 40.0
FINE = 32  # samples per cell and axis for shapes
CONTENT_AREA_MIN = 0.025  # of the cell; less is noise or a line's rim


@dataclass(frozen=True)
class Kind:
    """Cells that look alike. `piece` is the colour of what lies on the tile; None where nothing does."""

    cells: tuple[Cell, ...]
    tile: RGB
    piece: RGB | None = None
    shape: str = ""  # of the piece
    area: float = 0.0  # of the piece, share of the cell
    second: RGB | None = None  # another colour of the piece: an outline, a mark

    @property
    def colour(self) -> RGB:
        """What a person would call its colour: the piece's, or the tile's."""
        return self.piece if self.piece is not None else self.tile

    @property
    def full(self) -> bool:
        """Whether the whole cell is one thing."""
        return self.piece is None or (self.shape == "square" and self.area > FULL_AREA)


@dataclass(frozen=True)
class Picture:
    """A grid picture: its lattice and its kinds of cells, the most frequent first."""

    lattice: Lattice
    kinds: tuple[Kind, ...]


def picture_of(frame: Frame) -> Picture | None:
    """A frame (H, W, 3) seen as a grid; None if it is none."""
    return _picture(frame.tobytes(), frame.shape[0], frame.shape[1])


@lru_cache(maxsize=4)
def _picture(data: bytes, height: int, width: int) -> Picture | None:
    frame = np.frombuffer(data, np.uint8).reshape(height, width, 3)
    cells = find_cells(frame)
    return None if cells is None else Picture(cells.lattice, kinds_of(frame, cells))


def kinds_of(frame: Frame, cells: Cells) -> tuple[Kind, ...]:
    """Group the cells by how they look."""
    lattice = cells.lattice
    order = list(lattice.cells())
    kinds = [
        _describe(frame, lattice, [order[index] for index in group], cells.tiles[group])
        for group in _groups(cells.patches)
    ]
    bare = [kind.tile for kind in kinds if kind.piece is None]
    kinds = [_unmixed(kind, bare, lattice.pitch) for kind in kinds]
    return tuple(sorted(_merged(kinds, lattice.pitch), key=lambda kind: -len(kind.cells)))


def _unmixed(kind: Kind, bare: list[RGB], pitch: float) -> Kind:
    """A tile that is a mixture of a bare tile and the piece is only the piece's blurred rim."""
    if kind.piece is not None and pitch < SMALL_PITCH_PX and contrast(kind.piece, kind.tile) < MOTTLED_CONTRAST:
        return replace(kind, piece=None, shape="", area=0.0, second=None)
    if kind.piece is None or not bare or min(contrast(kind.tile, tile) for tile in bare) < 2 * TWIN_CONTRAST:
        return kind
    if kind.area < RIM_AREA:
        return replace(kind, piece=None, shape="", area=0.0, second=None)
    filling = kind.shape == "square" and kind.area > FILLING_AREA
    if filling or (
        min(_off_line(kind.tile, kind.piece, tile) for tile in bare) < MIXED_LEVELS and kind.shape == "square"
    ):
        return replace(kind, tile=kind.piece, piece=None, shape="", area=0.0, second=None)
    return kind


def _off_line(colour: RGB, a: RGB, b: RGB) -> float:
    """How far a colour is, in levels, from the mixtures of two others."""
    point, start, end = (np.array(value, float) for value in (colour, a, b))
    way = end - start
    share = float(np.clip((point - start) @ way / max(1.0, float(way @ way)), 0, 1))
    return float(np.abs(start + share * way - point).max())


def _merged(kinds: list[Kind], pitch: float) -> list[Kind]:
    """One kind of those that differ only by how their cells meet the pixels."""
    merged: list[Kind] = []
    for kind in sorted(kinds, key=lambda kind: -len(kind.cells)):
        twin = next((i for i, other in enumerate(merged) if _twins(kind, other, pitch)), None)
        if twin is None:
            merged.append(kind)
        else:
            merged[twin] = replace(merged[twin], cells=tuple(sorted((*merged[twin].cells, *kind.cells))))
    return merged


def _twins(a: Kind, b: Kind, pitch: float) -> bool:
    tiles = contrast(a.tile, b.tile)
    if a.full and b.full and contrast(a.colour, b.colour) < TWIN_CONTRAST:
        return True
    if a.piece is None or b.piece is None:
        mottled = pitch < SMALL_PITCH_PX and max(a.area, b.area) < MOTTLED_AREA
        return tiles < (2 * TWIN_CONTRAST if mottled else TWIN_CONTRAST) and (a.piece is b.piece or mottled)
    if tiles > 2 * TWIN_CONTRAST or contrast(a.piece, b.piece) > TWIN_CONTRAST:
        return False
    slack = 0.25 if a.shape == b.shape or pitch < SMALL_PITCH_PX else 0.12
    return abs(a.area - b.area) < slack * max(a.area, b.area)


def _groups(patches: npt.NDArray[np.float32]) -> list[list[int]]:
    """Leader clustering on 7 × 7 means of every cell's inside."""
    inner = patches[:, 1:15, 1:15].reshape(-1, 7, 2, 7, 2, 3).mean(axis=(2, 4))
    left = np.arange(len(inner))
    groups: list[list[int]] = []
    while len(left):
        leader = inner[left[0]]
        gaps = np.abs(inner[left] - leader).max(axis=3).reshape(len(left), -1)
        gaps = np.sort(gaps, axis=1)[:, -5:].mean(axis=1)
        near = gaps < ALIKE_LEVELS
        middle = np.median(inner[left[near]], axis=0)
        gaps = np.sort(np.abs(inner[left] - middle).max(axis=3).reshape(len(left), -1), axis=1)[:, -5:].mean(
            axis=1
        )
        near |= gaps < ALIKE_LEVELS
        groups.append([int(index) for index in left[near]])
        left = left[~near]
    return groups


def _describe(frame: Frame, lattice: Lattice, cells: Sequence[Cell], tiles: npt.NDArray[np.float32]) -> Kind:
    tile = np.median(tiles, axis=0)
    fine = _fine(frame, lattice, cells[0]).astype(np.float32)
    gap = np.abs(fine - tile).max(axis=2)
    mask = gap > max(CONTENT_LEVELS, 0.4 * float(np.percentile(gap[3:-3, 3:-3], 98)))
    margin = max(1, int(np.ceil(1.2 / lattice.pitch * FINE)))
    mask[:margin], mask[-margin:], mask[:, :margin], mask[:, -margin:] = False, False, False, False
    _without_lines(mask, margin)
    if _is_rim(mask):
        inner = ~mask
        inner[:margin], inner[-margin:], inner[:, :margin], inner[:, -margin:] = False, False, False, False
        if float(mask.mean()) < 0.15:
            return Kind(tuple(cells), _rgb(tile))
        tile, mask = np.median(fine[mask], axis=0), inner
    area = float(mask.mean())
    if area < CONTENT_AREA_MIN:
        return Kind(tuple(cells), _rgb(tile))
    piece, second = _colours(fine[mask])
    return Kind(tuple(cells), _rgb(tile), piece, shape_of(mask), area, second)


def _without_lines(mask: npt.NDArray[np.bool_], margin: int) -> None:
    """Clear grid lines that reach into the cell: full at its side, gone two samples further in."""
    for _ in range(4):
        mask = np.rot90(mask)
        side, further = mask[margin], mask[margin + 2]
        if side.mean() > 0.6 and further.mean() < 0.5 * side.mean():
            mask[: margin + 2] = False


def _is_rim(mask: npt.NDArray[np.bool_]) -> bool:
    """Whether a mask only runs along the cell's sides: then its inside is the piece, not it."""
    middle = mask[FINE // 4 : -(FINE // 4), FINE // 4 : -(FINE // 4)]
    return bool(mask.any()) and float(middle.mean()) < 0.01


def _fine(frame: Frame, lattice: Lattice, cell: Cell) -> Frame:
    steps = (np.arange(FINE) + 0.5) / FINE
    y = np.clip((lattice.top + (cell[0] + steps) * lattice.pitch).astype(int), 0, frame.shape[0] - 1)
    x = np.clip((lattice.left + (cell[1] + steps) * lattice.pitch).astype(int), 0, frame.shape[1] - 1)
    return frame[np.ix_(y, x)]


def _colours(pixels: npt.NDArray[np.float32]) -> tuple[RGB, RGB | None]:
    """The most frequent colour of some pixels (n, 3), and the next one that is plainly another."""
    bins = (pixels // 32).astype(int) @ np.array([64, 8, 1])
    frequent = np.bincount(bins, minlength=512)
    first = np.median(pixels[bins == int(frequent.argmax())], axis=0)
    near = np.abs(pixels - first).max(axis=1) < 40
    first = np.median(pixels[near], axis=0)
    rest = pixels[np.abs(pixels - first).max(axis=1) > 70]
    if len(rest) < 0.15 * len(pixels):
        return _rgb(first), None
    return _rgb(first), _rgb(np.median(rest, axis=0))


def _rgb(value: npt.NDArray[np.floating]) -> RGB:
    red, green, blue = (round(float(channel)) for channel in value)
    return red, green, blue
