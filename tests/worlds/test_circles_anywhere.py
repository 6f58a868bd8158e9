"""Circles that lie anywhere, in the row's band too, are brought home without touching one another."""

from __future__ import annotations

import math

import numpy as np
import pytest

from worlds import circles_paths
from worlds.chain import chain
from worlds.circles_rules import UNIT, Aside, Circles, Place, piece, row
from worlds.circles_words import order_of
from worlds.judging import judge
from worlds.motion import move, sample
from worlds.sort_circles import WORLD
from worlds.world import Frame, Look

FIELDS = ((1024, 1024), (576, 1024), (768, 1024), (1024, 576))
BESIDE = Circles((576, 1024), (77, 61, 45, 28), ((141, 154), (154, 666), (358, 422), (384, 870)))
SWAPPED = Circles((1024, 1024), (110, 80, 50), ((512, 700), (512, 330), (200, 512)))


def scattered(seed: int) -> Circles:
    """A layout that can be anywhere in the picture, so that circles may cover one another's places."""
    rng = np.random.default_rng(seed)
    field = FIELDS[seed % 4]
    while True:
        count = int(rng.integers(2, 7))
        radii = sorted((int(r) for r in rng.choice(np.arange(24, 110, 6), count, replace=False)), reverse=True)
        places: list[tuple[int, int]] = []
        for radius in radii:
            for _ in range(100):
                place = tuple(int(rng.integers(radius + 4, side - radius - 3)) for side in field)
                gaps = [math.dist(place, p) - radius - r for p, r in zip(places, radii, strict=False)]
                if min(gaps, default=9.0) >= 9:
                    places.append((place[0], place[1]))
                    break
        if len(places) == count and 2 * sum(radii) + 16 * count < 0.8 * field[1]:
            return Circles(field, tuple(radii), tuple(places), "ascending" if seed % 3 else "descending")


def played(state: Circles, frame: Frame, prompt: str) -> int:
    """A perfect mover, which sees a frame and a sentence, judged exactly; how often a circle had to go aside."""
    scene = WORLD.understand(frame, prompt)
    assert scene is not None
    waits = 0
    for _ in range(3 * len(state.radii)):
        reading = scene.read(frame)
        assert reading is not None
        plan = WORLD.oracle_plan(reading.state)
        if not plan:
            break
        alone = WORLD.understand(frame, WORLD.describe(plan[:1], scene.legend))
        assert alone is not None
        path = WORLD.path(alone.start.state, plan[0], alone.start.configuration)
        clip = move(alone, frame, alone.start, path, 13)
        judged = judge(WORLD, chain(WORLD, reading, plan[:1]), [scene.read(shown) for shown in clip])
        assert judged.finished, (plan[0], judged)
        waits += isinstance(plan[0], Aside)
        frame = clip[-1]
    last = scene.read(frame)
    assert last is not None
    assert WORLD.goal(last.state)
    return waits


@pytest.mark.parametrize("seed", range(24))
def test_every_step_from_a_random_layout_is_accepted_and_reaches_the_goal(seed: int) -> None:
    state = scattered(seed)
    look = Look(seed, (256, 512)[seed // 4 % 2])
    played(state, WORLD.render(state, look), WORLD.prompt(state, seed, look))


@pytest.mark.parametrize(("state", "waits"), [(BESIDE, 0), (SWAPPED, 1)])
def test_a_circle_goes_around_its_neighbour_and_one_that_blocks_makes_room(state: Circles, waits: int) -> None:
    look = Look(0, 512)
    assert played(state, WORLD.render(state, look), WORLD.prompt(state, 0, look)) == waits


@pytest.mark.parametrize("seed", range(24))
def test_no_way_of_a_plan_comes_near_another_circle(seed: int) -> None:
    state = scattered(seed)
    for action in WORLD.oracle_plan(state):
        path = WORLD.path(state, action)
        here = WORLD.configuration(state)
        for rank, radius in enumerate(state.radii, start=1):
            reach = (radius + state.radii[action.rank - 1] + circles_paths.MARGIN) / UNIT - 0.01
            for place in sample(path, 25) if rank != action.rank else []:
                assert math.dist(place[piece(action.rank)], here[piece(rank)]) >= reach, (action, rank)
        state = WORLD.step(state, action)


def test_samples_of_our_own_need_no_circle_to_make_room() -> None:
    for seed in range(60):
        state = WORLD.sample(np.random.default_rng(seed), "hard")
        assert all(isinstance(action, Place) for action in WORLD.oracle_plan(state))


def test_making_room_is_spelled_and_parsed_alike() -> None:
    scene = WORLD.understand(WORLD.render(SWAPPED, Look(0, 512)), "Sort the circles from smallest to largest.")
    assert scene is not None
    actions = [Aside(2, 25, 80), Place(1, 3), Aside(1, 4, 9)]
    text = WORLD.describe(actions, scene.legend)
    assert WORLD.parse(text + " It waits at 30 % of the width.") == actions
    assert WORLD.parse(WORLD.target(SWAPPED, actions, scene.legend)) == []
    assert order_of(text) == "ascending"


def test_circles_that_leave_no_room_at_all_have_no_plan() -> None:
    tight = Circles((420, 1024), (200, 190), ((212, 800), (212, 230)))
    assert row(tight)[0][1] < 512
    with pytest.raises(ValueError, match="no room aside"):
        WORLD.oracle_plan(tight)
