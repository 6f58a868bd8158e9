"""Finds a board of equal tiles in a picture: flat zones of one size whose centres lie on a lattice.

Knows no numbers. Works on lines, gaps, borders, rounded corners and any colours, as long as a tile's face is one
zone: pixels joined while neighbours differ by less than a tolerance.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from PIL import Image

from worlds import regions
from worlds.world import Frame, Mask

Floats = npt.NDArray[np.float64]

WORK_SIDE = 720  # px, zones are looked for at this size at most
TOLERANCES = (12, 24, 6)  # levels between neighbouring pixels of one zone
CELLS_MAX = 36
OFF_LATTICE = 0.06  # of a pitch: farther from its cell a tile is under way


@dataclass(frozen=True)
class Face:
    """The flat part of a tile: [top, bottom) x [left, right) in px."""

    top: float
    left: float
    bottom: float
    right: float

    @property
    def height(self) -> float:
        return self.bottom - self.top

    @property
    def width(self) -> float:
        return self.right - self.left

    @property
    def centre(self) -> tuple[float, float]:
        return ((self.top + self.bottom) / 2, (self.left + self.right) / 2)


@dataclass(frozen=True)
class Tiling:
    """Faces by (row, column); a stray lies between two cells. `origin` is the centre of cell (0, 0), px."""

    rows: int
    cols: int
    origin: tuple[float, float]
    pitch: tuple[float, float]  # px per row, per column
    faces: dict[tuple[int, int], Face]
    stray: tuple[tuple[float, float], Face] | None = None


def tilings(frame: Frame) -> Iterator[Tiling]:
    """Boards that the picture may show, likeliest first. `frame`: (H, W, 3) uint8."""
    factor = -(-max(frame.shape[:2]) // WORK_SIDE)
    small = np.asarray(Image.fromarray(frame).reduce(factor)) if factor > 1 else frame
    seen: set[tuple[int, int, int, int]] = set()
    patchy: list[tuple[int, Tiling]] = []
    for tolerance in TOLERANCES:
        for group in _groups(zones(small, tolerance)):
            for missing, found in _fit(group):
                key = (found.rows, found.cols, round(found.origin[0]) // 4, round(found.origin[1]) // 4)
                if missing > 1:
                    patchy.append((missing, found))
                elif key not in seen:
                    seen.add(key)
                    yield _scaled(found, factor)
    for _, found in sorted(patchy, key=lambda pair: pair[0])[:3]:
        yield _scaled(_completed(found), factor)


def zones(picture: Frame, tolerance: int) -> list[Face]:
    """Flat zones that may be tile faces: neither tiny nor huge, not too long, mostly filled."""
    height, width = picture.shape[:2]
    labels, areas = regions.only(*regions.flat(picture, tolerance), max(24, 0.0008 * height * width))
    found: list[Face] = []
    for area, (top, left, bottom, right) in zip(areas, regions.boxes(labels, len(areas)), strict=True):
        tall, wide = bottom - top, right - left
        boxy = area >= 0.45 * tall * wide and 0.4 < tall / wide < 2.5
        if boxy and min(tall, wide) >= 7 and tall < 0.62 * height and wide < 0.62 * width:
            found.append(Face(top, left, bottom, right))
    return found


def _groups(faces: Sequence[Face]) -> list[list[Face]]:
    """Sets of at least three zones of one size, the most populous first."""
    groups: dict[tuple[int, ...], list[Face]] = {}
    for seed in faces:
        slack = (max(2.0, 0.07 * seed.height), max(2.0, 0.07 * seed.width))
        members = [
            index
            for index, face in enumerate(faces)
            if abs(face.height - seed.height) <= slack[0] and abs(face.width - seed.width) <= slack[1]
        ]
        if 3 <= len(members) <= CELLS_MAX:
            groups[tuple(members)] = [faces[index] for index in members]
    return sorted(groups.values(), key=lambda group: (-len(group), -group[0].height * group[0].width))


def _fit(group: Sequence[Face]) -> list[tuple[int, Tiling]]:
    """Lattices that hold the whole group but for one tile under way, with their empty cells; at most two."""
    centres = np.array([face.centre for face in group])
    sizes = np.median([(face.height, face.width) for face in group], axis=0)
    axes = [_axis_candidates(centres[:, axis], float(sizes[axis])) for axis in (0, 1)]
    found: list[tuple[int, Tiling]] = []
    for (y0, dy), (x0, dx) in itertools.product(*axes):
        tiling = _place(group, (y0, x0), (dy, dx))
        if tiling is not None:
            missing = tiling.rows * tiling.cols - len(tiling.faces) - (tiling.stray is not None)
            if missing <= 0.4 * tiling.rows * tiling.cols:
                found.append((missing, tiling))
    return sorted(found, key=lambda pair: (pair[0], pair[1].stray is not None))[:2]


def _completed(tiling: Tiling) -> Tiling:
    """With a face of the common size in every cell where none was seen."""
    faces = dict(tiling.faces)
    height = float(np.median([face.height for face in faces.values()]))
    width = float(np.median([face.width for face in faces.values()]))
    taken = {*faces, *(_between(tiling.stray[0]) if tiling.stray else [])}
    for row, col in itertools.product(range(tiling.rows), range(tiling.cols)):
        if (row, col) not in taken:
            y = tiling.origin[0] + row * tiling.pitch[0]
            x = tiling.origin[1] + col * tiling.pitch[1]
            faces[row, col] = Face(y - height / 2, x - width / 2, y + height / 2, x + width / 2)
    return replace(tiling, faces=faces)


def _axis_candidates(values: Floats, size: float) -> list[tuple[float, float]]:
    """(origin, pitch) along one axis that put most values on whole places."""
    ordered = np.sort(values)
    starts = np.flatnonzero(np.diff(ordered, prepend=-np.inf) > max(2.0, 0.06 * size))
    places, weights = _clusters(ordered, starts)
    scored: dict[tuple[int, int], tuple[int, float, float]] = {}
    for first, second in itertools.combinations(range(len(places)), 2):
        for steps in range(1, 7):
            pitch = (places[second] - places[first]) / steps
            if not 0.97 * size <= pitch <= 2.2 * size:
                continue
            offsets: Floats = (places - places[first]) / pitch
            whole: Floats = np.round(offsets)
            fits: Mask = np.abs(offsets - whole) < OFF_LATTICE
            if weights[~fits].sum() > 1:
                continue
            slope, origin = regions.line(whole[fits], places[fits], weights[fits])
            lowest = min([float(place) for place in whole[fits]] + [float(np.floor(o)) for o in offsets[~fits]])
            start = origin + lowest * slope
            scored[(round(start / 2), round(slope / 2))] = (int(weights[fits].sum()), start, slope)
    best = sorted(scored.values(), reverse=True)[:3]
    return [(start, slope) for _, start, slope in best]


def _clusters(ordered: Floats, starts: npt.NDArray[np.int64]) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Means and sizes of the runs of sorted values that begin at `starts`."""
    sizes = np.diff(np.append(starts, len(ordered)))
    return np.add.reduceat(ordered, starts) / sizes, sizes


