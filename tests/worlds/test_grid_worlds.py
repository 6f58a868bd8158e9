"""Invariants of maze, trapfield and sokoban over many seeds, looks and wordings."""

from __future__ import annotations

import itertools
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from worlds import catalog
from worlds.chain import apart, chain
from worlds.grid import GridState
from worlds.motion import interpolate, sample
from worlds.world import Difficulty, Look, Reading, World

WORLDS = [catalog.load(name) for name in ("maze", "trapfield", "sokoban")]
DIFFICULTIES: tuple[Difficulty, ...] = get_args(Difficulty)
SEEDS = st.integers(0, 10_000)
worlds = pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.name)
few = settings(max_examples=6, deadline=None, derandomize=True)


def sampled(world: World, seed: int, difficulty: Difficulty) -> GridState:
    return world.sample(np.random.default_rng([seed, 5]), difficulty)


@worlds
@few
@given(seed=SEEDS, difficulty=st.sampled_from(DIFFICULTIES))
def test_the_plan_is_legal_and_ends_in_the_goal(world: World, seed: int, difficulty: Difficulty) -> None:
    state = sampled(world, seed, difficulty)
    assert not world.goal(state)
    for action in world.oracle_plan(state):
        assert world.legal(state, action)
        path = world.path(state, action)
        for waypoint in path:
            assert not world.forbidden(state, {**world.configuration(state), **waypoint})
        state = world.step(state, action)
        assert world.path(state, action) == []
    assert world.goal(state)
    assert world.oracle_plan(state) == []


@worlds
@few
@given(seed=SEEDS, difficulty=st.sampled_from(DIFFICULTIES), wording=SEEDS)
def test_same_seed_same_bytes_and_another_look_or_wording_changes_no_state(
    world: World, seed: int, difficulty: Difficulty, wording: int
) -> None:
    state = sampled(world, seed, difficulty)
    assert state == sampled(world, seed, difficulty)
    look = Look(seed=wording, side_px=160)
    assert np.array_equal(world.render(state, look), world.render(state, look))
    assert world.prompt(state, wording, look) == world.prompt(state, wording, look)
    for other in (Look(wording, 160), Look(wording + 1, 200)):
        scene = world.understand(world.render(state, other), world.prompt(state, wording, other))
        assert scene is not None
        assert scene.start.state == state
        assert world.oracle_plan(scene.start.state) == world.oracle_plan(state)


@worlds
@pytest.mark.parametrize("side_px", [128, 256, 1024])
def test_what_is_drawn_is_read_again_with_and_without_colours_in_the_prompt(world: World, side_px: int) -> None:
    for seed, difficulty in itertools.product(range(1 if side_px > 512 else 3), DIFFICULTIES):
        state = sampled(world, seed, difficulty)
        look = Look(seed=97 * seed + side_px, side_px=side_px)
        frame = world.render(state, look)
        assert max(frame.shape) == side_px
        prompts = [world.prompt(state, seed, look)] + ([world.prompt(state, seed)] if side_px > 128 else [])
        for told in prompts:
            scene = world.understand(frame, told)
            assert scene is not None, (seed, difficulty)
            assert scene.start.state == state, (seed, difficulty)
            assert scene.world is world


@worlds
@few
@given(seed=SEEDS, difficulty=st.sampled_from(DIFFICULTIES))
def test_sentences_and_actions_are_each_others_inverse(world: World, seed: int, difficulty: Difficulty) -> None:
    state = sampled(world, seed, difficulty)
    look = Look(seed, 192)
    prompt = world.prompt(state, seed, look)
    scene = world.understand(world.render(state, look), prompt)
    assert scene is not None
    plan = world.oracle_plan(state)
    for count in range(1, len(plan) + 1):
        told = world.describe(plan[:count], scene.legend)
        assert world.parse(told) == plan[:count]
        assert (
            world.parse(told + " Keep the same direction. Do not cross any wall. Stop exactly there.")
            == plan[:count]
        )
    assert world.parse(prompt) == []
    assert world.parse(world.prompt(state, seed)) == []
    assert world.target(state, plan[:1], scene.legend).startswith("The ")


@worlds
def test_other_words_around_the_places_are_understood(world: World) -> None:
    text = "The hero moves straight to row 3, column 4. It then travels to (row 3 column 1)."
    cells = [(action.row, action.col) for action in world.parse(text)]
    assert cells == [(2, 3), (2, 0)]
    assert world.parse("Go to row 0, column 2.") == []
    assert world.parse("Go on as before.") == []


