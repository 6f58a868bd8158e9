"""What strategies are compared on: pictures that this project did not draw, and procedural tasks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from media.pictures import decode_png, encode_png
from media.uploads import normalise
from worlds.catalog import WORLDS, load, understand
from worlds.sampling import sample
from worlds.world import Difficulty, Scene

FOREIGN = ("vrbench/*/*", "vbvr/O-47*/*")
SIDE_PX = 256  # of procedural tasks: a quarter of the pixels of `cliploop run --world`, the same tasks
FOREIGN_SIDE_MAX = 512  # px; larger pictures are reduced by a whole number: the same tasks in affordable time


@dataclass(frozen=True)
class Subject:
    """One task. `num_actions`: the length of a shortest plan; with one there is nothing to plan."""

    name: str
    row: str  # the line of the table that it is counted in
    game: str
    png: bytes
    prompt: str
    num_actions: int


def foreign_cases(folder: Path) -> list[Subject]:
    """Every picture below `folder` that the built-in worlds read. Raises FileNotFoundError if there is none."""
    found = [case for pattern in FOREIGN for case in sorted(folder.glob(pattern))]
    if not found:
        raise FileNotFoundError(f"no cases below {folder}; run in a checkout, or name the folder with --cases")
    return [_foreign(case, folder) for case in found]


def _foreign(case: Path, folder: Path) -> Subject:
    png = _affordable(normalise((case / "first_frame.png").read_bytes()).png)
    prompt = (case / "prompt.txt").read_text(encoding="utf-8").strip()
    name = str(case.relative_to(folder))
    scene = scene_of(png, prompt)
    return Subject(name, name, scene.world.name, png, prompt, _num_actions(scene))


def _affordable(png: bytes) -> bytes:
    picture = Image.fromarray(decode_png(png))
    factor = math.ceil(max(picture.size) / FOREIGN_SIDE_MAX)
    return png if factor == 1 else encode_png(picture.reduce(factor))


def world_tasks(difficulty: Difficulty, seed: int) -> list[Subject]:
    """One task of each world."""
    return [_task(name, difficulty, seed) for name in WORLDS]


def _task(name: str, difficulty: Difficulty, seed: int) -> Subject:
    task = sample(load(name), difficulty, seed, side_px=SIDE_PX)
    actions = len(task.world.oracle_plan(task.state))
    return Subject(
        f"{name}/{difficulty}/{seed}", f"world {name}", name, encode_png(task.frame), task.prompt, actions
    )


def scene_of(png: bytes, prompt: str) -> Scene:
    """The scene that a first picture shows. Raises ValueError if no world reads it."""
    scene = understand(decode_png(png), prompt)
    if scene is None:
        raise ValueError("no built-in world reads this picture")
    return scene


def _num_actions(scene: Scene) -> int:
    return len(scene.world.oracle_plan(scene.start.state))