def _place(group: Sequence[Face], origin: tuple[float, float], pitch: tuple[float, float]) -> Tiling | None:
    faces: dict[tuple[int, int], Face] = {}
    stray: tuple[tuple[float, float], Face] | None = None
    for face in group:
        row = (face.centre[0] - origin[0]) / pitch[0]
        col = (face.centre[1] - origin[1]) / pitch[1]
        cell = (round(row), round(col))
        off = (abs(row - cell[0]), abs(col - cell[1]))
        if max(off) < OFF_LATTICE and cell not in faces:
            faces[cell] = face
        elif stray is None and min(off) < OFF_LATTICE:
            stray = ((row, float(cell[1])) if off[0] > off[1] else (float(cell[0]), col), face)
        else:
            return None
    places = [*faces, *([] if stray is None else _between(stray[0]))]
    rows, cols = 1 + max(row for row, _ in places), 1 + max(col for _, col in places)
    inside = min(row for row, _ in places) >= 0 and min(col for _, col in places) >= 0
    if not inside or rows < 2 or cols < 2 or rows * cols > CELLS_MAX:
        return None
    for cell in _between(stray[0]) if stray is not None else []:
        faces.pop(cell, None)  # what is left to see of the blank
    return Tiling(rows, cols, origin, pitch, faces, stray)


def _between(place: tuple[float, float]) -> list[tuple[int, int]]:
    """The two cells that a stray lies between."""
    low = (int(np.floor(place[0])), int(np.floor(place[1])))
    return [low, (int(np.ceil(place[0])), int(np.ceil(place[1])))]


def _scaled(tiling: Tiling, factor: int) -> Tiling:
    def grown(face: Face) -> Face:
        return Face(face.top * factor, face.left * factor, face.bottom * factor, face.right * factor)

    stray = None if tiling.stray is None else (tiling.stray[0], grown(tiling.stray[1]))
    return Tiling(
        tiling.rows,
        tiling.cols,
        (tiling.origin[0] * factor, tiling.origin[1] * factor),
        (tiling.pitch[0] * factor, tiling.pitch[1] * factor),
        {cell: grown(face) for cell, face in tiling.faces.items()},
        stray,
    )
