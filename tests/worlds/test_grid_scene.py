"""Reading frames, cutting sprites and painting floor on grid pictures of our own and of others."""

from __future__ import annotations

import time

import numpy as np
import pytest

from tests.worlds.foreign_grids import foreign
from tests.worlds.video import round_trip
from worlds import catalog
from worlds.chain import chain, matched
from worlds.motion import move, paste, sample
from worlds.world import Configuration, Difficulty, Frame, Look, Scene, World

WORLDS = [catalog.load(name) for name in ("maze", "trapfield", "sokoban")]
worlds = pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.name)


def own(world: World, seed: int, side_px: int, difficulty: Difficulty = "medium") -> tuple[Scene, Frame, Look]:
    state = world.sample(np.random.default_rng([seed, 11]), difficulty)
    look = Look(seed=31 * seed + side_px, side_px=side_px)
    frame = world.render(state, look)
    scene = world.understand(frame, world.prompt(state, seed, look))
    assert scene is not None
    return scene, frame, look


def error(seen: Configuration, true: Configuration) -> float:
    names = matched(seen, true)
    assert len(names) == len(true)
    return max(max(abs(seen[a][0] - true[b][0]), abs(seen[a][1] - true[b][1])) for a, b in names.items())


@worlds
@pytest.mark.parametrize("side_px", [128, 301, 1024])
def test_pieces_under_way_are_seen_where_they_are_even_after_video(world: World, side_px: int) -> None:
    for seed in (0, 1):
        scene, _, look = own(world, seed, side_px)
        state = scene.start.state
        action = world.oracle_plan(state)[0]
        frames = world.animate(state, action, look, 7)
        path = [world.configuration(state), *world.path(state, action)]
        for pictures in (frames, round_trip(frames)):
            readings = [scene.read(picture) for picture in pictures]
            for reading, true in zip(readings, sample(path, 7), strict=True):
                assert reading is not None
                assert not reading.unreadable
                pitch = scene.pixel((1.0, 0.0))[0] - scene.pixel((0.0, 0.0))[0]
                assert error(reading.configuration, true) < max(
                    0.1, 2.5 / pitch
                )  # px after video in the smallest cells
            assert readings[0] is not None
            assert readings[-1] is not None
            assert readings[0].state == state
            assert readings[-1].state == world.step(state, action)


@worlds
def test_a_first_picture_that_went_through_video_is_still_understood(world: World) -> None:
    for seed in range(2):
        scene, frame, look = own(world, seed, 255, "hard")
        aged = round_trip(frame[np.newaxis])[0]
        again = world.understand(aged, world.prompt(scene.start.state, seed, look))
        assert again is not None
        assert again.start.state == scene.start.state


@worlds
def test_a_plan_carried_out_in_cut_pieces_ends_in_the_goal_and_touches_nothing_else(world: World) -> None:
    rng = np.random.default_rng(8)
    for seed in (0, 3):
        scene, frame, _ = own(world, seed, 320)
        first, state = frame, scene.start.state
        swept = np.zeros(frame.shape[:2], bool)
        for action in world.oracle_plan(state):
            for share in (float(rng.uniform(0.2, 0.8)), 1.0):
                reading = scene.read(frame)
                assert reading is not None
                path = world.path(state, action, reading.configuration)
                frames = move(scene, frame, reading, path, 17)
                assert np.array_equal(frames[0], frame)
                frame = frames[round(16 * share)]
                swept |= _around(scene, [*path, reading.configuration], frame)
            state = world.step(state, action)
            reading = scene.read(frame)
            assert reading is not None
            assert reading.state == state
            assert not reading.moving
        assert world.goal(state)
        assert np.array_equal(frame[~swept], first[~swept])


def _around(scene: Scene, path: list[Configuration], frame: Frame) -> np.ndarray:
    """The cells that a path sweeps, as a mask."""
    mask = np.zeros(frame.shape[:2], bool)
    side = scene.pixel((1.0, 0.0))[0] - scene.pixel((0.0, 0.0))[0] + 1
    for configuration in sample(path, 65):
        for position in configuration.values():
            top, left = scene.pixel(position)
            mask[max(0, top) : top + side, max(0, left) : left + side] = True
    return mask


@worlds
def test_a_piece_keeps_its_pixels_over_forty_moves_even_when_the_scene_is_made_anew(world: World) -> None:
    scene, frame, look = own(world, 2, 256)
    prompt = world.prompt(scene.start.state, 2, look)
    before = scene.sprites(frame, scene.start, ["player"])["player"]
    state, start = scene.start.state, scene.start.configuration["player"]
    place = next(
        way
        for way in ((0, 1), (0, -1), (1, 0), (-1, 0))
        if state.free((state.player[0] + way[0], state.player[1] + way[1]))
    )
    beside = (start[0] + place[0], start[1] + place[1])
    for turn in range(40):
        if turn % 10 == 0:
            again = world.understand(frame, prompt)
            assert again is not None
            scene = again
        reading = scene.read(frame)
        assert reading is not None
        here = reading.configuration["player"]
        there = beside if turn % 2 == 0 else start
        frame = move(scene, frame, reading, [{"player": here}, {"player": there}], 5)[-1]
    reading = scene.read(frame)
    assert reading is not None
    after = scene.sprites(frame, reading, ["player"])["player"]
    assert (after.top, after.left) == (before.top, before.left)
    assert np.array_equal(after.mask, before.mask)
    assert np.array_equal(after.pixels[after.mask], before.pixels[before.mask])


