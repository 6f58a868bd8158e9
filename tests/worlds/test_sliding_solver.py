"""Sliding puzzles are solved in as few slides as breadth-first search needs."""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest

from worlds.catalog import load
from worlds.hanoi_rules import Towers, shortest
from worlds.sliding_solver import solvable, solve

GOAL: tuple[int, ...] = (1, 2, 3, 4, 5, 0)  # two rows of three


def distances() -> dict[tuple[int, ...], int]:
    """Slides from the goal to every board of two rows of three."""
    found: dict[tuple[int, ...], int] = {GOAL: 0}
    queue = deque([GOAL])
    while queue:
        board = queue.popleft()
        blank = board.index(0)
        row, col = divmod(blank, 3)
        for r, c in ((row + 1, col), (row - 1, col), (row, col + 1), (row, col - 1)):
            if 0 <= r < 2 and 0 <= c < 3:
                there = list(board)
                there[blank], there[r * 3 + c] = there[r * 3 + c], 0
                if tuple(there) not in found:
                    found[tuple(there)] = found[board] + 1
                    queue.append(tuple(there))
    return found


def test_every_small_board_is_solved_in_the_fewest_slides() -> None:
    known = distances()
    assert len(known) == 360
    for board, count in list(known.items())[::12]:
        assert len(solve(board, GOAL, 3)) == count


def test_an_odd_permutation_is_refused() -> None:
    assert not solvable((2, 1, 3, 4, 5, 0), GOAL, 3)
    with pytest.raises(ValueError, match="no solution"):
        solve((2, 1, 3, 4, 5, 0), GOAL, 3)


def test_a_full_tower_takes_one_less_than_two_to_the_discs() -> None:
    for count in range(2, 6):
        full = tuple(range(count, 0, -1))
        assert len(shortest(Towers((full, (), ()), 2))) == 2**count - 1


def test_a_tile_that_is_not_on_the_board_is_neither_legal_nor_has_a_path() -> None:
    world = load("sliding_puzzle")
    board = world.sample(np.random.default_rng(1), "easy")
    (action,) = world.parse("Tile 77 slides left into the blank space at row 1, column 1.")
    assert not world.legal(board, action)
    with pytest.raises(ValueError, match="no tile 77"):
        world.path(board, action)
