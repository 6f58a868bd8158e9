"""A tile that slides is followed pixel by pixel, and no other tile is taken for it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from worlds.catalog import load
from worlds.motion import interpolate, move
from worlds.world import Frame, Look, Scene

CASES = Path(__file__).parents[1] / "data" / "vbvr" / "O-47_sliding_puzzle_data-generator"
PUZZLE = load("sliding_puzzle")


def foreign(name: str) -> tuple[Frame, str]:
    picture = np.array(Image.open(CASES / name / "first_frame.png").convert("RGB"))
    return picture, (CASES / name / "prompt.txt").read_text()


def own(seed: int) -> tuple[Frame, str]:
    state = PUZZLE.sample(np.random.default_rng(seed), "medium")
    return PUZZLE.render(state, Look(seed=seed, side_px=220)), PUZZLE.prompt(state, seed)


def follow(scene: Scene, frame: Frame, slides: int, num_frames: int) -> None:
    """Slide along the plan and compare every frame's reading with where the tile was put."""
    for action in PUZZLE.oracle_plan(scene.start.state)[:slides]:
        reading = scene.read(frame)
        assert reading is not None
        path = PUZZLE.path(reading.state, action)
        frames = move(scene, frame, reading, path, num_frames)
        for index, shown in enumerate(frames):
            seen = scene.read(shown)
            assert seen is not None
            truth = {**reading.configuration, **interpolate(path, index / (num_frames - 1))}
            for piece, place in truth.items():
                assert seen.configuration[piece] == pytest.approx(place, abs=0.06), (action, index, piece)
        frame = frames[-1]


@pytest.mark.parametrize("name", ["00000", "00001"])
def test_a_foreign_tile_is_followed_from_its_first_pixel(name: str) -> None:
    picture, prompt = foreign(name)
    scene = PUZZLE.understand(picture, prompt)
    assert scene is not None
    follow(scene, picture, slides=11, num_frames=25)


@pytest.mark.parametrize("seed", range(12))
def test_a_tile_of_any_look_is_followed_from_its_first_pixel(seed: int) -> None:
    picture, prompt = own(seed)
    scene = PUZZLE.understand(picture, prompt)
    assert scene is not None
    follow(scene, picture, slides=6, num_frames=41)
