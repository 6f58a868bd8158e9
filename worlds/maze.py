"""The maze: a player runs along corridors to a goal; walls are never crossed."""

from __future__ import annotations

import numpy as np

from worlds.grid import Cell, GridState, fewest_runs
from worlds.grid_prompts import Asked
from worlds.grid_reading import Roles
from worlds.grid_runs import RunWorld
from worlds.grid_words import Words, picked
from worlds.world import Difficulty

# corridors per side, least and most runs
SIZES: dict[Difficulty, tuple[tuple[int, int], tuple[int, int]]] = {
    "easy": ((2, 3), (1, 3)),
    "medium": ((3, 4), (4, 8)),
    "hard": ((5, 6), (9, 18)),
}
LOOPS = 0.06  # share of inner walls that are opened, so that there may be more than one way
BLOCKED_MIN = 0.15  # share of all cells
WALLED = 0.8  # share of the border that is blocked in a maze


def sample(rng: np.random.Generator, difficulty: Difficulty) -> GridState:
    """A maze with walls around it, whose shortest plan has as many runs as the difficulty says."""
    (small, large), (least, most) = SIZES[difficulty]
    while True:
        rows, cols = (2 * int(rng.integers(small, large + 1)) + 1 for _ in range(2))
        free = _carve(rng, rows, cols)
        cells = sorted(free)
        for _ in range(12):
            player, goal = (cells[int(index)] for index in rng.choice(len(cells), 2, replace=False))
            ends = fewest_runs(player, [goal], free.__contains__)
            if ends is not None and least <= len(ends) <= most:
                blocked = frozenset((row, col) for row in range(rows) for col in range(cols)) - free
                return GridState(rows, cols, frozenset(blocked), frozenset([goal]), player)


def _carve(rng: np.random.Generator, rows: int, cols: int) -> set[Cell]:
    """Free cells of a maze: a random spanning tree on the odd cells, a few walls opened."""
    start = (2 * int(rng.integers(rows // 2)) + 1, 2 * int(rng.integers(cols // 2)) + 1)
    free, stack = {start}, [start]
    while stack:
        row, col = stack[-1]
        steps = [(row + 2 * down, col + 2 * right) for down, right in ((0, 1), (1, 0), (0, -1), (-1, 0))]
        steps = [c for c in steps if 0 < c[0] < rows - 1 and 0 < c[1] < cols - 1 and c not in free]
        if not steps:
            stack.pop()
            continue
        there = steps[int(rng.integers(len(steps)))]
        free |= {there, ((row + there[0]) // 2, (col + there[1]) // 2)}
        stack.append(there)
    for row in range(1, rows - 1):
        for col in range(1, cols - 1):
            if (row + col) % 2 and rng.random() < LOOPS:
                free.add((row, col))
    return free


def wording(words: Words, rng: np.random.Generator) -> str:
    """One of several ways to set the task."""
    player, goal = words.player, words.goal
    if not words.coloured:
        return picked(
            (
                "Move the player through the maze to the goal. It slides along the free corridors and never "
                "crosses a wall. The camera does not move and nothing else changes.",
                "Animate the maze from above: the player travels through the corridors until it rests on the "
                "goal, without touching any wall.",
            ),
            rng,
        )
    floor, wall = words.floor, words.wall
    return picked(
        (
            f"Make a 2D animation from this picture of a maze. The {player} glides evenly along the "
            f"{floor} squares "
            f"and comes to rest exactly on the {goal}. The {player} never enters the {wall} squares.\n\n"
            f"Maze:\n The corridors are {floor} squares, the walls are {wall} squares.\n The goal is the "
            f"{goal}.\n\n"
            "Camera:\n Fixed, seen from straight above. No zoom, no pan.",
            f"Guide the {player} through the maze to the {goal}. Walls are {wall}, corridors are {floor}. "
            "Nothing but the player moves, and it never touches a wall.",
            f"In this maze, {floor} cells can be walked on and {wall} cells are walls. The {player} has "
            f"to reach the "
            f"{goal}; it moves in straight lines and stops there. Keep the camera still.",
            f"Legend: player = {player}; exit = {goal}; walls = {wall}; floor = {floor}. Show the player "
            f"walking to "
            "the exit at a steady pace without crossing any wall.",
        ),
        rng,
    )


def mine(asked: Asked, roles: Roles) -> bool:
    """Whether what is blocked is walls: the prompt says so, or they stand all around or nearly everywhere."""
    state = roles.state
    if len(state.blocked) < BLOCKED_MIN * state.rows * state.cols or (asked.traps and not asked.walls):
        return False
    return (asked.walls and not asked.traps) or walled(roles.state)


def walled(state: GridState) -> bool:
    """Whether blocked cells form the border, or most of the picture."""
    border = [c for c in _cells(state) if c[0] in (0, state.rows - 1) or c[1] in (0, state.cols - 1)]
    share = sum(cell in state.blocked for cell in border) / len(border)
    return share > WALLED or len(state.blocked) > 0.45 * state.rows * state.cols


def _cells(state: GridState) -> list[Cell]:
    return [(row, col) for row in range(state.rows) for col in range(state.cols)]


WORLD = RunWorld("maze", sampler=sample, wording=wording, mine=mine, traps=False)
