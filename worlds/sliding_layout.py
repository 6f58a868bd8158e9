"""Where a sliding puzzle's tiles stand in the pixels, what they look like, and what lies under them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from worlds import channels, regions
from worlds.tiling import Face, Tiling
from worlds.world import Frame, Mask, Position

DIFFERS = 10  # levels
Place = tuple[float, float]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Layout:
    """Tile boxes with their borders. `tops`: (rows,) px, `lefts`: (cols,) px; `mask`: (height, width).

    `sprites`: number -> (height, width, 3). `floor`: what a tile's box shows when it is gone. `bare`: the frame
    without any tile.
    """

    tops: Ints
    lefts: Ints
    height: int
    width: int
    mask: Mask
    sprites: dict[int, Frame]
    floor: Frame
    bare: Frame
    inset: tuple[int, int]  # px from the box's corner to the face's

    def pixel(self, position: Position) -> tuple[int, int]:
        """(top, left) px of a tile's box at (row, column); straight lines between and beyond the cells."""
        return round(_along(self.tops, position[0])), round(_along(self.lefts, position[1]))

    def position(self, top: float, left: float) -> Position:
        """The inverse of `pixel`; exact cells give whole numbers."""
        return _against(self.tops, top), _against(self.lefts, left)

    def place_of(self, face: Face) -> Position:
        """(row, column) of a tile whose face was measured."""
        return self.position(round(face.top) - self.inset[0], round(face.left) - self.inset[1])


def _along(starts: Ints, place: float) -> float:
    low = int(np.clip(np.floor(place), 0, len(starts) - 2))
    return float(starts[low] + (place - low) * (starts[low + 1] - starts[low]))


def _against(starts: Ints, pixel: float) -> float:
    low = int(np.clip(np.searchsorted(starts, pixel, side="right") - 1, 0, len(starts) - 2))
    return float(low + (pixel - starts[low]) / (starts[low + 1] - starts[low]))


