"""One sliding puzzle picture, understood: finds its tiles again in later frames, without reading numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from worlds import regions
from worlds.sliding_layout import Layout, window
from worlds.sliding_rules import RESTING, Board, Legend, piece
from worlds.world import Frame, Position, Reading, Sprite

if TYPE_CHECKING:
    from worlds.sliding_puzzle import SlidingPuzzle

SAME = 0.6  # correlation of ink from which a tile is recognised
ALIGNED = 0.9  # below it a recognised tile may be off its cell
COLLAPSED = 0.5  # share of tiles lost from which the scene is gone
Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Probe:
    """Where tiles are compared: `rows`, `cols` (m,) px in the box; `inks` (tiles, m, 3) centred, unit length."""

    rows: Ints
    cols: Ints
    values: Floats  # (tiles, m, 3), as in the reference

    @cached_property
    def inks(self) -> Floats:
        """Centred per channel and scaled to unit length: (tiles, m * 3)."""
        return _centred(self.values)[0]


@dataclass(frozen=True)
class SlidingScene:
    """Implements `worlds.world.Scene`. `start` is the reference's own reading."""

    world: SlidingPuzzle
    legend: Legend
    start: Reading
    reference: Frame
    layout: Layout

    @cached_property
    def numbers(self) -> list[int]:
        """The tiles, rising."""
        return sorted(self.layout.sprites)

    @cached_property
    def glyphs(self) -> Probe:
        """The part of the box where numbers stand."""
        stack = np.stack([self.layout.sprites[number] for number in self.numbers]).astype(np.float32)
        height, width = stack.shape[1:3]
        inset = (max(1, height // 10), max(1, width // 10))
        inner = stack[:, inset[0] : height - inset[0], inset[1] : width - inset[1]]
        face = np.median(inner.reshape(len(stack), -1, 3), axis=1)[:, None, None]
        marked = (np.abs(inner - face).max(axis=3) > 24).any(axis=0)
        rows, cols = np.flatnonzero(marked.any(axis=1)), np.flatnonzero(marked.any(axis=0))
        box = (
            (rows[0], rows[-1] + 1, cols[0], cols[-1] + 1)
            if rows.size
            else (0, inner.shape[1], 0, inner.shape[2])
        )
        row_points = _spread(int(box[0]) + inset[0], int(box[1]) + inset[0], 22)
        col_points = _spread(int(box[2]) + inset[1], int(box[3]) + inset[1], 22)
        grid_rows, grid_cols = np.meshgrid(row_points, col_points, indexing="ij")
        return Probe(grid_rows.ravel(), grid_cols.ravel(), stack[:, grid_rows.ravel(), grid_cols.ravel()])

    @cached_property
    def edges(self) -> Probe:
        """Points along the four sides of the box, in that order: top, bottom, left, right."""
        stack = np.stack([self.layout.sprites[number] for number in self.numbers]).astype(np.float32)
        height, width = stack.shape[1:3]
        along_rows, along_cols = (
            _spread(height // 6, height - height // 6, 12),
            _spread(width // 6, width - width // 6, 12),
        )
        rows = [np.zeros(12, np.int64), np.full(12, height - 1), _fit(along_rows), _fit(along_rows)]
        cols = [_fit(along_cols), _fit(along_cols), np.zeros(12, np.int64), np.full(12, width - 1)]
        all_rows, all_cols = np.concatenate(rows), np.concatenate(cols)
        return Probe(all_rows, all_cols, stack[:, all_rows, all_cols])

    @cached_property
    def edge_contrast(self) -> Floats:
        """(4,) levels by which each side differs from the floor."""
        floor = self.layout.floor[self.edges.rows, self.edges.cols].astype(np.float32)
        return np.abs(self.edges.values - floor).max(axis=2).reshape(len(self.numbers), 4, 12).mean(axis=(0, 2))

    @cached_property
    def cells(self) -> list[tuple[int, int]]:
        """Every cell, row by row."""
        board: Board = self.start.state
        return [(row, col) for row in range(board.rows) for col in range(board.cols)]

    def pixel(self, position: Position) -> tuple[int, int]:
        """(top, left) px of a tile's box."""
        return self.layout.pixel(position)

    def read(self, frame: Frame) -> Reading | None:
        """Find every tile: by its ink in the cells, then between them."""
        if frame.shape != self.reference.shape or frame.dtype != np.uint8:
            return None
        corners = np.array([self.pixel((float(r), float(c))) for r, c in self.cells])
        likeness = self._likeness(frame, corners)
        # to the fourth: one exact fit outweighs two that look alike (an 8 and a 9 that is just off its cell)
        pairs = regions.assign(-(np.maximum(likeness, 0) ** 4))
        found = {tile: cell for cell, tile in pairs if likeness[cell, tile] >= SAME}
        if len(found) < max(1.0, COLLAPSED * len(self.numbers)):
            return None
        tint = self._tint(frame, corners, found)
        places: dict[int, Position] = {}
        for tile in range(len(self.numbers)):
            cell = found.get(tile)
            if cell is not None and not self._is_off(
                frame, corners[cell], tile, tint, float(likeness[cell, tile])
            ):
                places[tile] = (float(self.cells[cell][0]), float(self.cells[cell][1]))
        free = set(self.cells) - {(int(row), int(col)) for row, col in places.values()}
        for tile in sorted(set(range(len(self.numbers))) - set(places)):
            near = self.cells[found[tile]] if tile in found else None
            seen = self._locate(frame, tile, tint, near, free)
            if seen is None and near is not None:
                seen = (float(near[0]), float(near[1]))
            if seen is not None:
                places[tile] = seen
        sure = float(np.mean([likeness[cell, tile] for tile, cell in found.items()]))
        named = {self.numbers[tile]: place for tile, place in places.items()}
        missing = [number for number in self.numbers if number not in named]
        beneath = self._beneath(frame, tint, missing[0], named) if len(missing) == 1 else None
        return self._reading(named, beneath, sure)

    def _likeness(self, frame: Frame, corners: Ints) -> Floats:
        """(cells, tiles) correlation of inks; on small tiles a pixel or two aside counts too."""
        reach = 2 if min(self.layout.height, self.layout.width) < 48 else 0
        shifts = [(0, 0)] + [(y, x) for d in range(1, reach + 1) for y, x in ((d, 0), (-d, 0), (0, d), (0, -d))]
        alike = [
            _centred(self._look(frame, self.glyphs, corners + np.array(s)))[0] @ self.glyphs.inks.T
            for s in shifts
        ]
        return np.max(alike, axis=0)

    def _look(self, frame: Frame, probe: Probe, corners: Ints) -> Floats:
        """(n, m, 3) the frame at the probe's points, the box standing at each corner (top, left)."""
        rows = np.clip(corners[:, :1] + probe.rows[None], 0, frame.shape[0] - 1)
        cols = np.clip(corners[:, 1:] + probe.cols[None], 0, frame.shape[1] - 1)
        return frame[rows, cols].astype(np.float32)

    def _tint(self, frame: Frame, corners: Ints, found: Mapping[int, int]) -> tuple[Floats, Floats]:
        """Gain and offset per channel that turn the reference's colours into the frame's."""
        tiles, cells = list(found), [found[tile] for tile in found]
        seen = self._look(frame, self.glyphs, corners[cells]).reshape(-1, 3)
        known = self.glyphs.values[tiles].reshape(-1, 3)
        mean_seen, mean_known = seen.mean(axis=0), known.mean(axis=0)
        spread = ((known - mean_known) ** 2).mean(axis=0) + 25.0
        gain = (((known - mean_known) * (seen - mean_seen)).mean(axis=0) + 25.0) / spread
        return gain, mean_seen - gain * mean_known

    def _is_off(
        self, frame: Frame, corner: Ints, tile: int, tint: tuple[Floats, Floats], likeness: float
    ) -> bool:
        """Whether a recognised tile does not quite stand in its cell: its sides are elsewhere."""
        if likeness < ALIGNED:
            return True
        seen = self._look(frame, self.edges, corner[None])[0]
        wrong = (
            np.abs(seen - (tint[0] * self.edges.values[tile] + tint[1])).max(axis=1).reshape(4, 12).mean(axis=1)
        )
        return bool((wrong > np.clip(0.4 * self.edge_contrast, 12, 40)).any())

    def _locate(
        self,
        frame: Frame,
        tile: int,
        tint: tuple[Floats, Floats],
        near: tuple[int, int] | None,
        free: set[tuple[int, int]],
    ) -> Position | None:
        """Search for a tile between cells: from `near`, if given; between free cells first, then over others."""
        for segments, step in self._searches(near, free):
            if not segments:
                continue
            corners = np.concatenate([self._line(one, other, step) for one, other in segments])
            best = corners[int(np.argmin(self._costs(frame, tile, tint, corners)))]
            if step > 1:
                fine = best + np.array([(y, x) for y in range(1 - step, step) for x in range(1 - step, step)])
                best = fine[int(np.argmin(self._costs(frame, tile, tint, fine)))]
            ink = _centred(self._look(frame, self.glyphs, best[None]))[0] @ self.glyphs.inks[tile]
            if float(ink[0]) >= SAME:
                return self.layout.position(float(best[0]), float(best[1]))
        return None

    def _searches(
        self, near: tuple[int, int] | None, free: set[tuple[int, int]]
    ) -> list[tuple[list[tuple[tuple[int, int], tuple[int, int]]], int]]:
        """(pairs of neighbouring cells, step in px) to search in turn."""
        pairs = [
            ((row, col), other)
            for row, col in self.cells
            for other in ((row + 1, col), (row, col + 1))
            if other in self.cells and (near is None or near in ((row, col), other))
        ]
        both = [pair for pair in pairs if set(pair) - {near} <= free]
        one = [pair for pair in pairs if pair not in both and (set(pair) & free or near is not None)]
        return [(both, 1), (one, 2)]

    def _line(self, one: tuple[int, int], other: tuple[int, int], step: int) -> Ints:
        """(n, 2) box corners from one cell to the next, every `step` px, both ends included."""
        first = np.array(self.pixel((float(one[0]), float(one[1]))))
        last = np.array(self.pixel((float(other[0]), float(other[1]))))
        way = int(np.abs(last - first).max())
        along = np.append(np.arange(0, way, step), way) / max(1, way)
        return np.round(first + along[:, None] * (last - first)).astype(np.int64)

    def _costs(self, frame: Frame, tile: int, tint: tuple[Floats, Floats], corners: Ints) -> Floats:
        """(n,) mean difference in levels between the tile and the frame, its box at each corner."""
        total = np.zeros(len(corners), np.float32)
        for probe, stride in ((self.edges, 1), (self.glyphs, 4)):
            part = Probe(probe.rows[::stride], probe.cols[::stride], probe.values[:, ::stride])
            seen = self._look(frame, part, corners)
            total += np.abs(seen - (tint[0] * part.values[tile] + tint[1])).mean(axis=(1, 2))
        return total

    def _beneath(
        self, frame: Frame, tint: tuple[Floats, Floats], number: int, places: Mapping[int, Position]
    ) -> tuple[int, int] | None:
        """The cell of the one tile that is not seen because another covers it: what sticks out looks like it."""
        resting = {(round(p[0]), round(p[1])) for p in places.values() if _rests(p)}
        known: Board = self.start.state
        best: tuple[float, tuple[int, int]] | None = None
        for cell in self.cells:
            covering = [p for p in places.values() if abs(p[0] - cell[0]) < 1 and abs(p[1] - cell[1]) < 1]
            if not covering or (cell in resting and cell != known.cell(number)):
                continue
            corner = np.array(self.pixel((float(cell[0]), float(cell[1]))))
            rows, cols = corner[0] + self.edges.rows, corner[1] + self.edges.cols
            shown = np.ones(len(rows), np.bool_)
            for place in covering:
                top, left = self.pixel(place)
                shown &= ~(
                    (rows >= top)
                    & (rows < top + self.layout.height)
                    & (cols >= left)
                    & (cols < left + self.layout.width)
                )
            seen = self._look(frame, self.edges, corner[None])[0]
            wanted = tint[0] * self.edges.values[self.numbers.index(number)] + tint[1]
            cost = (
                float(np.abs(seen - wanted)[shown].mean()) if shown.any() else 12.0 + 12.0 * (cell not in resting)
            )
            if best is None or cost < best[0]:
                best = (cost, cell)
        return best[1] if best is not None and best[0] < 30 else None

    def _reading(self, places: dict[int, Position], beneath: tuple[int, int] | None, sure: float) -> Reading:
        """Put the tiles into cells: what is under way, or upon another, belongs to the cell that it left."""
        known: Board = self.start.state
        hidden = [number for number in self.numbers if number not in places]
        cells = {number: (round(p[0]), round(p[1])) for number, p in places.items() if _rests(p)}
        if beneath is not None:
            cells = {number: cell for number, cell in cells.items() if cell != beneath} | {hidden[0]: beneath}
        taken = set(cells.values())
        moving: dict[str, float] = {}
        for number in sorted(set(places) - set(cells)):
            cells[number], moving[piece(number)] = self._left(number, places[number], taken)
        for number in hidden:
            cells.setdefault(number, known.cell(number))
            places[number] = (float(cells[number][0]), float(cells[number][1]))
        lost = tuple(piece(number) for number in hidden) if beneath is None else ()
        grid = {cell: number for number, cell in cells.items()}
        tiles = tuple(grid.get(cell, 0) for cell in self.cells)
        configuration = {piece(number): places[number] for number in sorted(places)}
        if tiles.count(0) != 1 or len(grid) != len(cells):
            return Reading(known, configuration, moving, 0.2, lost or ("board",))
        state = Board(known.rows, known.cols, tiles, known.corner)
        confidence = min(1.0, 0.2 + sure) if not hidden else 0.5
        return Reading(state, configuration, moving, confidence * min(1.0, self.start.confidence + 0.2), lost)

    def _left(self, number: int, place: Position, taken: set[tuple[int, int]]) -> tuple[tuple[int, int], float]:
        """The cell that a tile under way has left, and its fraction of the way to the other one."""
        known: Board = self.start.state
        near = [
            cell for cell in self.cells if max(abs(place[0] - cell[0]), abs(place[1] - cell[1])) < 1 - RESTING
        ]
        around = [cell for cell in self.cells if abs(place[0] - cell[0]) + abs(place[1] - cell[1]) < 1 + RESTING]
        free = [cell for cell in near if cell not in taken] or [cell for cell in around if cell not in taken]
        home = known.cell(number)
        if home in free:
            left = home
        else:
            left = min(free or near or around, key=lambda cell: abs(place[0] - cell[0]) + abs(place[1] - cell[1]))
        return left, min(1.0, float(max(abs(place[0] - left[0]), abs(place[1] - left[1]))))

    def sprites(self, frame: Frame, reading: Reading, pieces: Sequence[str]) -> Mapping[str, Sprite]:
        """The tiles' boxes, cut from the frame where the reading saw them."""
        cut: dict[str, Sprite] = {}
        for name in pieces:
            if name in reading.configuration:
                top, left = self.pixel(reading.configuration[name])
                pixels = window(frame, (top, left), (self.layout.height, self.layout.width))
                cut[name] = Sprite(pixels, self.layout.mask, top, left)
        return cut

    def without(self, frame: Frame, reading: Reading, pieces: Sequence[str]) -> Frame:
        """The frame with bare floor where the tiles stood; a tile that lay beneath shows again."""
        clean = frame.copy()
        gone = np.zeros(frame.shape[:2], np.bool_)
        for name in pieces:
            if name in reading.configuration:
                view, part = self._clip(frame, reading.configuration[name])
                gone[view] |= self.layout.mask[part]
        clean[gone] = self.layout.bare[gone]
        for name, place in reading.configuration.items():
            view, part = self._clip(frame, place)
            shown = gone[view] & self.layout.mask[part]
            if name not in pieces and shown.any():
                clean[view][shown] = self.layout.sprites[int(name.split("-")[1])][part][shown]
        return clean

    def _clip(self, frame: Frame, place: Position) -> tuple[tuple[slice, slice], tuple[slice, slice]]:
        """Slices of the frame and of the box where a box lies inside the frame."""
        top, left = self.pixel(place)
        first_row, first_col = max(0, -top), max(0, -left)
        stop_row = max(first_row, min(self.layout.height, frame.shape[0] - top))
        stop_col = max(first_col, min(self.layout.width, frame.shape[1] - left))
        part = (slice(first_row, stop_row), slice(first_col, stop_col))
        return (slice(top + first_row, top + stop_row), slice(left + first_col, left + stop_col)), part


def _rests(place: Position) -> bool:
    return max(abs(place[0] - round(place[0])), abs(place[1] - round(place[1]))) <= RESTING


def _centred(values: Floats) -> tuple[Floats, Floats]:
    """(n, m, 3) -> (n, m * 3) without each channel's mean, unit length; and the lengths before."""
    flat = (values - values.mean(axis=1, keepdims=True)).reshape(len(values), -1)
    lengths = np.linalg.norm(flat, axis=1, keepdims=True)
    return flat / np.maximum(lengths, 1e-3 + 2.0 * flat.shape[1] ** 0.5), lengths


def _spread(first: int, stop: int, most: int) -> Ints:
    """At most `most` whole places from first to stop - 1, evenly."""
    return np.unique(np.linspace(first, max(first, stop - 1), min(most, max(1, stop - first))).astype(np.int64))


def _fit(places: Ints) -> Ints:
    """Twelve of these places, some twice where there are fewer."""
    return places[np.linspace(0, len(places) - 1, 12).round().astype(np.int64)]
