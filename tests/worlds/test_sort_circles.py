"""Circles drawn elsewhere are read, and the row that they belong in is the one of the benchmark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from PIL import Image

from worlds.circles_rules import Circles, Place, row
from worlds.sort_circles import WORLD
from worlds.world import Frame, Look

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
