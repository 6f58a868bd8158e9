"""The sliding puzzle in words: task prompts in several wordings, and what a foreign one says about the goal."""

from __future__ import annotations

import re
from typing import get_args

from worlds.sliding_rules import NOUNS, Board, Corner, Legend

WORDINGS = (
    "Solve this sliding puzzle: bring the numbered {noun}s into rising order, row by row from left to right and "
    "from top to bottom, with the blank space in the {corner} corner. Only a {noun} next to the blank space may "
    "move, one at a time, into it. Use exactly {moves}. The camera stays fixed and the grid does not change.",
    "The picture shows a {rows} by {cols} board of numbered {noun}s with one gap. Slide one {noun} at a time "
    "into the gap until the numbers read 1 to {last} in reading order and the gap is at the {corner}. The fewest "
    "moves are {count}; make no extra ones. Static camera, no cuts.",
    "Rearrange the {noun}s of this puzzle in {moves}. Each move pushes one {noun} that touches the empty cell "
    "into that cell. At the end the rows, read from the top, count upwards from 1, and the empty cell is in the "
    "{corner} corner. No {noun} may jump, turn, overlap another or change its number.",
    "Finish the puzzle. Goal: numbers in sequential order, filling each row from left to right, rows from top to "
    "bottom, the empty space at the {corner} corner. Rule: a {noun} adjacent to the empty space slides into it; "
    "nothing else moves. Number of moves: {count}. Keep the view fixed.",
)
_BLANK = r"(?:blank|empty|gap|hole|vacant|free|missing|open)"
_CORNER = r"(top|upper|bottom|lower)[\s-]*(?:most)?[\s-]*(left|right)"
_CORNER_TURNED = r"(left|right)[\s-]*(?:hand)?[\s-]*(top|upper|bottom|lower)"
_NOT_THE_GOAL = re.compile(r"\b(?:currently|now|starts?|starting|initial(?:ly)?|begins?|at first|shown)\b", re.I)
_TASK = re.compile(
    r"puzzle|sequential|numerical|ascending|rising order|in order|reading order|count upwards|arrange", re.I
)


def task(state: Board, count: int, wording: int) -> str:
    """The task prompt; `wording` picks template and noun."""
    template = WORDINGS[wording % len(WORDINGS)]
    return template.format(
        noun=("tile", "tile", "block", "piece")[(wording // len(WORDINGS)) % 4],
        corner=state.corner if wording % 2 else state.corner.replace("-", " "),
        moves="1 move" if count == 1 else f"{count} moves",
        count=count,
        rows=state.rows,
        cols=state.cols,
        last=state.rows * state.cols - 1,
    )


def goal_corner(prompt: str) -> Corner | None:
    """Where the prompt wants the blank: the corner named last in a sentence about it, if any."""
    found: Corner | None = None
    for sentence in re.split(r"(?<=[.;!?])\s|\n", prompt):
        if not re.search(_BLANK, sentence, re.I) or _NOT_THE_GOAL.search(sentence):
            continue
        named = [(match[1], match[2]) for match in re.finditer(_CORNER, sentence, re.I)]
        named += [(match[2], match[1]) for match in re.finditer(_CORNER_TURNED, sentence, re.I)]
        for vertical, side in named[-1:]:
            edge = "top" if vertical.lower() in ("top", "upper") else "bottom"
            found = next(corner for corner in get_args(Corner) if corner == f"{edge}-{side.lower()}")
    return found


def legend_of(prompt: str) -> Legend:
    """The prompt's own word for a tile (the one it uses most), and whether it states a puzzle."""
    counts = {noun: len(re.findall(rf"\b{noun}s?\b", prompt, re.I)) for noun in NOUNS[:3]}
    noun = max(counts, key=lambda key: counts[key])
    return Legend(noun if counts[noun] else "tile", bool(_TASK.search(prompt)))