def lay_out(frame: Frame, tiling: Tiling, places: dict[int, Place], faces: dict[int, Face]) -> Layout:
    """Measure tile boxes: faces first, then as far as the border that moves with them."""
    tops, height = _starts(tiling.rows, [(p[0], f.top, f.height) for p, f in _pairs(places, faces)])
    lefts, width = _starts(tiling.cols, [(p[1], f.left, f.width) for p, f in _pairs(places, faces)])
    gap_y, gap_x = (max(0, int(np.min(np.diff(s))) - size) for s, size in ((tops, height), (lefts, width)))
    reach = (gap_y // 2, gap_x // 2)

    def cell(row: int, col: int) -> Frame:
        start = (int(tops[row]) - reach[0], int(lefts[col]) - reach[1])
        return window(frame, start, (height + 2 * reach[0], width + 2 * reach[1]))

    resting = {number: (round(p[0]), round(p[1])) for number, p in places.items() if _is_cell(p)}
    taken = set(resting.values())
    empty = [(row, col) for row in range(tiling.rows) for col in range(tiling.cols) if (row, col) not in taken]
    strays = [faces[number] for number, place in places.items() if not _is_cell(place)]
    wide_floor = _floor(frame, [cell(*where) for where in empty], empty, strays, (tops, lefts), reach)
    tiles = np.stack([cell(*where) for where in resting.values()]) if resting else wide_floor[None]
    up, down, left, right = _border(tiles, wide_floor, reach)
    box = np.s_[reach[0] - up : reach[0] + height + down, reach[1] - left : reach[1] + width + right]
    mask = _footprint(tiles[(slice(None), *box)], wide_floor[box])
    bare = _bare(frame, resting, empty if strays else [], wide_floor, (tops - reach[0], lefts - reach[1]))
    tops, lefts = tops - up, lefts - left
    size = (height + up + down, width + left + right)
    sprites: dict[int, Frame] = {}
    for number, place in places.items():
        if _is_cell(place):
            start = (int(tops[round(place[0])]), int(lefts[round(place[1])]))
        else:
            start = (round(faces[number].top) - up, round(faces[number].left) - left)
        sprites[number] = window(frame, start, size)
    return Layout(tops, lefts, size[0], size[1], mask, sprites, wide_floor[box].copy(), bare, (up, left))


def _pairs(places: dict[int, Place], faces: dict[int, Face]) -> list[tuple[Place, Face]]:
    return [(place, faces[number]) for number, place in places.items()]


def _is_cell(place: Place) -> bool:
    return place[0] == round(place[0]) and place[1] == round(place[1])


def _starts(count: int, measured: list[tuple[float, float, float]]) -> tuple[Ints, int]:
    """Face starts per row or column, px, and the common size: medians, lines through them where none was seen."""
    size = round(float(np.median([length for _, _, length in measured])))
    seen = {
        index: float(np.median([start for place, start, _ in measured if place == index]))
        for index in range(count)
        if any(place == index for place, _, _ in measured)
    }
    slope, origin = (
        regions.line(list(seen), list(seen.values()), [1] * len(seen)) if len(seen) > 1 else (2.0 * size, 0.0)
    )
    starts = [round(seen.get(index, origin + slope * index)) for index in range(count)]
    return np.array(starts, np.int64), size


def _floor(
    frame: Frame,
    cells: list[Frame],
    empty: list[tuple[int, int]],
    strays: list[Face],
    starts: tuple[Ints, Ints],
    reach: tuple[int, int],
) -> Frame:
    """What an empty cell shows; where a tile under way covers one of two empty cells, the other one's pixels."""
    floor = cells[0].copy()
    if len(cells) < 2 or not strays:
        return floor
    stray = strays[0]
    margin = max(1, min(reach) // 2)
    row, col = empty[0]
    top = round(stray.top) - int(starts[0][row]) + reach[0]
    left = round(stray.left) - int(starts[1][col]) + reach[1]
    covered = np.zeros(floor.shape[:2], np.bool_)
    covered[
        max(0, top - margin) : max(0, top + round(stray.height) + margin),
        max(0, left - margin) : max(0, left + round(stray.width) + margin),
    ] = True
    floor[covered] = cells[1][covered]
    return floor


def _border(tiles: Frame, floor: Frame, reach: tuple[int, int]) -> tuple[int, int, int, int]:
    """How far (up, down, left, right) beyond its face a tile differs from the floor and its colour."""
    height, width = floor.shape[:2]
    colour = channels.median(floor[height // 4 : 3 * height // 4, width // 4 : 3 * width // 4])
    differs = _differs(tiles, floor) & channels.differs(tiles, colour, DIFFERS)
    share = differs.mean(axis=0)
    rows = share[:, width // 4 : max(width // 4 + 1, 3 * width // 4)].mean(axis=1) > 0.5
    cols = share[height // 4 : max(height // 4 + 1, 3 * height // 4)].mean(axis=0) > 0.5
    up, down = _run(rows[: reach[0]][::-1]), _run(rows[height - reach[0] :])
    left, right = _run(cols[: reach[1]][::-1]), _run(cols[width - reach[1] :])
    return up, down, left, right


def _differs(tiles: Frame, floor: Frame) -> Mask:
    return channels.largest(np.maximum(tiles, floor) - np.minimum(tiles, floor)) > DIFFERS


def _run(flags: npt.NDArray[np.bool_]) -> int:
    return int(np.argmin(flags)) if flags.size and not flags.all() else int(flags.size)


def _footprint(tiles: Frame, floor: Frame) -> Mask:
    """Where tiles differ from the floor, holes filled; the whole box where they hardly do."""
    differs = _differs(tiles, floor)
    mask = regions.filled(differs.mean(axis=0) > 0.5)
    if mask.mean() < 0.6:
        return np.ones(floor.shape[:2], np.bool_)
    return mask


def _bare(
    frame: Frame,
    resting: dict[int, tuple[int, int]],
    uncovered: list[tuple[int, int]],
    floor: Frame,
    starts: tuple[Ints, Ints],
) -> Frame:
    bare = frame.copy()
    for row, col in [*resting.values(), *uncovered]:
        top, left = int(starts[0][row]), int(starts[1][col])
        first_row, first_col = max(0, -top), max(0, -left)
        target = bare[max(0, top) : top + floor.shape[0], max(0, left) : left + floor.shape[1]]
        target[:] = floor[first_row : first_row + target.shape[0], first_col : first_col + target.shape[1]]
    return bare


def window(frame: Frame, start: tuple[int, int], size: tuple[int, int]) -> Frame:
    """(size) pixels of the frame from `start` on, in memory of their own; the edge is repeated beyond it."""
    (top, left), (height, width) = start, size
    if top >= 0 and left >= 0 and top + height <= frame.shape[0] and left + width <= frame.shape[1]:
        return frame[top : top + height, left : left + width].copy()
    rows = np.clip(np.arange(top, top + height), 0, frame.shape[0] - 1)
    cols = np.clip(np.arange(left, left + width), 0, frame.shape[1] - 1)
    return frame[np.ix_(rows, cols)]
