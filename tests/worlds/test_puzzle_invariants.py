"""What holds for the sliding puzzle, the circles and the towers alike, over many seeds and looks."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, cast

import av
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from worlds import hanoi, sliding_puzzle, sort_circles
from worlds.hanoi_reading import Legend as TowersLegend
from worlds.motion import move, sample
from worlds.sort_circles import Legend as CirclesLegend
from worlds.sort_circles import Place
from worlds.world import Configuration, Difficulty, Frame, Look, Reading, Scene, World

DATA = Path(__file__).parents[1] / "data"
WORLDS: list[World] = [sliding_puzzle.WORLD, sort_circles.WORLD, hanoi.WORLD]
LEVELS: tuple[Difficulty, ...] = ("easy", "medium", "hard")
worlds = pytest.mark.parametrize("world", WORLDS, ids=lambda world: cast(World, world).name)


def drawn(world: World, seed: int, side_px: int) -> tuple[Any, Look, Frame, Scene]:
    """A sampled state, its look, its picture, and the scene that the reader makes of it."""
    state = world.sample(np.random.default_rng(seed), LEVELS[seed % 3])
    look = Look(seed, side_px)
    frame = world.render(state, look)
    scene = world.understand(frame, world.prompt(state, seed, look))
    assert scene is not None, (world.name, seed, side_px)
    return state, look, frame, scene


def seen(scene: Scene, frame: Frame) -> Reading:
    reading = scene.read(frame)
    assert reading is not None
    return reading


def compressed(frame: Frame) -> Frame:
    """The frame after H.264 at CRF 23, yuv420p."""
    height, width = frame.shape[:2]
    even = np.pad(frame, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")
    packed = io.BytesIO()
    box = cast(Any, av).open(packed, "w", format="mp4")
    stream = box.add_stream("libx264", rate=16, options={"crf": "23"})
    stream.width, stream.height, stream.pix_fmt = even.shape[1], even.shape[0], "yuv420p"
    stream.thread_count = 1
    for _ in range(2):
        box.mux(stream.encode(av.VideoFrame.from_ndarray(even, format="rgb24")))
    box.mux(stream.encode())
    box.close()
    packed.seek(0)
    with cast(Any, av).open(packed) as shown:
        frames = [cast(Frame, frame.to_ndarray(format="rgb24")) for frame in shown.decode(video=0)]
    return frames[-1][:height, :width]


@worlds
def test_the_same_seed_draws_the_same_bytes_and_another_look_changes_only_the_picture(world: World) -> None:
    for seed in range(6):
        one, other = (world.sample(np.random.default_rng(seed), "medium") for _ in range(2))
        assert one == other
        assert (world.render(one, Look(3, 160)) == world.render(other, Look(3, 160))).all()
        assert world.prompt(one, seed) == world.prompt(other, seed)
    state = world.sample(np.random.default_rng(1), "medium")
    pictures = {world.render(state, Look(seed, 160)).tobytes() for seed in range(6)}
    assert len(pictures) > 3
    assert len({world.prompt(state, wording) for wording in range(6)}) > 2
    for look in range(6):
        scene = world.understand(world.render(state, Look(look, 256)), world.prompt(state, look))
        assert scene is not None
        assert scene.start.state == state
        assert world.answer(scene.start.state) == world.answer(state)
        assert world.oracle_plan(scene.start.state) == world.oracle_plan(state)


@worlds
@pytest.mark.parametrize("level", LEVELS)
def test_samples_are_never_solved_and_the_plan_is_legal_and_ends_in_the_goal(
    world: World, level: Difficulty
) -> None:
    for seed in range(12):
        state = world.sample(np.random.default_rng(seed), level)
        assert not world.goal(state)
        plan = world.oracle_plan(state)
        assert plan
        for action in plan:
            assert world.legal(state, action)
            assert world.step(world.step(state, action), action) == world.step(state, action)
            state = world.step(state, action)
        assert world.goal(state)
        assert world.oracle_plan(state) == []


@worlds
@pytest.mark.parametrize("side_px", [128, 1024])
def test_what_is_drawn_is_read_again_at_rest_and_after_compression(world: World, side_px: int) -> None:
    for seed in range(10 if side_px == 128 else 4):
        state, _, frame, scene = drawn(world, seed, side_px)
        for shown in (frame, compressed(frame)):
            reading = seen(scene, shown)
            assert reading.state == state, (seed, side_px)
            assert not reading.moving
            assert not reading.unreadable
        for piece, place in world.configuration(state).items():
            assert np.allclose(scene.start.configuration[piece], place, atol=0.08)


@worlds
def test_a_clip_cut_at_any_frame_can_be_read_and_continued_to_the_same_end(world: World) -> None:
    for seed in range(6):
        state, look, _, scene = drawn(world, seed, (160, 256, 512)[seed % 3])
        action = world.oracle_plan(state)[0]
        clip = world.animate(state, action, look, 13)
        after = world.step(state, action)
        assert (clip[0] == world.render(state, look)).all()
        assert (clip[-1] == world.render(after, look)).all()
        for cut in (1, 4, 6, 9, 11):
            reading = seen(scene, clip[cut])
            assert not reading.unreadable
            # a generator sees only this frame and the action's own words
            alone = world.understand(clip[cut], world.describe([action], scene.legend))
            assert alone is not None, (seed, cut)
            for knower, start in ((scene, reading), (alone, alone.start)):
                path = world.path(start.state, action, start.configuration)
                rest = move(knower, clip[cut], start, path, 6)
                assert (rest[0] == clip[cut]).all()
                end = seen(scene, rest[-1])
                # the action's sentence does not name the task's goal, so states are compared by their pieces
                assert world.configuration(end.state) == world.configuration(after), (seed, cut)
                assert not end.moving


@worlds
def test_positions_half_way_are_read_where_they_were_drawn(world: World) -> None:
    for seed in range(4):
        state, look, _, scene = drawn(world, seed, 256)
        path = world.path(state, world.oracle_plan(state)[0])
        for place in sample(path, 7)[1:-1]:
            found = seen(scene, world.render(state, look, place)).configuration
            for piece, position in place.items():
                assert np.allclose(found[piece], position, atol=0.08)


@worlds
def test_wrong_ways_differ_from_the_right_one_and_illegal_ones_are_forbidden(world: World) -> None:
    for seed in range(8):
        state = world.sample(np.random.default_rng(seed), "hard")
        action = world.oracle_plan(state)[0]
        right = world.path(state, action)
        assert not any(world.forbidden(state, place) for place in sample(right, 15))
        kinds: set[str] = set()
        for kind, path in world.alternatives(state, action):
            kinds.add(kind)
            assert not same_place(path[-1], right[-1])
            if kind == "illegal_move":
                assert any(world.forbidden(state, place) for place in sample(path, 15))
        assert "illegal_move" in kinds
        assert len(kinds) >= 2


def same_place(one: Configuration, other: Configuration) -> bool:
    return set(one) == set(other) and all(np.allclose(one[piece], other[piece]) for piece in one)


@worlds
def test_the_scorer_knows_the_truth_from_distractors(world: World) -> None:
    for seed in range(6):
        state = world.sample(np.random.default_rng(seed), "medium")
        kind, truth = world.answer(state)
        wrong = str(int(truth) + 1) if kind == "integer" else " ".join(reversed(truth.split())) + " 1"
        assert world.score(state, truth) == 1.0
        for distractor in (wrong, "", "unknown", "-1", "0"):
            assert world.score(state, distractor) == 0.0


@worlds
def test_other_pictures_are_not_taken_for_this_world(world: World) -> None:
    others = [other for other in WORLDS if other is not world]
    strangers = [drawn(other, seed, 200)[2] for other in others for seed in range(4)]
    noise = np.random.default_rng(0).integers(0, 256, (120, 160, 3)).astype(np.uint8)
    strangers += [noise, np.full((100, 100, 3), 255, np.uint8), np.zeros((64, 48, 3), np.uint8)]
    for path in sorted([*(DATA / "images").glob("*.[jp]*g"), *(DATA / "vrbench").glob("*/*/first_frame.png")]):
        if path.stem not in ("bomb_20000x20000", "truncated", "zero_bytes", "text_named"):
            with Image.open(path) as picture:
                picture.thumbnail((900, 900))
                strangers.append(np.asarray(picture.convert("RGB")))
    for index, frame in enumerate(strangers):
        assert world.understand(frame, "Solve the puzzle.") is None, index


@worlds
def test_a_scene_that_is_gone_is_not_read(world: World) -> None:
    _, _, frame, scene = drawn(world, 2, 256)
    noise = np.random.default_rng(1).integers(0, 256, frame.shape).astype(np.uint8)
    assert scene.read(noise) is None
    assert scene.read(np.full_like(frame, 127)) is None
    assert scene.read(frame[:-1]) is None


@worlds
def test_a_slight_shift_of_colours_does_not_disturb_the_reader(world: World) -> None:
    for seed in range(3):
        state, _, frame, scene = drawn(world, seed, 256)
        warm = np.clip(frame.astype(np.int16) + np.array([9, 0, -9]), 0, 255).astype(np.uint8)
        assert seen(scene, warm).state == state


@given(
    st.lists(st.tuples(st.integers(1, 35), st.integers(0, 3), st.integers(0, 5), st.integers(0, 5)), min_size=1)
)
@settings(max_examples=60)
def test_slides_are_spelled_and_parsed_alike(raw: list[tuple[int, int, int, int]]) -> None:
    world = sliding_puzzle.WORLD
    words = tuple(sliding_puzzle.STEPS)
    actions = [sliding_puzzle.Slide(tile, words[way], row, col) for tile, way, row, col in raw]
    for noun in ("tile", "block", "piece"):
        text = world.describe(actions, sliding_puzzle.Legend(noun))
        assert world.parse(text + " Keep the tile on the board; it must not overlap tile 3.") == actions


@given(st.lists(st.tuples(st.integers(1, 12), st.integers(1, 12)), min_size=1))
@settings(max_examples=60)
def test_circle_moves_are_spelled_and_parsed_alike(raw: list[tuple[int, int]]) -> None:
    actions = [Place(rank, slot) for rank, slot in raw]
    for legend in (CirclesLegend(), CirclesLegend(("sky blue", "red", "red"), "ascending")):
        text = sort_circles.WORLD.describe(actions, legend)
        assert sort_circles.WORLD.parse(text + " The circle must stop at position 2.") == actions


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 2), st.integers(0, 2)), min_size=1))
@settings(max_examples=60)
def test_disc_moves_are_spelled_and_parsed_alike(raw: list[tuple[int, int, int]]) -> None:
    actions = [hanoi.Move(disc, source, target) for disc, source, target in raw]
    text = hanoi.WORLD.describe(actions, TowersLegend())
    assert hanoi.WORLD.parse(text + " Make sure that disc 1 stays on peg A.") == actions


@worlds
def test_a_task_prompt_is_no_action_and_the_target_says_what_moved(world: World) -> None:
    for seed in range(6):
        state, look, _, scene = drawn(world, seed, 200)
        for wording in range(8):
            assert world.parse(world.prompt(state, wording, look)) == []
        plan = world.oracle_plan(state)
        assert (
            world.target(state, plan[:1], scene.legend) != world.target(state, plan, scene.legend)
            or len(plan) == 1
        )


def test_prompts_and_plans_of_towers_say_that_disc_1_is_the_smallest() -> None:
    world: Any = hanoi.WORLD
    for seed in range(12):
        state = world.sample(np.random.default_rng(seed), "medium")
        assert "disc 1 is the smallest" in world.prompt(state, seed).lower()
        plan = world.oracle_plan(state)
        for count in range(1, len(plan) + 1):
            told = world.describe(plan[-count:], None)
            assert told.count("smallest") == 1
            assert world.parse(told) == plan[-count:]
    assert world.parse("Disc 2 moves from peg A to peg B.") == [hanoi.Move(2, 0, 1)]
