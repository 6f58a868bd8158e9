"""What the grid worlds share: states, runs of cells, geometry on the picture, positions and where none may be.

Rows and columns count from 0 here and from 1 in sentences. Positions are in cells: (row, col) of a piece's
centre, whole at rest.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from worlds.world import Configuration, Position

Cell = tuple[int, int]

DIRECTIONS: dict[str, Cell] = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}
PLAYER = "player"
OVERLAP_CELLS = 0.2  # how far a piece may lean over a forbidden cell before it counts: readers err by 0.1
BOX = "box"


@dataclass(frozen=True)
class GridState:
    """A grid at rest. `blocked`: walls or traps; `goals`: where the player, or every box, must get to.

    Boxes look alike, so they are kept sorted; piece `box#k` is the k-th of them.
    """

    rows: int
    cols: int
    blocked: frozenset[Cell]
    goals: frozenset[Cell]
    player: Cell
    boxes: tuple[Cell, ...] = field(default=())

    def __post_init__(self) -> None:
        object.__setattr__(self, "boxes", tuple(sorted(self.boxes)))

    def inside(self, cell: Cell) -> bool:
        return 0 <= cell[0] < self.rows and 0 <= cell[1] < self.cols

    def free(self, cell: Cell) -> bool:
        """Whether a piece may stand there: inside, not blocked, no box."""
        return self.inside(cell) and cell not in self.blocked and cell not in self.boxes


@dataclass(frozen=True)
class Run:
    """One straight run of the player to a cell."""

    row: int
    col: int

    @property
    def cell(self) -> Cell:
        return self.row, self.col


@dataclass(frozen=True)
class Lattice:
    """Where the cells lie on a picture, px; `top`, `left` is the corner of cell (0, 0)."""

    top: float
    left: float
    pitch: float
    rows: int
    cols: int

    def box(self, cell: Cell) -> tuple[int, int, int, int]:
        """(top, bottom, left, right) of a cell, px, cut at nothing."""
        row, col = cell
        return (
            round(self.top + row * self.pitch),
            round(self.top + (row + 1) * self.pitch),
            round(self.left + col * self.pitch),
            round(self.left + (col + 1) * self.pitch),
        )

    def pixel(self, position: Position) -> tuple[int, int]:
        """The corner of a cell-sized square at a position, px."""
        return (
            math.floor(self.top + position[0] * self.pitch + 0.5),
            math.floor(self.left + position[1] * self.pitch + 0.5),
        )

    def cells(self) -> Iterable[Cell]:
        return ((row, col) for row in range(self.rows) for col in range(self.cols))


@dataclass(frozen=True)
class Legend:
    """How this picture's prompt calls its pieces and places: `"red circle"`, `"white squares"`."""

    player: str = "player"
    goal: str = "goal"
    floor: str = "free cells"
    wall: str = "walls"
    box: str = "box"


class _Free(Protocol):
    def __call__(self, cell: Cell, /) -> bool: ...