@worlds
def test_a_frame_that_collapsed_is_none_or_says_what_it_could_not_read(world: World) -> None:
    scene, frame, _ = own(world, 4, 256)
    rng = np.random.default_rng(2)
    other = foreign("maze", 5).frame
    smeared = frame.copy()
    for _ in range(40):
        smeared = ((smeared.astype(np.int32) + np.roll(smeared, 2, 0) + np.roll(smeared, 2, 1)) // 3).astype(
            np.uint8
        )
    broken = frame.copy()
    cell = scene.pixel((2.0, 2.0)), scene.pixel((4.0, 4.0))
    broken[cell[0][0] : cell[1][0], cell[0][1] : cell[1][1]] = (255, 0, 255)
    for bad in (rng.integers(0, 256, frame.shape, dtype=np.uint8), np.zeros_like(frame), smeared, broken, other):
        reading = scene.read(bad)
        assert reading is None or (reading.unreadable and reading.confidence < 0.5)


@worlds
def test_a_frame_without_the_player_or_with_two_is_not_read_as_one_with_a_player(world: World) -> None:
    scene, frame, _ = own(world, 6, 256)
    bare = scene.without(frame, scene.start, ["player"])
    reading = scene.read(bare)
    assert reading is None or "player" in reading.unreadable
    sprite = scene.sprites(frame, scene.start, ["player"])["player"]
    state = scene.start.state
    free = next(
        (row, col)
        for row in range(state.rows)
        for col in range(state.cols)
        if state.free((row, col)) and max(abs(row - state.player[0]), abs(col - state.player[1])) > 1
    )
    here, there = (
        scene.pixel((float(state.player[0]), float(state.player[1]))),
        scene.pixel((float(free[0]), float(free[1]))),
    )
    double = frame.copy()
    paste(double, sprite, (there[0] - here[0], there[1] - here[1]))
    reading = scene.read(double)
    assert reading is None or "player" in reading.unreadable


@worlds
@pytest.mark.parametrize("drift", ["darker", "grayer", "warmer"])
def test_slow_colour_drift_does_not_blind_the_reader(world: World, drift: str) -> None:
    scene, _, look = own(world, 7, 256)
    state = scene.start.state
    action = world.oracle_plan(state)[0]
    last = world.animate(state, action, look, 3)[-1].astype(np.float32)
    if drift == "darker":
        last *= 0.88
    elif drift == "grayer":
        last = 0.85 * last + 0.15 * last.mean(axis=2, keepdims=True)
    else:
        last = last * np.array([1.0, 0.95, 0.9], np.float32)
    reading = scene.read(np.clip(last, 0, 255).astype(np.uint8))
    assert reading is not None
    assert reading.state == world.step(state, action)


@worlds
def test_a_frame_is_read_in_milliseconds(world: World) -> None:
    scene, frame, _ = own(world, 1, 512)
    scene.read(frame)
    times: list[float] = []
    for _ in range(15):
        begun = time.process_time()
        scene.read(frame)
        times.append(time.process_time() - begun)
    assert min(times) < 0.005


@pytest.mark.parametrize(("seed", "side_px", "frames"), [(4, 320, (1, 8, 9, 14)), (3, 224, (2, 9))])
def test_a_picture_with_a_piece_under_way_is_read_as_a_first_picture_too(
    seed: int, side_px: int, frames: tuple[int, ...]
) -> None:
    world = catalog.load("sokoban")
    state = world.sample(np.random.default_rng(seed), ("easy", "medium", "hard")[seed % 3])
    look = Look(seed=seed, side_px=side_px)
    picture, prompt = world.render(state, look), world.prompt(state, seed, look)
    known = catalog.understand(picture, prompt)
    assert known is not None
    path = chain(world, known.start, world.oracle_plan(state)[:3]).path
    clip = move(known, picture, known.start, path, 16)
    for index in frames:
        here = known.read(clip[index])
        scene = catalog.understand(clip[index], prompt)
        assert here is not None
        assert scene is not None, index
        assert (scene.world.name, len(scene.start.state.boxes)) == ("sokoban", len(state.boxes))
        assert scene.start.state.blocked == state.blocked
        seen = scene.read(clip[index])
        assert seen is not None
        for piece, place in here.configuration.items():
            assert seen.configuration[piece] == pytest.approx(place, abs=0.1)
