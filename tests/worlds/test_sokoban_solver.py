"""The sokoban solver on levels by hand."""

from __future__ import annotations

import time
from collections import deque

import pytest

from worlds.grid import GridState, Legend, line
from worlds.sokoban import WORLD, Push, Walk
from worlds.sokoban_solver import solve


def level(text: str) -> GridState:
    """`#` wall, `@` player, `$` box, `.` goal, `*` box on goal."""
    rows = text.strip("\n").split("\n")
    cols = max(map(len, rows))
    cells = {(r, c): sign for r, row in enumerate(rows) for c, sign in enumerate(row.ljust(cols))}

    def those(signs: str) -> list[tuple[int, int]]:
        return [cell for cell, sign in cells.items() if sign in signs]

    return GridState(
        len(rows), cols, frozenset(those("#")), frozenset(those(".*")), those("@")[0], tuple(those("$*"))
    )


CORNER = """
######
#@   #
# $  #
#    #
#   .#
######
"""
THREE = """
##########
#        #
#  $ .   #
# #   #  #
#  .$    #
#   # #  #
#  $  .  #
# #      #
#   @    #
##########
"""
ROOMS = """
#########
#   #   #
# $ . $ #
#   #   #
## ### ##
#   .   #
# @     #
#########
"""


def fewest_actions(state: GridState) -> int:
    """Breadth-first over walks and pushes, without any cleverness."""
    seen, queue = {state}, deque([(state, 0)])
    while queue:
        here, count = queue.popleft()
        if WORLD.goal(here):
            return count
        cells = [(row, col) for row in range(here.rows) for col in range(here.cols)]
        actions: list[Walk | Push] = [Walk(*cell) for cell in cells if here.free(cell)]
        actions += [Push(*box, *cell) for box in here.boxes for cell in cells if line(box, cell)]
        for action in actions:
            if WORLD.legal(here, action):
                after = WORLD.step(here, action)
                if after not in seen:
                    seen.add(after)
                    queue.append((after, count + 1))
    raise AssertionError("no plan")


@pytest.mark.parametrize("text", [CORNER, "#####\n#@$.#\n#####", "######\n#@   #\n# $$ #\n#.  .#\n######"])
def test_plans_are_as_short_as_an_exhaustive_search_finds(text: str) -> None:
    state = level(text)
    assert len(WORLD.oracle_plan(state)) == fewest_actions(state)


@pytest.mark.parametrize("text", [THREE, ROOMS, CORNER])
def test_levels_of_ten_by_ten_with_three_boxes_are_solved_quickly(text: str) -> None:
    state = level(text)
    begun = time.perf_counter()
    plan = WORLD.oracle_plan(state)
    assert time.perf_counter() - begun < 10
    for action in plan:
        assert WORLD.legal(state, action)
        state = WORLD.step(state, action)
    assert WORLD.goal(state)


def test_a_level_without_a_solution_says_so() -> None:
    with pytest.raises(ValueError, match="no solution"):
        WORLD.oracle_plan(level("#####\n#$ .#\n#@  #\n#####"))


def test_a_level_that_is_too_large_says_so() -> None:
    with pytest.raises(ValueError, match="too large"):
        solve(level(THREE), nodes_max=4)


def test_a_solved_level_needs_nothing() -> None:
    assert WORLD.oracle_plan(level("#####\n#@ *#\n#####")) == []


def test_a_push_is_told_and_read_with_its_box_and_its_end() -> None:
    text = WORLD.describe([Walk(1, 1), Push(2, 1, 4, 1)], Legend(box="yellow square"))
    assert "pushes the yellow square at row 3, column 2 to row 5, column 2." in text
    assert WORLD.parse(text) == [Walk(1, 1), Push(2, 1, 4, 1)]


def test_a_player_that_is_not_behind_its_box_walks_there_first() -> None:
    state = level(CORNER)
    push = Push(2, 2, 2, 4)
    assert not WORLD.legal(state, push)
    path = WORLD.path(state, push)
    assert path[0] == {"player": (1.0, 1.0), "box#1": (2.0, 2.0)}
    assert {"player": (2.0, 1.0), "box#1": (2.0, 2.0)} in path
    assert path[-1] == {"player": (2.0, 3.0), "box#1": (2.0, 4.0)}


def test_a_push_that_a_wall_or_a_box_stops_is_not_legal() -> None:
    state = level("#######\n#@$ $ #\n#######")
    assert WORLD.legal(state, Push(1, 2, 1, 3))
    assert not WORLD.legal(state, Push(1, 2, 1, 4))
    assert not WORLD.legal(state, Push(1, 4, 1, 5))
    assert not WORLD.legal(state, Walk(1, 3))