def line(start: Cell, end: Cell) -> list[Cell]:
    """The cells of a straight run, start left out; empty if it is no straight run or goes nowhere."""
    rows, cols = end[0] - start[0], end[1] - start[1]
    if (rows == 0) == (cols == 0):
        return []
    count = abs(rows) + abs(cols)
    return [(start[0] + rows * i // count, start[1] + cols * i // count) for i in range(1, count + 1)]


def runs(start: Cell, free: _Free) -> dict[Cell, int]:
    """Every cell that one straight run reaches, with its distance."""
    reached: dict[Cell, int] = {}
    for down, right in DIRECTIONS.values():
        cell, count = (start[0] + down, start[1] + right), 1
        while free(cell):
            reached[cell] = count
            cell, count = (cell[0] + down, cell[1] + right), count + 1
    return reached


def fewest_runs(start: Cell, goals: Iterable[Cell], free: _Free) -> list[Cell] | None:
    """Ends of the fewest straight runs to a goal, the fewest cells among those; None if there is no way."""
    wanted = set(goals)
    best: dict[Cell, tuple[int, int]] = {start: (0, 0)}
    came: dict[Cell, Cell] = {}
    heap = [(0, 0, start)]
    while heap:
        count, cells, here = heapq.heappop(heap)
        if (count, cells) > best[here]:
            continue
        if here in wanted:
            ends = [here]
            while ends[-1] in came:
                ends.append(came[ends[-1]])
            return ends[::-1][1:]
        for there, steps in runs(here, free).items():
            cost = (count + 1, cells + steps)
            if cost < best.get(there, (10**9, 0)):
                best[there], came[there] = cost, here
                heapq.heappush(heap, (*cost, there))
    return None


def route(start: Cell, goal: Cell, free: _Free) -> list[Cell] | None:
    """A shortest way of neighbouring cells, both ends included; None if there is none."""
    came: dict[Cell, Cell | None] = {start: None}
    queue = [start]
    for here in queue:
        if here == goal:
            way: list[Cell] = []
            step: Cell | None = here
            while step is not None:
                way.append(step)
                step = came[step]
            return way[::-1]
        for down, right in DIRECTIONS.values():
            there = (here[0] + down, here[1] + right)
            if there not in came and free(there):
                came[there] = here
                queue.append(there)
    return None


def reachable(start: Cell, free: _Free) -> set[Cell]:
    """Every cell that can be walked to, the start included."""
    seen, queue = {start}, [start]
    for here in queue:
        for down, right in DIRECTIONS.values():
            there = (here[0] + down, here[1] + right)
            if there not in seen and free(there):
                seen.add(there)
                queue.append(there)
    return seen


def at(cell: Cell) -> Position:
    return float(cell[0]), float(cell[1])


def corners(way: Iterable[Position]) -> list[Position]:
    """A polyline without repeated points and without points inside a straight stretch."""
    points: list[Position] = []
    for point in way:
        if points and math.dist(points[-1], point) < 1e-9:
            continue
        if len(points) >= 2 and _straight(points[-2], points[-1], point):
            points[-1] = point
        else:
            points.append(point)
    return points


def _straight(a: Position, b: Position, c: Position) -> bool:
    cross = (b[0] - a[0]) * (c[1] - b[1]) - (b[1] - a[1]) * (c[0] - b[0])
    forward = (b[0] - a[0]) * (c[0] - b[0]) + (b[1] - a[1]) * (c[1] - b[1])
    return abs(cross) < 1e-9 and forward > 0


def walk(start: Position, goal: Cell, free: _Free) -> list[Position] | None:
    """The way of a piece that may be between two cells, over free cells only; None if there is none.

    It goes on from where it is: of the cells that it lies between, the one that makes the way shortest.
    """
    ways: list[list[Position]] = []
    for cell in between(start):
        way = route(cell, goal, free) if free(cell) else None
        if way is not None:
            ways.append(corners([start, *map(at, way)]))
    return min(ways, key=_length) if ways else None


def between(position: Position) -> list[Cell]:
    """The cells that a piece lies on, nearest first: one at rest, two under way, four if it strays."""
    spans: list[list[int]] = []
    for value in position:
        low = math.floor(value + 1e-6)
        spans.append([low] if value - low < 0.02 else [low + 1] if value - low > 0.98 else [low, low + 1])
    cells = [(row, col) for row in spans[0] for col in spans[1]]
    return sorted(cells, key=lambda cell: math.dist(cell, position))


def _length(way: list[Position]) -> float:
    return sum(math.dist(a, b) for a, b in itertools.pairwise(way))


def overlaps(position: Position, cell: Position, lean: float = OVERLAP_CELLS) -> bool:
    """Whether a cell-sized piece at `position` lies on `cell` by more than `lean` both ways."""
    return abs(position[0] - cell[0]) < 1 - lean and abs(position[1] - cell[1]) < 1 - lean


def trespasses(state: GridState, configuration: Configuration) -> bool:
    """Whether a piece lies on a blocked cell, on another piece or outside, half-way included."""
    pieces = list(configuration.items())
    for index, (_, position) in enumerate(pieces):
        low, high = -OVERLAP_CELLS, OVERLAP_CELLS - 1
        if min(position) < low or position[0] > state.rows + high or position[1] > state.cols + high:
            return True
        if any(overlaps(position, cell) for cell in _around(position) if cell in state.blocked):
            return True
        if any(overlaps(position, other) for _, other in pieces[index + 1 :]):
            return True
    return False


def _around(position: Position) -> list[Cell]:
    row, col = round(position[0]), round(position[1])
    return [(row + down, col + right) for down in (-1, 0, 1) for right in (-1, 0, 1)]


def configuration_of(state: GridState) -> dict[str, Position]:
    """Every piece where it rests."""
    pieces = {PLAYER: at(state.player)}
    return pieces | {f"{BOX}#{index}": at(cell) for index, cell in enumerate(state.boxes, start=1)}


def named(cell: Cell) -> str:
    """`"row 5, column 4"`, counted from 1."""
    return f"row {cell[0] + 1}, column {cell[1] + 1}"
