"""Procedural tasks: from a world, a difficulty and a seed to a picture and a prompt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from worlds.world import Difficulty, Frame, Look, World

SIDE_PX = 512


@dataclass(frozen=True)
class Sample:
    """One task: its world, the state it starts in, and how it is shown."""

    world: World
    state: Any
    frame: Frame
    prompt: str


def sample(world: World, difficulty: Difficulty, seed: int, *, side_px: int = SIDE_PX) -> Sample:
    """The task of a seed (0 or more). State, look and wording have independent streams."""
    semantic, look, wording = np.random.SeedSequence(seed).spawn(3)
    state = world.sample(np.random.default_rng(semantic), difficulty)
    drawn = Look(seed=_number(look), side_px=side_px)
    return Sample(world, state, world.render(state, drawn), world.prompt(state, _number(wording)))


def _number(sequence: np.random.SeedSequence) -> int:
    return int(sequence.generate_state(1)[0])
