"""Tasks of procedural worlds as the command line names them."""

from __future__ import annotations

from typing import cast, get_args

from cliploop.commands.inputs import Asked
from media.pictures import encode_png
from orchestrator.errors import TaskRejected
from orchestrator.faults import suggest
from worlds.catalog import WORLDS, load
from worlds.sampling import Sample, sample
from worlds.world import Difficulty, World


def named_world(name: str) -> World:
    """The world of a name. Raises TaskRejected."""
    if name not in WORLDS:
        raise TaskRejected(f"no world {name!r}{suggest(name, WORLDS)}", reason="unknown_world")
    return load(name)


def named_sample(name: str, difficulty: str, seed: int) -> Sample:
    """The task of a world, a difficulty and a seed. Raises TaskRejected."""
    world = named_world(name)
    if difficulty not in get_args(Difficulty):
        meant = suggest(difficulty, get_args(Difficulty))
        raise TaskRejected(f"--difficulty: no {difficulty!r}{meant}", reason="unknown_difficulty")
    if seed < 0:
        raise TaskRejected(f"--seed {seed} is negative; give 0 or more", reason="usage")
    return sample(world, cast("Difficulty", difficulty), seed)


def sampled(name: str, difficulty: str, seed: int) -> Asked:
    """The same as an upload, for `cliploop run --world`."""
    task = named_sample(name, difficulty, seed)
    label = f"{name}-{difficulty}-{seed}"
    return Asked(picture=encode_png(task.frame), prompt=task.prompt, name=f"{label}.png", slug=label)
