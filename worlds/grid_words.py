"""Sentences about grid pictures: the words of a look or of a foreign prompt, actions, their targets, and back.

`row R, column C`, counted from 1, is the one fixed form: `parse` reads it whatever the words around it are.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from worlds.grid import Cell, Legend
from worlds.grid_kinds import Kind
from worlds.grid_looks import Style
from worlds.grid_prompts import Asked, Phrase
from worlds.legend import name_of

PLACE = r"row\s+(\d{1,3})\s*,?\s*(?:and\s+)?col(?:umn)?\s+(\d{1,3})"
TO = re.compile(r"\b(?:to|onto|into|at|on)\s+\(?" + PLACE, re.IGNORECASE)
ALIASES: dict[str, tuple[str, ...]] = {
    "circle": ("circle", "ball", "disc", "dot"),
    "square": ("square", "tile", "block"),
    "tile": ("square", "tile", "cell"),
    "diamond": ("diamond", "rhombus"),
    "triangle": ("triangle",),
    "star": ("star",),
    "ring": ("ring",),
}


def targets(text: str) -> list[Cell]:
    """Every "to row R, column C" of a text, in order, counted from 0; places counted from 0 are no places."""
    cells = [(int(match.group(1)) - 1, int(match.group(2)) - 1) for match in _moves(text)]
    return [cell for cell in cells if min(cell) >= 0]


def _moves(text: str) -> list[re.Match[str]]:
    return list(re.finditer(r"\bto\s+\(?" + PLACE, text, re.IGNORECASE))


def legend_of(
    asked: Asked, player: Kind, goal: Kind | None, floor: Kind, wall: Kind | None, box: Kind | None
) -> Legend:
    """The prompt's own words where it has them, else what the picture shows."""
    return Legend(
        player=_thing(asked.of("player"), player),
        goal=_thing(asked.of("goal"), goal) if goal else "goal",
        floor=_place(asked.of("floor"), floor),
        wall=_place(asked.of("wall"), wall) if wall else "walls",
        box=_thing(asked.of("box"), box) if box else "box",
    )


def _thing(phrases: Sequence[Phrase], kind: Kind) -> str:
    shape = kind.shape if kind.piece is not None and kind.shape else "square"
    for phrase in phrases:
        if phrase.colour is not None:
            return f"{phrase.colour.words} {phrase.shape or shape}"
    return f"{name_of(kind.colour)} {shape}"


def _place(phrases: Sequence[Phrase], kind: Kind) -> str:
    for phrase in phrases:
        if phrase.colour is not None:
            return f"{phrase.colour.words} {'x marks' if phrase.shape == 'cross' else 'squares'}"
    return f"{name_of(kind.tile)} squares"


class Words:
    """The words of one prompt: colours of a look, or none, in forms drawn from the wording's seed."""

    def __init__(self, style: Style | None, rng: np.random.Generator) -> None:
        self._style = style
        self._rng = rng
        self._grey = bool(rng.random() < 0.5)
        self.player = self._piece("player", style.player_shape if style else "", "player")
        self.goal = self._piece("goal", style.goal_shape if style else "", "goal")
        self.box = self._piece("box", style.box_shape if style else "", "box")
        self.floor = self._colour("floor")
        self.wall = self._colour("wall")

    @property
    def coloured(self) -> bool:
        return self._style is not None

    def _colour(self, role: str) -> str:
        if self._style is None:
            return ""
        name = self._style.name(role)
        return name.replace("gray", "grey") if self._grey else name

    def _piece(self, role: str, shape: str, plain: str) -> str:
        if self._style is None:
            return plain
        forms = ALIASES.get(shape, (shape,))
        return f"{self._colour(role)} {forms[int(self._rng.integers(len(forms)))]}"


def picked(forms: Sequence[str], rng: np.random.Generator) -> str:
    return forms[int(rng.integers(len(forms)))]
