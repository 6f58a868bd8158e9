"""Circles drawn elsewhere are read, and the row that they belong in is the one of the benchmark."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from PIL import Image

from tests.worlds.video import round_trip
from worlds.circles_rules import Circles, Place, row
from worlds.sort_circles import WORLD
from worlds.world import Difficulty, Frame, Look

CASE = (
    Path(__file__).parents[1]
    / "data"
    / "vbvr"
    / "G-174_arrange_circles_by_circumference_data-generator"
    / "00000"
)


def picture(name: str) -> Frame:
    with Image.open(CASE / name) as shown:
        return np.asarray(shown.convert("RGB"))


def test_a_foreign_picture_gives_radii_places_and_the_row_of_its_metadata() -> None:
    prompt = (CASE / "prompt.txt").read_text()
    scene = WORLD.understand(picture("first_frame.png"), prompt)
    assert scene is not None
    state = scene.start.state
    known = cast("dict[str, Any]", json.loads((CASE / "metadata.json").read_text()))["parameters"]["circles"]
    assert state.radii == tuple(circle["radius"] for circle in known)
    assert np.abs(np.array(state.places)[:, ::-1] - [circle["initial_position"] for circle in known]).max() <= 2
    assert [(x, y) for y, x in row(state)] == [tuple(circle["final_position"]) for circle in known]
    assert sorted(action.rank for action in WORLD.oracle_plan(state)) == [1, 2, 3, 4, 5, 6]
    assert WORLD.parse(prompt) == []
    last = scene.read(picture("final_frame.png"))
    assert last is not None
    assert WORLD.goal(last.state)


@pytest.mark.parametrize(
    ("words", "first"),
    [("from largest to smallest", 1), ("from the smallest to the largest", 2), ("in ascending order of size", 2)],
)
def test_the_prompt_says_which_end_the_largest_belongs_to(words: str, first: int) -> None:
    state = Circles((1024, 1024), (80, 40), ((200, 200), (800, 800)))
    scene = WORLD.understand(WORLD.render(state, Look(0, 256)), f"Sort the circles {words}, left to right.")
    assert scene is not None
    assert Place(first, 1) in WORLD.oracle_plan(scene.start.state)


def _small(seed: int, side_px: int) -> tuple[Circles, Frame, str]:
    levels: tuple[Difficulty, ...] = ("easy", "medium", "hard")
    state = WORLD.sample(np.random.default_rng(seed), levels[seed % 3])
    look = Look(seed, side_px)
    return state, WORLD.render(state, look), WORLD.prompt(state, seed, look)


@pytest.mark.parametrize("side_px", [128, 144, 160, 200, 224])
def test_small_pictures_of_any_size_are_understood(side_px: int) -> None:
    for seed in range(30):
        state, frame, prompt = _small(seed, side_px)
        scene = WORLD.understand(frame, prompt)
        assert scene is not None, seed
        assert scene.start.state == state, seed


@pytest.mark.parametrize("side_px", [128, 224])
@pytest.mark.parametrize("seed", [0, 1, 4, 7, 10, 15, 17, 18, 19])
def test_a_small_picture_frayed_by_compression_is_understood(seed: int, side_px: int) -> None:
    state, frame, prompt = _small(seed, side_px)
    buffer = io.BytesIO()
    Image.fromarray(frame).save(buffer, "JPEG", quality=75)
    photo = np.asarray(Image.open(buffer).convert("RGB")).copy()
    for lossy in (photo, round_trip(np.stack([frame, frame]), crf=23)[-1]):
        scene = WORLD.understand(lossy, prompt)
        assert scene is not None
        assert WORLD.oracle_plan(scene.start.state) == WORLD.oracle_plan(state)
