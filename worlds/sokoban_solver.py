"""Shortest plans for sokoban: A* over pushes, with dead cells and stuck squares of four pruned.

An action is a walk or a straight push of any length; the cost of a plan is its number of actions. Sets of cells
are the bits of an int, one row after the other with a closed column between, so that floods are a few shifts.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from worlds.grid import DIRECTIONS, Cell, GridState

NODES_MAX = 60_000  # positions looked at; past half of them a short plan is good enough
FAR = 10**6

Node = tuple[int, int]  # boxes as bits, the player's bit number


@dataclass(frozen=True)
class Move:
    """The player goes behind a box (no action if it is there) and pushes it from one cell to another."""

    behind: Cell
    box: Cell
    to: Cell

    @property
    def end(self) -> Cell:
        """Where the player stands afterwards: right behind the box."""
        return self.to[0] + _sign(self.box[0] - self.to[0]), self.to[1] + _sign(self.box[1] - self.to[1])


def solve(state: GridState, nodes_max: int = NODES_MAX) -> list[Move] | None:
    """Moves of a shortest plan, [] at the goal, None if there is no plan.

    Raises ValueError when `nodes_max` positions were not enough to tell.
    """
    yard = _Yard(state)
    for strict, nodes in ((True, nodes_max // 2), (False, nodes_max)):
        known, moves = _search(yard, nodes, strict=strict)
        if known:
            return moves
    raise ValueError(f"no sokoban plan found within {nodes_max} positions; the level is too large")


def _search(yard: _Yard, nodes_max: int, *, strict: bool) -> tuple[bool, list[Move] | None]:
    """(whether the search came to an end, the plan)."""
    start = yard.start
    best: dict[Node, int] = {start: 0}
    came: dict[Node, tuple[Node, tuple[int, int, int]]] = {}
    estimate = yard.estimate(start[0], strict)
    heap = [(estimate, estimate, 0, start)] if estimate < FAR else []
    count = 0
    while heap:
        _, _, cost, node = heapq.heappop(heap)
        if cost > best[node]:
            continue
        if yard.goals & node[0] == yard.goals:
            return True, yard.unwound(came, node)
        count += 1
        if count > nodes_max:
            return False, None
        for move, price, after in yard.moves(node):
            total = cost + price
            if total < best.get(after, FAR):
                left = yard.estimate(after[0], strict)
                if left < FAR:
                    best[after], came[after] = total, (node, move)
                    heapq.heappush(heap, (total + left, left, total, after))
    return True, None


class _Yard:
    """What does not change: floor, goals, and how many straight pushes a lone box needs from each cell."""

    def __init__(self, state: GridState) -> None:
        self._width = state.cols + 1
        self.goals = self._bits(state.goals)
        floor = [cell for row in range(state.rows) for col in range(state.cols) for cell in [(row, col)]]
        self._floor = self._bits(cell for cell in floor if cell not in state.blocked)
        lone = lone_pushes(state.rows, state.cols, state.blocked, state.goals)
        self._needs = {self._number(cell): need for cell, need in lone.items()}
        self._spare = len(state.boxes) - len(state.goals)
        self._alive = self._floor if self._spare else self._bits(lone)
        self._steps = (1, -1, self._width, -self._width)
        self.start: Node = (self._bits(state.boxes), self._number(state.player))

    def estimate(self, boxes: int, strict: bool) -> int:
        """Actions still needed at least; if not strict, also the walks that most plans need between pushes."""
        needs = sorted(self._needs.get(box, FAR) for box in _numbers(boxes))
        needs = needs[: len(needs) - self._spare] if self._spare > 0 else needs
        if len(needs) < self.goals.bit_count() or (needs and needs[-1] >= FAR):
            return FAR
        return sum(needs) if strict else sum(2 * need - 1 for need in needs if need)

    def moves(self, node: Node) -> Iterator[tuple[tuple[int, int, int], int, Node]]:
        boxes, player = node
        free = self._floor & ~boxes
        around = self._flood(player, free)
        for box in _numbers(boxes):
            for step in self._steps:
                behind = box - step
                if behind < 0 or not around >> behind & 1:
                    continue
                price = 1 if behind == player else 2
                others = boxes & ~(1 << box)
                here, there = box, box + step
                while there >= 0 and (free & self._alive) >> there & 1:
                    after = others | 1 << there
                    if not self._stuck(there, after):
                        yield (behind, box, there), price, (after, here)
                    here, there = there, there + step

    def _flood(self, start: int, free: int) -> int:
        reached, width = 1 << start, self._width
        while True:
            more = (reached | reached << 1 | reached >> 1 | reached << width | reached >> width) & free
            if more == reached:
                return reached
            reached = more

    def _stuck(self, cell: int, boxes: int) -> bool:
        """Whether a box there makes a square of four that nothing can move, off its goals."""
        if self._spare:
            return False
        solid = ~self._floor | boxes
        for down in (self._width, -self._width):
            for right in (1, -1):
                square = (cell, cell + down, cell + right, cell + down + right)
                if min(square) >= 0 and all(solid >> c & 1 for c in square):
                    mine = sum(1 << c for c in square) & boxes
                    if mine & ~self.goals:
                        return True
        return False

    def unwound(self, came: dict[Node, tuple[Node, tuple[int, int, int]]], node: Node) -> list[Move]:
        moves: list[Move] = []
        while node in came:
            node, numbers = came[node]
            behind, box, to = (divmod(number, self._width) for number in numbers)
            moves.append(Move(behind, box, to))
        return moves[::-1]

    def _number(self, cell: Cell) -> int:
        return cell[0] * self._width + cell[1]

    def _bits(self, cells: Iterable[Cell]) -> int:
        return sum(1 << self._number(cell) for cell in cells)


def _sign(value: int) -> int:
    return (value > 0) - (value < 0)


def _numbers(bits: int) -> Iterator[int]:
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low


@lru_cache(maxsize=64)
def lone_pushes(rows: int, cols: int, blocked: frozenset[Cell], goals: frozenset[Cell]) -> dict[Cell, int]:
    """Straight pushes that a lone box needs from each cell to a goal; cells that are missing are dead."""

    def open_floor(cell: Cell) -> bool:
        return 0 <= cell[0] < rows and 0 <= cell[1] < cols and cell not in blocked

    needs = dict.fromkeys(goals, 0)
    queue = sorted(goals)
    for there in queue:
        for down, right in DIRECTIONS.values():
            cell = (there[0] - down, there[1] - right)
            while open_floor(cell) and open_floor((cell[0] - down, cell[1] - right)):
                if cell not in needs:
                    needs[cell] = needs[there] + 1
                    queue.append(cell)
                cell = (cell[0] - down, cell[1] - right)
    return needs
