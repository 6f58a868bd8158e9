"""What the simulated generator makes of a shot: the scene in the start frame, the actions in the prompt.

It sees only these two, as a real one does.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from worlds.catalog import WORLDS, load, understand
from worlds.chain import remaining
from worlds.grid_midway import resting
from worlds.world import Action, Frame, Reading, Scene, World

LONG = 120  # characters: no single action takes more
TASK = re.compile(
    r"\b(?:goal|reach\w*|exit|target|destination|solve\w*|complete\w*|puzzle|sort\w*|arrange\w*|order|finish\w*|"
    r"stop(?:s|ping)?|rest(?:s|ing)?|push(?:es|ed)?|tower|hanoi|stack\w*|guide|lead|find|largest|smallest)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Seen:
    """A shot understood. `actions` are still to be done; `instructed`: the prompt names them, it is no task."""

    scene: Scene
    reading: Reading
    actions: tuple[Action, ...]
    instructed: bool
    corrected: bool = False


def see(frame: Frame, prompt: str) -> Seen | None:
    """Understand a shot; None if the picture or the prompt makes no sense. `frame`: (H, W, 3) uint8 RGB."""
    worlds = [world for name in WORLDS if (world := load(name)).parse(prompt)]
    if not worlds:
        return _task(frame, prompt)
    for picture in (resting(frame, prompt), frame):
        if picture is None:
            continue
        scenes = [scene for world in worlds if (scene := world.understand(picture, prompt)) is not None]
        if scenes:
            return _instructed(max(scenes, key=lambda scene: scene.start.confidence), frame, picture, prompt)
    return None


def _instructed(scene: Scene, frame: Frame, picture: Frame, prompt: str) -> Seen | None:
    reading = scene.start if picture is frame else scene.read(frame)
    if reading is None:
        return None
    asked = scene.world.parse(prompt)
    actions = remaining(scene.world, reading, asked)
    return Seen(scene, reading, tuple(actions), True, _has_correction(scene.world, prompt))


def _task(frame: Frame, prompt: str) -> Seen | None:
    """A task prompt is the whole plan; a short prompt that names no aim is an action that was not understood."""
    is_task = len(prompt) >= LONG or TASK.search(prompt)
    scene = understand(frame, prompt) if is_task else None
    if scene is None:
        return None
    try:
        actions = scene.world.oracle_plan(scene.start.state)
    except ValueError:
        return None
    return Seen(scene, scene.start, tuple(actions), False)


def _has_correction(world: World, prompt: str) -> bool:
    """Whether the prompt says more than its actions."""
    return any(not world.parse(sentence) for sentence in re.split(r"(?<=[.!?])\s+", prompt.strip()) if sentence)
