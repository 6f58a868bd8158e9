"""Judging clips by their readings: how far, where it went wrong, and how."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from worlds.catalog import load
from worlds.chain import chain, outcome, remaining
from worlds.circles_rules import Place
from worlds.grid import GridState, Run
from worlds.hanoi_rules import Move
from worlds.judging import Judgement, judge
from worlds.motion import Path, sample
from worlds.sliding_rules import Slide
from worlds.sokoban import Push, Walk
from worlds.world import Configuration, Reading

MAZE: Any = load("maze")
PUZZLE: Any = load("sliding_puzzle")
OPEN = GridState(5, 7, frozenset({(0, 3), (2, 3), (3, 3)}), frozenset({(4, 6)}), (1, 1))


def _resting(state: Any, world: Any = MAZE) -> Reading:
    return Reading(state, world.configuration(state))


def _seen(places: Configuration, state: GridState = OPEN) -> Reading:
    """What a maze reader makes of the player at a place."""
    row, col = places["player"]
    cell = (round(row), round(col))
    moving = {} if max(abs(row - cell[0]), abs(col - cell[1])) < 0.08 else {"player": 0.5}
    return Reading(GridState(5, 7, state.blocked, state.goals, cell), places, moving)


def _clip(way: Path, num_frames: int) -> list[Reading | None]:
    return [_seen(places) for places in sample(way, num_frames)]


def _way(*cells: tuple[float, float]) -> list[Configuration]:
    return [{"player": cell} for cell in cells]


def _judged(actions: Sequence[Run], readings: Sequence[Reading | None]) -> Judgement:
    return judge(MAZE, chain(MAZE, _resting(OPEN), actions), readings)


def test_a_right_clip_is_finished_and_all_good() -> None:
    judged = _judged([Run(1, 5), Run(4, 5)], _clip(_way((1, 1), (1, 5), (4, 5)), 33))
    assert (judged.finished, judged.failure, judged.first_bad) == (True, None, None)
    assert (judged.good_fraction, judged.actions_done) == (1.0, 2)


def test_a_right_clip_that_stops_early_is_incomplete_and_all_good() -> None:
    judged = _judged([Run(1, 5), Run(4, 5)], _clip(_way((1, 1), (1, 5), (2.5, 5)), 33))
    assert (judged.finished, judged.failure, judged.good_fraction) == (False, "incomplete", 1.0)
    assert judged.actions_done == 1
    assert judged.way == pytest.approx(5.5)


def test_a_still_clip_is_no_motion() -> None:
    judged = _judged([Run(1, 5)], _clip(_way((1, 1)), 17))
    assert (judged.failure, judged.good_fraction, judged.first_bad) == ("no_motion", 0.0, 1)


@pytest.mark.parametrize(
    ("wrong", "failure"),
    [
        ([(1, 1), (1, 0)], "wrong_direction"),
        ([(1, 1), (4, 1)], "wrong_direction"),
        ([(1, 3), (1, 6)], "wrong_target"),
        ([(1, 2), (1, 1)], "wrong_direction"),
        ([(1, 3), (0, 3)], "illegal_move"),
        ([(1, 3), (3, 3)], "illegal_move"),
    ],
)
def test_a_wrong_way_is_named_and_the_cut_is_where_it_began(
    wrong: list[tuple[float, float]], failure: str
) -> None:
    right = sample(_way((1, 1), wrong[0]), 17) if wrong[0] != (1, 1) else [{"player": (1.0, 1.0)}]
    target = Run(1, 5) if failure == "wrong_direction" else Run(1, 3)
    if wrong == [(1, 3), (1, 6)]:
        target = Run(1, 5)
        right = sample(_way((1, 1), (1, 5)), 17)
        wrong = [(1, 5), (1, 6)]
    frames = [*right, *sample(_way(*wrong), 17)[1:]]
    judged = _judged([target], [_seen(places) for places in frames])
    assert judged.failure == failure
    assert judged.last_good - (len(right) - 1) in (0, 1)  # a frame's way of 0.06 is within a reader's error
    assert judged.good_fraction == pytest.approx(judged.last_good / len(frames))


def test_a_wrong_second_action_keeps_the_first() -> None:
    frames = [*sample(_way((1, 1), (1, 5)), 17), *sample(_way((1, 5), (1, 6)), 9)[1:]]
    judged = _judged([Run(1, 5), Run(4, 5)], [_seen(places) for places in frames])
    assert judged.actions_done == 1
    assert judged.last_good in (16, 17)


def test_unreadable_frames_for_good_are_a_collapse_and_for_a_moment_are_nothing() -> None:
    clip = _clip(_way((1, 1), (1, 5)), 33)
    for_a_moment = [None if 10 <= index < 13 else reading for index, reading in enumerate(clip)]
    assert _judged([Run(1, 5)], for_a_moment).finished
    for_good = [None if index >= 10 else reading for index, reading in enumerate(clip)]
    judged = _judged([Run(1, 5)], for_good)
    assert (judged.failure, judged.first_bad, judged.last_good) == ("scene_collapse", 10, 9)


def test_a_leap_is_not_a_slide() -> None:
    frames = [{"player": (1.0, 1.0)}] * 9 + [{"player": (1.0, 5.0)}] * 8
    judged = _judged([Run(1, 5)], [_seen(places) for places in frames])
    assert not judged.finished
    assert judged.last_good == 8


def test_a_candidate_that_waits_and_then_goes_on_is_finished() -> None:
    part = sample(_way((1, 1), (1, 3.4)), 12)
    rest = sample(_way((1, 3.4), (1, 5)), 12)
    frames = [*part, *[part[-1]] * 6, *rest[1:]]
    assert _judged([Run(1, 5)], [_seen(places) for places in frames]).finished


def test_a_clip_that_starts_under_way_is_judged_from_there() -> None:
    start = _seen({"player": (1.0, 2.4)})
    way = chain(MAZE, start, [Run(1, 5)])
    assert way.length == pytest.approx(2.6)
    assert judge(MAZE, way, _clip(_way((1, 2.4), (1, 5)), 17)).finished


def test_what_a_kept_prefix_did_is_not_done_again() -> None:
    actions = [Run(1, 5), Run(4, 5), Run(4, 6)]
    assert remaining(MAZE, _resting(OPEN), actions) == actions
    at = GridState(5, 7, OPEN.blocked, OPEN.goals, (1, 5))
    assert remaining(MAZE, _resting(at), actions) == actions[1:]
    assert remaining(MAZE, _seen({"player": (1.0, 4.6)}), actions) == actions[1:]
    done = GridState(5, 7, OPEN.blocked, OPEN.goals, (4, 6))
    assert remaining(MAZE, _resting(done), actions) == []
    assert remaining(MAZE, _seen({"player": (4.0, 5.6)}), actions) == [Run(4, 6)]


@pytest.mark.parametrize("name", ["maze", "trapfield", "sokoban", "sliding_puzzle", "hanoi", "sort_circles"])
def test_after_any_number_of_a_plans_actions_the_others_remain(name: str) -> None:
    world: Any = load(name)
    for seed in range(12):
        state = world.sample(np.random.default_rng(seed), "medium")
        plan = world.oracle_plan(state)
        for done in range(len(plan) + 1):
            assert remaining(world, _resting(state, world), plan) == plan[done:], f"seed {seed}, {done} done"
            assert world.done(state, plan[:done])
            assert done == len(plan) or not world.done(state, plan[: done + 1])
            state = world.step(state, plan[done]) if done < len(plan) else state


def test_a_box_that_was_pushed_twice_is_done_where_the_second_push_left_it() -> None:
    sokoban: Any = load("sokoban")
    pushes = [Push(2, 2, 2, 4), Walk(1, 4), Push(2, 4, 4, 4)]
    board = GridState(6, 7, frozenset(), frozenset({(4, 4)}), (3, 4), ((4, 4),))
    assert sokoban.done(board, pushes)
    assert sokoban.done(board, [Push(4, 1, 4, 4)])
    assert not sokoban.done(board, pushes[:1])
    assert not sokoban.done(board, [*pushes, Walk(1, 1)])
    two = GridState(6, 7, frozenset(), frozenset({(4, 4)}), (1, 4), ((2, 4), (4, 4)))
    assert not sokoban.done(two, pushes)  # the box that is meant is still at its start


@pytest.mark.parametrize(
    ("name", "action"),
    [("hanoi", Move(9, 0, 2)), ("sliding_puzzle", Slide(99, "up", 0, 0)), ("sort_circles", Place(9, 1))],
)
def test_what_a_picture_does_not_hold_is_not_done(name: str, action: Any) -> None:
    world: Any = load(name)
    assert not world.done(world.sample(np.random.default_rng(0), "medium"), [action])


def test_a_row_that_is_not_legal_is_refused() -> None:
    with pytest.raises(ValueError, match="action 2 of 2"):
        chain(MAZE, _resting(OPEN), [Run(1, 5), Run(0, 0)])
    assert outcome(MAZE, OPEN, Run(1, 1)) == OPEN


@given(st.integers(0, 10_000), st.integers(12, 97))
@settings(max_examples=25)
def test_the_oracle_plan_of_any_puzzle_is_judged_finished_and_any_alternative_is_not(
    seed: int, num_frames: int
) -> None:
    rng = np.random.default_rng(seed)
    state = PUZZLE.sample(rng, "medium")
    plan = PUZZLE.oracle_plan(state)[:2]
    start = _resting(state, PUZZLE)
    way = chain(PUZZLE, start, plan)

    def seen(places: Configuration) -> Reading:
        arrived = next((s for s in reversed(way.states) if PUZZLE.configuration(s) == dict(places)), None)
        return Reading(arrived or state, places, {} if arrived else {"tile": 0.5})

    clip = [seen(places) for places in sample(way.path, num_frames)]
    assert judge(PUZZLE, way, clip).finished
    for kind, wrong in PUZZLE.alternatives(state, plan[0]):
        full = [{**start.configuration, **waypoint} for waypoint in wrong]
        judged = judge(PUZZLE, way, [seen(places) for places in sample(full, num_frames)])
        assert not judged.finished
        assert judged.failure in (kind, "illegal_move")
        assert judged.last_good <= (0.5 if kind == "wrong_target" else 0.2) * num_frames + 1
