"""Verbs of going: a piece that crosses, walks or makes its way to a place is the player of a grid."""

from __future__ import annotations

import numpy as np
import pytest

from worlds.catalog import understand
from worlds.grid_prompts import read_prompt
from worlds.world import Frame

CELL = 40
TRAPS = ((2, 0), (2, 1), (2, 2), (4, 5), (4, 4), (4, 3), (6, 1), (6, 2), (6, 3))  # column, row
SAID = (
    *("The {} {} the blue square.".format("{}", verb) for verb in (
        "crosses the field to", "moves to", "walks to", "travels to", "goes to", "gets to", "reaches",
        "makes its way to", "finds a way to", "finds its way to", "navigates to", "slides to", "runs to",
        "heads for", "proceeds to", "escapes to", "must cross the field to", "has to reach", "tries to get to",
        "arrives at", "hurries to", "marches across the field to", "passes through the field to", "flies to",
        "rushes towards", "is to reach", "will cross the field and stop on", "can reach", "enters",
        "carefully crosses the field and reaches", "crosses the field and ends on",
    )),
    "Take the {} to the blue square.",
    "Get the {} across the field to the blue square.",
    "Make the {} cross the field to the blue square.",
    "Let the {} walk to the blue square.",
    "Help the {} find the blue square.",
    "Find a way for the {} to the blue square.",
    "Plan a route for the {} to the blue square.",
    "Show the {} crossing the field to the blue square.",
    "The blue square is reached by the {}.",
    "The {} must be brought to the blue square.",
)  # fmt: skip
DANGERS = (" Black cells are lava; it must not touch any of them.", " The black squares are traps.")


def field() -> Frame:
    """A red circle in the first cell, black cells, a blue one in the last."""
    frame = np.full((6 * CELL, 8 * CELL, 3), (235, 245, 235), np.uint8)
    frame[::CELL] = frame[:, ::CELL] = (180, 190, 180)
    for (col, row), colour in [*((cell, (20, 20, 20)) for cell in TRAPS), ((7, 5), (70, 120, 230))]:
        frame[row * CELL + 1 : (row + 1) * CELL, col * CELL + 1 : (col + 1) * CELL] = colour
    rows, cols = np.ogrid[0:CELL, 0:CELL]
    frame[:CELL, :CELL][np.hypot(rows - CELL / 2, cols - CELL / 2) < 0.35 * CELL] = (220, 40, 40)
    return frame


@pytest.mark.parametrize("danger", DANGERS)
@pytest.mark.parametrize("said", SAID)
def test_what_goes_somewhere_is_the_player(said: str, danger: str) -> None:
    scene = understand(field(), said.format("red circle") + danger)
    assert scene is not None
    assert scene.world.name == "trapfield"
    assert scene.start.state.player == (0, 0)
    assert scene.start.state.goals == {(5, 7)}
    assert scene.start.state.blocked == {(row, col) for col, row in TRAPS}


@pytest.mark.parametrize(
    "prompt",
    [
        "Put the red cards in order.",
        "The tower is taken apart, ring by ring.",
        "Sort the red circle and the blue circle by size, left to right.",
        "Draw a blue square.",
    ],
)
def test_prompts_without_a_way_to_go_make_no_grid(prompt: str) -> None:
    assert not read_prompt(prompt).of("player")
    assert understand(field(), prompt) is None