@worlds
@few
@given(seed=SEEDS, difficulty=st.sampled_from(DIFFICULTIES))
def test_the_scorer_knows_the_truth_from_distractors(world: World, seed: int, difficulty: Difficulty) -> None:
    state = sampled(world, seed, difficulty)
    kind, answer = world.answer(state)
    assert kind == "actions"
    assert world.score(state, answer) == 1.0
    shorter = "; ".join(answer.split("; ")[:-1])
    for distractor in ("", shorter, "1,1", answer + "; 1,1; 1,1", "nonsense 3"):
        assert world.score(state, distractor) == 0.0


@worlds
@few
@given(seed=SEEDS, difficulty=st.sampled_from(DIFFICULTIES))
def test_wrong_ways_start_where_the_pieces_are_and_do_not_end_where_they_should(
    world: World, seed: int, difficulty: Difficulty
) -> None:
    state = sampled(world, seed, difficulty)
    for action in world.oracle_plan(state):
        wrong = world.alternatives(state, action)
        assert wrong
        rest = world.configuration(state)
        after = {**rest, **world.path(state, action)[-1]}
        for kind, path in wrong:
            assert {**rest, **path[0]} == rest
            if kind != "illegal_move":
                assert {**rest, **path[-1]} != after
            else:
                steps = [dict(point) for point in path]
                seen = [{**rest, **point} for point in _dense(steps)]
                assert any(world.forbidden(state, point) for point in seen)
        state = world.step(state, action)


def _dense(path: list[dict[str, tuple[float, float]]]) -> list[dict[str, tuple[float, float]]]:
    return [dict(point) for point in sample(path, 65)]


@worlds
@few
@given(seed=SEEDS, difficulty=st.sampled_from(DIFFICULTIES), share=st.floats(0.05, 0.95))
def test_a_move_that_was_cut_goes_on_to_the_same_end(
    world: World, seed: int, difficulty: Difficulty, share: float
) -> None:
    state = sampled(world, seed, difficulty)
    for action in world.oracle_plan(state):
        path = world.path(state, action)
        start = {**world.configuration(state), **interpolate(path, share)}
        rest = world.path(state, action, start)
        assert not rest or {**start, **rest[0]} == start
        end = {**start, **(rest[-1] if rest else {})}
        state = world.step(state, action)
        assert set(end) == set(world.configuration(state))
        if world.name != "sokoban":
            assert end == world.configuration(state)
        else:
            assert sorted(end.values()) == sorted(world.configuration(state).values())


@worlds
def test_an_illegal_action_is_refused(world: World) -> None:
    state = sampled(world, 1, "medium")
    wall = min(state.blocked)
    action = world.parse(f"to row {wall[0] + 1}, column {wall[1] + 1}")[0]
    assert not world.legal(state, action)
    with pytest.raises(ValueError, match=r"row|possible"):
        world.step(state, action)
    with pytest.raises(ValueError, match="no way"):
        world.path(state, action)


@worlds
def test_medium_tasks_need_several_actions(world: World) -> None:
    lengths = [len(world.oracle_plan(sampled(world, seed, "medium"))) for seed in range(12)]
    assert min(lengths) >= 4
    assert max(lengths) <= 8


def test_an_unreachable_goal_is_a_value_error() -> None:
    wall = frozenset((row, 1) for row in range(3))
    state = GridState(3, 3, wall, frozenset([(0, 2)]), (0, 0))
    with pytest.raises(ValueError, match="cannot be reached"):
        catalog.load("maze").oracle_plan(state)


@pytest.mark.parametrize("left", [0.02, 0.06, 0.09, 0.12, 0.2, 0.3, 0.45])
def test_a_box_that_is_nearly_at_rest_is_pushed_to_its_end(left: float) -> None:
    """Read in its last cell already, it has `left` cells to go: the same push finishes it."""
    world: Any = catalog.load("sokoban")
    state = world.sample(np.random.default_rng(3), "medium")
    look = Look(3, 192)
    scene = world.understand(world.render(state, look), world.prompt(state, 3, look))
    plan: list[Any] = world.oracle_plan(state)
    push = plan[-1]
    for action in plan:
        state = world.step(state, action)
    down, right = push.ahead
    rest = world.configuration(state)
    box = next(piece for piece, place in rest.items() if piece != "player" and place == push.to)
    moved = {piece: (rest[piece][0] - left * down, rest[piece][1] - left * right) for piece in ("player", box)}
    way = chain(world, Reading(state, {**rest, **moved}, moving={box: left}), [push])
    assert way.states == (state, state)
    assert apart(way.path[-1], rest) < 0.1
    assert world.target(state, [push], scene.legend).startswith("The ")
