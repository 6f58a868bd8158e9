"""Random sokoban levels of a wanted length, solved before they are given out."""

from __future__ import annotations

import numpy as np

from worlds.grid import Cell, GridState, reachable
from worlds.sokoban_solver import Move, lone_pushes, solve
from worlds.world import Difficulty

# sides with the walls, boxes, least and most actions
SIZES: dict[Difficulty, tuple[tuple[int, int], tuple[int, int], tuple[int, int]]] = {
    "easy": ((5, 6), (1, 1), (1, 3)),
    "medium": ((6, 7), (1, 2), (4, 7)),
    "hard": ((7, 8), (2, 3), (8, 14)),
}
INNER_WALLS = (0.08, 0.22)  # share of the inside
NODES_MAX = 1500


def sample_level(rng: np.random.Generator, difficulty: Difficulty) -> GridState:
    """A level with walls around it and no box on a goal yet."""
    sides, boxes, (least, most) = SIZES[difficulty]
    while True:
        state = _room(rng, sides, int(rng.integers(boxes[0], boxes[1] + 1)))
        if state is None:
            continue
        try:
            moves = solve(state, NODES_MAX)
        except ValueError:
            continue
        if moves is not None and least <= _actions(state, moves) <= most:
            return state


def _actions(state: GridState, moves: list[Move]) -> int:
    """Walks and pushes of a plan."""
    count, player = 0, state.player
    for move in moves:
        count += 1 if move.behind == player else 2
        player = move.end
    return count


def _room(rng: np.random.Generator, sides: tuple[int, int], boxes: int) -> GridState | None:
    rows, cols = (int(rng.integers(sides[0], sides[1] + 1)) for _ in range(2))
    inside = [(row, col) for row in range(1, rows - 1) for col in range(1, cols - 1)]
    order: list[Cell] = [inside[int(index)] for index in rng.permutation(len(inside))]
    count = round(float(rng.uniform(*INNER_WALLS)) * len(inside))
    floor = set(order[count:])
    blocked = frozenset((row, col) for row in range(rows) for col in range(cols)) - floor
    goals, player = frozenset(order[-boxes:]), order[count]
    alive = lone_pushes(rows, cols, frozenset(blocked), goals)
    starts = [cell for cell in order[count + 1 :] if alive.get(cell, 0) > 0]
    if len(starts) < boxes or len(reachable(player, floor.__contains__)) < len(floor):
        return None
    return GridState(rows, cols, frozenset(blocked), goals, player, tuple(starts[:boxes]))
