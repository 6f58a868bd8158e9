"""The sliding puzzle: numbered tiles and one blank; an action slides one tile into the blank.

Pictures are drawn in `sliding_drawing`, read in `sliding_reading`, solved in `sliding_solver`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import get_args

import numpy as np

from orchestrator.records import FailureKind
from worlds import sliding_drawing, sliding_reading, sliding_words
from worlds.chain import followed
from worlds.motion import sample as sample_path
from worlds.sliding_rules import (
    NOUNS,
    STEPS,
    Board,
    Corner,
    Direction,
    Legend,
    Slide,
    ordered,
    piece,
    slide_of,
    slides,
)
from worlds.sliding_solver import solve
from worlds.world import Configuration, Difficulty, Frame, Frames, Look, Position, Scene

# (rows, cols) and least and most moves by difficulty
SIZES: dict[Difficulty, tuple[tuple[tuple[int, int], ...], tuple[int, int]]] = {
    "easy": (((2, 2), (3, 3), (3, 3), (2, 3)), (1, 3)),
    "medium": (((3, 3), (3, 3), (4, 4), (3, 4)), (4, 7)),
    "hard": (((3, 3), (4, 4), (4, 4), (5, 5)), (8, 14)),
}
SENTENCE = re.compile(
    r"(?:^|(?<=[.!?\n]))\s*(?:then\s+)?(?:" + "|".join(NOUNS) + r")\s+(\d{1,2})\s+slides\s+(up|down|left|right)"
    r"\s+into\s+the\s+blank\s+space\s+at\s+row\s+(\d{1,2}),\s+column\s+(\d{1,2})\.",
    re.IGNORECASE,
)


class SlidingPuzzle:
    """Implements `worlds.world.World`."""

    name = "sliding_puzzle"

    def sample(self, rng: np.random.Generator, difficulty: Difficulty) -> Board:
        """A board as many moves from its goal as the difficulty says."""
        sizes, (least, most) = SIZES[difficulty]
        rows, cols = sizes[int(rng.integers(len(sizes)))]
        corner: Corner = "top-left" if rng.random() < 0.15 else "bottom-right"
        wanted = int(rng.integers(least, most + 1))
        goal = Board(rows, cols, ordered(rows, cols, corner), corner)
        while True:
            board, came = goal, 0
            for _ in range(wanted):
                moves = [move for move in slides(board) if move.tile != came]
                move = moves[int(rng.integers(len(moves)))]
                board, came = self.step(board, move), move.tile
            if least <= len(self.oracle_plan(board)) <= most:
                return board

    def legal(self, state: Board, action: Slide) -> bool:
        """A slide into the blank next door; also a repeated one, whose tile is there already."""
        if action.tile < 1 or action.tile not in state.tiles:
            return False
        there = state.at(action.row, action.col)
        if there == action.tile:
            return True
        row, col = state.cell(action.tile)
        return there == 0 and abs(row - action.row) + abs(col - action.col) == 1

    def step(self, state: Board, action: Slide) -> Board:
        """The board after a slide; ValueError if it is not legal."""
        if not self.legal(state, action):
            raise ValueError(f"tile {action.tile} cannot slide to row {action.row + 1}, column {action.col + 1}")
        tiles = list(state.tiles)
        here, there = tiles.index(action.tile), action.row * state.cols + action.col
        if here != there:
            tiles[here], tiles[there] = 0, action.tile
        return Board(state.rows, state.cols, tuple(tiles), state.corner)

    def done(self, state: Board, actions: Sequence[Slide]) -> bool:
        """Whether every tile is in the cell of its last slide."""
        last = {action.tile: (action.row, action.col) for action in actions}
        return all(tile > 0 and state.at(*cell) == tile for tile, cell in last.items())

    def goal(self, state: Board) -> bool:
        """Whether every number is in order."""
        return state.tiles == ordered(state.rows, state.cols, state.corner)

    def oracle_plan(self, state: Board) -> list[Slide]:
        """A shortest solution; ValueError where none exists or it is out of reach."""
        plan: list[Slide] = []
        for number in solve(state.tiles, ordered(state.rows, state.cols, state.corner), state.cols):
            plan.append(slide_of(state, number))
            state = self.step(state, plan[-1])
        return plan

    def configuration(self, state: Board) -> Configuration:
        """(row, column) per tile."""
        cells = {number: divmod(index, state.cols) for index, number in enumerate(state.tiles) if number}
        return {piece(number): (float(row), float(col)) for number, (row, col) in sorted(cells.items())}

    def path(self, state: Board, action: Slide, start: Configuration | None = None) -> list[Configuration]:
        """Straight to the target; a tile that is off its row or column goes back to it first."""
        if action.tile < 1 or action.tile not in state.tiles:
            raise ValueError(f"there is no tile {action.tile} on this board")
        seen = (start or {}).get(piece(action.tile), self.configuration(state)[piece(action.tile)])
        others = _settling(self.configuration(state), start, piece(action.tile))
        points = [seen, *_approach(seen, (float(action.row), float(action.col)))]
        if not others:
            return [{piece(action.tile): point} for point in points]
        before = {name: place for name, (place, _) in others.items()}
        after = {name: place for name, (_, place) in others.items()}
        return [{piece(action.tile): seen, **before}, *({piece(action.tile): point, **after} for point in points)]

    def alternatives(self, state: Board, action: Slide) -> list[tuple[FailureKind, list[Configuration]]]:
        """Another tile slides in; the tile goes over a neighbour; a neighbour goes over it; it goes too far."""
        here = self.configuration(state)
        row, col = here[piece(action.tile)]
        found: list[tuple[FailureKind, list[Configuration]]] = []
        for other in slides(state):
            if other.tile != action.tile:
                found.append(("wrong_action", self.path(state, other)))
        for down, right in STEPS.values():
            there = state.at(int(row) + down, int(col) + right)
            target: Position = (row + down, col + right)
            if there is not None and there > 0:
                found.append(
                    ("wrong_direction", [{piece(action.tile): (row, col)}, {piece(action.tile): target}])
                )
        for number in sorted(set(state.tiles) - {0, action.tile}):
            away = here[piece(number)]
            for down, right in STEPS.values():
                neighbour = state.at(int(away[0]) + down, int(away[1]) + right)
                if neighbour == action.tile:
                    target = (away[0] + down, away[1] + right)
                    found.append(("illegal_move", [{piece(number): away}, {piece(number): target}]))
        beyond: Position = (2.0 * action.row - row, 2.0 * action.col - col)
        if (state.at(int(beyond[0]), int(beyond[1])) or 0) > 0:
            found.append(("wrong_target", [{piece(action.tile): (row, col)}, {piece(action.tile): beyond}]))
        return found

    def forbidden(self, state: Board, configuration: Configuration) -> bool:
        """Whether two tiles overlap, or one leaves the board; a few hundredths of a cell are forgiven."""
        places = list({**self.configuration(state), **configuration}.values())
        edge = 0.04
        for index, (row, col) in enumerate(places):
            if not (-edge <= row <= state.rows - 1 + edge and -edge <= col <= state.cols - 1 + edge):
                return True
            for other in places[:index]:
                if abs(row - other[0]) < 1 - edge and abs(col - other[1]) < 1 - edge:
                    return True
        return False

    def render(self, state: Board, look: Look, configuration: Configuration | None = None) -> Frame:
        """(H, W, 3); the longer side is `look.side_px`."""
        return sliding_drawing.draw(
            state.rows, state.cols, {**self.configuration(state), **(configuration or {})}, look
        )

    def animate(self, state: Board, action: Slide, look: Look, num_frames: int) -> Frames:
        """The tile slides at constant speed."""
        path = self.path(state, action)
        return np.stack([self.render(state, look, place) for place in sample_path(path, num_frames)])

    def prompt(self, state: Board, wording: int, look: Look | None = None) -> str:
        """The task in one of several wordings."""
        return sliding_words.task(state, len(self.oracle_plan(state)), wording)

    def understand(self, frame: Frame, prompt: str) -> Scene | None:
        """Read a first picture, ours or foreign; a tile may be under way."""
        return sliding_reading.understand(self, frame, prompt)

    def describe(self, actions: Sequence[Slide], legend: Legend) -> str:
        """One sentence per slide."""
        noun = legend.tile
        return " ".join(
            f"{noun.capitalize() if index == 0 else 'Then ' + noun} {action.tile} slides {action.direction} "
            f"into the blank space at row {action.row + 1}, column {action.col + 1}."
            for index, action in enumerate(actions)
        )

    def parse(self, text: str) -> list[Slide]:
        """The slides that sentences of `describe` ask for; anything else is read over."""
        found: list[Slide] = []
        for number, word, row, col in SENTENCE.findall(text):
            direction = next(known for known in get_args(Direction) if known == word.lower())
            if int(number) > 0 and int(row) > 0 and int(col) > 0:
                found.append(Slide(int(number), direction, int(row) - 1, int(col) - 1))
        return found

    def target(self, state: Board, actions: Sequence[Slide], legend: Legend) -> str:
        """Where the moved tiles and the blank are afterwards."""
        state = followed(self, state, actions)
        moved = list(dict.fromkeys(action.tile for action in actions))
        places = [(f"{legend.tile} {number}", state.cell(number)) for number in moved] + [
            ("the blank", state.cell(0))
        ]
        words = [f"{name} is at row {row + 1}, column {col + 1}" for name, (row, col) in places]
        listed = words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]
        return listed[0].upper() + listed[1:] + "; every other tile has not moved."

    def answer(self, state: Board) -> tuple[str, str]:
        """The numbers to slide, in order."""
        return "actions", " ".join(str(action.tile) for action in self.oracle_plan(state))

    def score(self, state: Board, given: str) -> float:
        """1.0 for any shortest list of tiles that solves the puzzle, moves spelled as numbers."""
        numbers = [int(word) for word in re.findall(r"\d+", given)]
        if len(numbers) != len(self.oracle_plan(state)) or re.search(r"[^\d\s,;>→-]", given):
            return 0.0
        for number in numbers:
            moves = [move for move in slides(state) if move.tile == number]
            if not moves:
                return 0.0
            state = self.step(state, moves[0])
        return float(self.goal(state))


def _approach(seen: Position, target: Position) -> list[Position]:
    """Waypoints after `seen`: along the nearer axis first, then straight to the target."""
    if min(abs(seen[0] - target[0]), abs(seen[1] - target[1])) < 1e-6:
        return [target]
    off_row, off_col = abs(seen[0] - round(seen[0])), abs(seen[1] - round(seen[1]))
    corner = (seen[0], target[1]) if off_col > off_row else (target[0], seen[1])
    return [corner, target]


def _settling(
    rest: Configuration, start: Configuration | None, mover: str
) -> dict[str, tuple[Position, Position]]:
    """Other pieces that are seen under way: where they are and where they rest. They settle before the move."""
    if start is None:
        return {}
    return {
        name: (place, rest[name])
        for name, place in start.items()
        if name != mover
        and name in rest
        and max(abs(place[0] - rest[name][0]), abs(place[1] - rest[name][1])) > 1e-6
    }


WORLD = SlidingPuzzle()
