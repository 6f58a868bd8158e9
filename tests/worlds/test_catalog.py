"""The catalog names worlds as strings and finds the one that a picture belongs to."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from worlds import catalog

DATA = Path(__file__).parents[1] / "data"


@pytest.mark.parametrize("name", ["maze", "trapfield", "sokoban"])
def test_a_world_is_loaded_by_its_name_and_bears_it(name: str) -> None:
    assert catalog.load(name).name == name
    assert catalog.load(name) is catalog.load(name)


def test_an_unknown_world_names_those_that_exist() -> None:
    with pytest.raises(KeyError, match="maze, trapfield, sokoban"):
        catalog.load("chess")


@pytest.mark.parametrize("game", ["maze", "trapfield", "sokoban"])
def test_a_picture_finds_its_world(game: str) -> None:
    folder = DATA / "vrbench" / game / "00000"
    with Image.open(folder / "first_frame.png") as image:
        frame = np.asarray(image.convert("RGB"), np.uint8).copy()
    scene = catalog.understand(frame, (folder / "prompt.txt").read_text())
    assert scene is not None
    assert scene.world.name == game


def test_a_blank_picture_belongs_to_none() -> None:
    assert (
        catalog.understand(np.full((64, 96, 3), 240, np.uint8), "Move the red ball to the green square.") is None
    )


def test_every_world_is_described_in_one_short_sentence() -> None:
    assert list(catalog.DESCRIPTIONS) == list(catalog.WORLDS)
    for name, told in catalog.DESCRIPTIONS.items():
        assert len(told) <= 100, name
        assert told.endswith("."), name
        assert "\n" not in told, name
    assert len(set(catalog.DESCRIPTIONS.values())) == len(catalog.WORLDS)
