"""Whether anything moves in a clip: the largest changed block, beyond what compression would change.

Blocks of 8 × 8 pixels at every fourth pixel, so that a piece of five pixels lies whole inside one of them.
A block may change by `_FLAT` levels and, where the start frame has edges for compression to ring at, by
`_PER_CONTRAST` of its contrast more. Measured: drawings and photographs that stand still, through x264 at CRF 18
to 34, MPEG-4 and noise of σ 4, stay below 1.0; dots of 6 px and 40 levels that move 6 px lie above.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
from PIL import Image
from scipy import ndimage

from media.pictures import Frame

_FLAT, _PER_CONTRAST = 6.0, 0.08
_JUMP = 2.0  # a model's own frames differ from the frame it was given by more than among themselves
_CELL = 4
_BAND = 32  # rows that are compared at once, a multiple of the cell

Rows: TypeAlias = tuple[int, int]  # the first one, and the one after the last
Grid: TypeAlias = npt.NDArray[np.float32]  # (h, w, 3): means of 4 × 4 pixels, in levels
_ndimage = cast("Any", ndimage)
_maximum = cast("Callable[..., Grid]", _ndimage.maximum_filter)
_minimum = cast("Callable[..., Grid]", _ndimage.minimum_filter)


def grid(frame: Frame) -> Grid:
    """Means of 4 × 4 pixels; a remainder of fewer than four rows or columns is left out."""
    height, width = (max(_CELL, side // _CELL * _CELL) for side in frame.shape[:2])
    image = Image.fromarray(np.ascontiguousarray(frame[:height, :width]))
    return np.asarray(image.reduce(_CELL), dtype=np.float32)


class Grids:
    """The grids of frames that follow each other: only rows that differ from the frame before are measured."""

    def __init__(self) -> None:
        self._before: Frame | None = None
        self._cells: Grid | None = None

    def of(self, frame: Frame) -> tuple[Grid, Rows]:
        """The grid of the next frame, and which of its rows can differ from the grid before: (first, stop)."""
        before, self._before = self._before, frame
        if before is None or self._cells is None or frame.shape != before.shape:
            self._cells = grid(frame)
            return self._cells, (0, len(self._cells))
        first, stop = (row // _CELL for row in _changed_rows(before, frame))
        stop = min(stop, len(self._cells))
        if first < stop:
            self._cells = self._cells.copy()
            self._cells[first:stop] = grid(frame[first * _CELL : max(stop, first + 1) * _CELL])
        return self._cells, (first, max(first, stop))


def _changed_rows(before: Frame, after: Frame) -> Rows:
    """Rows in which two frames differ, rounded to whole bands; (0, 0): they are the same."""
    height = len(after)
    first, stop = 0, -(-height // _BAND) * _BAND
    while first < stop and np.array_equal(before[first : first + _BAND], after[first : first + _BAND]):
        first += _BAND
    while first < stop and np.array_equal(before[stop - _BAND : stop], after[stop - _BAND : stop]):
        stop -= _BAND
    return first, stop


class Motion:
    """How much has moved since the frame it was made with; frames are shown to it in order."""

    def __init__(self, start: Frame) -> None:
        self._start = _blocks(grid(start))
        self._allowed = _FLAT + _PER_CONTRAST * _contrast(start)
        self._second: Grid | None = None
        self._largest = 0.0
        self._frames = 1
        self.levels = 0.0  # the largest change of any block, in levels

    def see(self, cells: Grid, changed: Rows | None = None) -> None:
        """The next frame, as `grid` gives it; `changed`: its rows that can differ from the frame seen before."""
        self._frames += 1
        if self._second is None:
            self._second = _blocks(cells)
            self._note(np.abs(self._second - self._start), self._allowed * _JUMP)
            return
        first, stop = (0, len(cells)) if changed is None or min(cells.shape[:2]) < 2 else changed
        if first < stop:  # what has not changed has been noted
            first, stop = max(0, first - 1), min(len(self._second), stop)
            change = np.abs(_blocks(cells[first : stop + 1]) - self._second[first:stop])
            self._note(change, self._allowed[first:stop])

    def _note(self, change: Grid, allowed: npt.NDArray[np.float32]) -> None:
        peak = np.maximum(np.maximum(change[..., 0], change[..., 1]), change[..., 2])
        self.levels = max(self.levels, float(peak.max()))
        self._largest = max(self._largest, float((peak / allowed).max()))

    @property
    def amount(self) -> float:
        """Largest change in units of what compression explains: 1.0 or more is motion."""
        # Of two frames the second is all there is to move.
        return self._largest * _JUMP if self._frames == 2 else self._largest


def _blocks(cells: Grid) -> Grid:
    """Means of 8 × 8 pixels at every fourth."""
    if min(cells.shape[:2]) < 2:
        return cells
    return (cells[:-1, :-1] + cells[1:, :-1] + cells[:-1, 1:] + cells[1:, 1:]) / np.float32(4)


def _contrast(frame: Frame) -> npt.NDArray[np.float32]:
    """Largest less smallest value in and around each block, in levels: (h − 1, w − 1)."""
    height, width = (max(_CELL, side // _CELL * _CELL) for side in frame.shape[:2])
    high, low = (_reduced(frame[:height, :width], pick).astype(np.float32) for pick in (np.maximum, np.minimum))
    spread = (_maximum(high, (4, 4, 1)) - _minimum(low, (4, 4, 1))).max(axis=2)
    return spread if min(spread.shape) < 2 else spread[:-1, :-1]


def _reduced(frame: Frame, pick: Callable[..., Frame]) -> Frame:
    """The largest or smallest value of every 4 × 4 pixels."""
    rows = functools.reduce(pick, (frame[offset::_CELL] for offset in range(_CELL)))
    return functools.reduce(pick, (rows[:, offset::_CELL] for offset in range(_CELL)))
