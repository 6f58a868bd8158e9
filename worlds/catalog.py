"""Every built-in world by name, and which of them a picture with its prompt belongs to."""

from __future__ import annotations

import importlib
from functools import lru_cache
from typing import cast

from worlds.world import Frame, Scene, World

WORLDS: dict[str, str] = {
    "maze": "worlds.maze:WORLD",
    "trapfield": "worlds.trapfield:WORLD",
    "sokoban": "worlds.sokoban:WORLD",
    "sliding_puzzle": "worlds.sliding_puzzle:WORLD",
    "sort_circles": "worlds.sort_circles:WORLD",
    "hanoi": "worlds.hanoi:WORLD",
}
# What each world is, in one line of at most 100 characters, for a reader who chooses one.
DESCRIPTIONS: dict[str, str] = {
    "maze": "A piece goes through a grid of walls to its goal, one straight run at a time.",
    "trapfield": "A piece crosses an open grid to its goal and never enters a trap, one straight run at a time.",
    "sokoban": "A player walks behind boxes and pushes them straight ahead until every target holds one.",
    "sliding_puzzle": "Numbered tiles slide into the one blank cell until they stand in order.",
    "sort_circles": "Circles lie anywhere and are brought, one by one, into a row sorted by size.",
    "hanoi": "Discs move between three pegs, one at a time, never onto a smaller one, until all are on one.",
}


@lru_cache
def load(name: str) -> World:
    """The world of that name. Raises KeyError, naming those that exist."""
    if name not in WORLDS:
        raise KeyError(f"no world is called {name!r}; there are {', '.join(WORLDS)}")
    module, attribute = WORLDS[name].split(":")
    return cast(World, getattr(importlib.import_module(module), attribute))


def understand(frame: Frame, prompt: str) -> Scene | None:
    """The scene that a first picture (H, W, 3) uint8 RGB and its prompt show; None if no world knows it.

    Of several worlds that read it, the one whose reading is surest.
    """
    scenes = [scene for name in WORLDS if (scene := load(name).understand(frame, prompt)) is not None]
    return max(scenes, key=lambda scene: scene.start.confidence, default=None)
