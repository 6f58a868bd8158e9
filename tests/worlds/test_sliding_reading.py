"""Sliding puzzles that this project did not draw are read from pixels and prompt alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import av
import numpy as np
import pytest
from PIL import Image

from tests.worlds import foreign_puzzles
from worlds.motion import move
from worlds.sliding_puzzle import WORLD
from worlds.world import Frame, Scene

CASES = Path(__file__).parents[1] / "data" / "vbvr" / "O-47_sliding_puzzle_data-generator"
VARIANTS = 72


def case(name: str) -> tuple[Frame, str, dict[str, Any]]:
    with Image.open(CASES / name / "first_frame.png") as picture:
        frame = np.asarray(picture.convert("RGB"))
    prompt = (CASES / name / "prompt.txt").read_text()
    return frame, prompt, cast("dict[str, Any]", json.loads((CASES / name / "metadata.json").read_text()))


def numbers(metadata: dict[str, Any], which: str) -> tuple[int, ...]:
    parameters = metadata["parameters"]
    tiles = [0] * parameters["size"] ** 2
    for thing in parameters["objects"]:
        row, col = thing[which]
        tiles[row * parameters["size"] + col] = thing["value"]
    return tuple(tiles)


def understood(frame: Frame, prompt: str) -> Scene:
    scene = WORLD.understand(frame, prompt)
    assert scene is not None
    return scene


@pytest.mark.parametrize("name", ["00000", "00001"])
def test_a_foreign_picture_gives_its_numbers_and_a_plan_of_the_named_length(name: str) -> None:
    frame, prompt, metadata = case(name)
    state = understood(frame, prompt).start.state
    assert state.tiles == numbers(metadata, "initial_position")
    plan = WORLD.oracle_plan(state)
    assert len(plan) == metadata["parameters"]["solution_length"]
    for action in plan:
        assert WORLD.legal(state, action)
        state = WORLD.step(state, action)
    assert state.tiles == numbers(metadata, "target_position")
    assert WORLD.parse(prompt) == []


@pytest.mark.parametrize("name", ["00000", "00001"])
def test_every_frame_of_a_foreign_video_is_read_and_every_slide_is_legal(name: str) -> None:
    frame, prompt, _ = case(name)
    scene = understood(frame, prompt)
    with av.open(str(CASES / name / "ground_truth.mp4")) as video:
        frames = [cast(Frame, shown.to_ndarray(format="rgb24")) for shown in video.decode(video=0)]
    before = scene.start.state
    for shown in frames:
        reading = scene.read(shown)
        assert reading is not None
        assert reading.unreadable == ()
        assert len(reading.moving) <= 1
        if not reading.moving and reading.state != before:
            moved = next(n for n in before.tiles if n and before.cell(n) != reading.state.cell(n))
            assert reading.state.cell(moved) == before.cell(0)
            before = reading.state
    assert WORLD.goal(before)


def test_the_mover_solves_a_foreign_puzzle_and_touches_only_swept_pixels() -> None:
    frame, prompt, _ = case("00001")
    scene = understood(frame, prompt)
    shown, reading = frame, scene.start
    touched = np.zeros(frame.shape[:2], np.bool_)
    for action in WORLD.oracle_plan(reading.state):
        clip = move(scene, shown, reading, WORLD.path(reading.state, action, reading.configuration), 5)
        touched |= (clip != clip[0]).any(axis=(0, 3))
        shown = clip[-1]
        found = scene.read(shown)
        assert found is not None
        reading = found
    assert WORLD.goal(reading.state)
    assert not reading.moving
    assert not touched[:340].any()  # the first row of tiles never moves


def test_boards_drawn_elsewhere_are_read_without_exception() -> None:
    missed: list[int] = []
    for variant in range(VARIANTS):
        puzzle = foreign_puzzles.draw(variant)
        scene = WORLD.understand(puzzle.frame, "Put the numbers in order, the blank ends bottom right.")
        if scene is None or scene.start.state.tiles != puzzle.tiles:
            missed.append(variant)
    assert missed == [], f"{VARIANTS - len(missed)} of {VARIANTS} read"


def test_a_puzzle_padded_or_made_smaller_by_a_canvas_is_still_read() -> None:
    frame, prompt, metadata = case("00000")
    padded = np.pad(frame, ((0, 0), (200, 320), (0, 0)), mode="edge")
    small = np.asarray(Image.fromarray(frame).resize((480, 480), Image.Resampling.LANCZOS))
    for picture in (padded, small):
        assert understood(picture, prompt).start.state.tiles == numbers(metadata, "initial_position")


@pytest.mark.parametrize(
    ("prompt", "corner"),
    [
        ("with the blank space at the bottom-right corner", "bottom-right"),
        (
            "The blank starts at the bottom right. At the end the empty cell is in the upper left corner.",
            "top-left",
        ),
        ("Order the tiles so that the top left corner is left empty.", "top-left"),
    ],
)
def test_the_prompt_says_where_the_blank_ends(prompt: str, corner: str) -> None:
    frame, _, _ = case("00001")
    assert understood(frame, prompt).start.state.corner == corner
