"""The trapfield: a player crosses an open field to a goal; traps are never touched."""

from __future__ import annotations

import numpy as np

from worlds.grid import GridState, fewest_runs
from worlds.grid_prompts import Asked
from worlds.grid_reading import Roles
from worlds.grid_runs import RunWorld
from worlds.grid_words import Words, picked
from worlds.maze import walled
from worlds.world import Difficulty

# cells per side, share of traps, least and most runs
SIZES: dict[Difficulty, tuple[tuple[int, int], tuple[float, float], tuple[int, int]]] = {
    "easy": ((4, 6), (0.12, 0.25), (1, 2)),
    "medium": ((6, 8), (0.3, 0.42), (4, 6)),
    "hard": ((8, 11), (0.36, 0.44), (7, 14)),
}


TRAPS_MIN = 2


def sample(rng: np.random.Generator, difficulty: Difficulty) -> GridState:
    """A field whose shortest plan has as many runs as the difficulty says."""
    (small, large), shares, (least, most) = SIZES[difficulty]
    while True:
        rows, cols = (int(rng.integers(small, large + 1)) for _ in range(2))
        order = rng.permutation(rows * cols)
        cells = [(int(index) // cols, int(index) % cols) for index in order]
        count = max(2, round(float(rng.uniform(*shares)) * rows * cols))
        traps, free = frozenset(cells[:count]), set(cells[count:])
        for player, goal in zip(cells[count : count + 12], cells[count + 12 :], strict=False):
            ends = fewest_runs(player, [goal], free.__contains__)
            if ends is not None and least <= len(ends) <= most:
                state = GridState(rows, cols, traps, frozenset([goal]), player)
                if not walled(state):
                    return state


def wording(words: Words, rng: np.random.Generator) -> str:
    """One of several ways to set the task."""
    player, goal = words.player, words.goal
    if not words.coloured:
        return picked(
            (
                "Move the player over the field to the goal. It must not touch any trap. The camera stays still.",
                "Seen from above: the player crosses the open field and stops on the goal, and every hazard is "
                "avoided on the way.",
            ),
            rng,
        )
    floor, trap = words.floor, words.wall
    return picked(
        (
            f"Make a 2D animation from this picture of a field. The {player} glides evenly along the "
            f"{floor} squares "
            f"and comes to rest exactly on the {goal}. The {player} never touches the {trap} squares, which are "
            f"traps.\n\nField:\n Free squares are {floor}, trap squares are {trap}.\n The goal is the {goal}.\n\n"
            "Camera:\n Fixed, seen from straight above. No zoom, no pan.",
            f"Lead the {player} to the {goal}. The {trap} squares are hazards and must be avoided; the {floor} "
            "squares are safe. Only the player moves.",
            f"The {player} has to get to the {goal} without stepping on a {trap} trap. It moves in "
            f"straight lines "
            f"over the {floor} squares. Static camera.",
            f"Legend: player = {player}; goal = {goal}; traps = {trap}; free = {floor}. Show the player "
            f"travelling "
            "to the goal at a steady pace.",
        ),
        rng,
    )


def mine(asked: Asked, roles: Roles) -> bool:
    """Whether what is blocked is traps: the prompt says so, or they lie scattered over an open field."""
    if len(roles.state.blocked) < TRAPS_MIN or (asked.walls and not asked.traps):
        return False
    return (asked.traps and not asked.walls) or not walled(roles.state)


WORLD = RunWorld("trapfield", sampler=sample, wording=wording, mine=mine, traps=True)
