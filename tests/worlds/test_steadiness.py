"""A melting picture is noticed at once; moved pieces, drift of colour and compression are not taken for it."""

from __future__ import annotations

import numpy as np
import pytest

from generators.effects import collapse, drift
from worlds.catalog import WORLDS, load
from worlds.motion import move
from worlds.steadiness import is_steady
from worlds.world import Frames, Look, Scene


def clip(name: str, seed: int) -> tuple[Scene, Frames]:
    world = load(name)
    state = world.sample(np.random.default_rng(seed), "medium")
    look = Look(seed=seed, side_px=240)
    picture = world.render(state, look)
    scene = world.understand(picture, world.prompt(state, seed, look))
    assert scene is not None
    action = world.oracle_plan(scene.start.state)[0]
    return scene, move(scene, picture, scene.start, world.path(scene.start.state, action), 17)


@pytest.mark.parametrize("name", list(WORLDS))
@pytest.mark.parametrize("seed", [3, 4, 5])
def test_a_clip_of_a_moving_piece_is_steady_with_drifting_colours_too(name: str, seed: int) -> None:
    scene, frames = clip(name, seed)
    frames = frames.copy()
    drift(frames, 10.0, np.random.default_rng(seed))
    for frame in frames:
        reading = scene.read(frame)
        assert reading is not None
        assert is_steady(scene, frames[0], scene.start, frame, reading)


@pytest.mark.parametrize("name", list(WORLDS))
@pytest.mark.parametrize("seed", [3, 4, 5])
def test_the_first_melting_frame_is_not_steady(name: str, seed: int) -> None:
    scene, frames = clip(name, seed)
    frames = frames.copy()
    collapse(frames, 8, np.random.default_rng(seed))
    assert not is_steady(scene, frames[0], scene.start, frames[8], scene.read(frames[8]) or scene.start)
    assert is_steady(scene, frames[0], scene.start, frames[7], scene.read(frames[7]) or scene.start)
