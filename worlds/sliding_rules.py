"""The rules of the sliding puzzle: boards, slides, the goal. Knows no pictures."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

RESTING = 0.04  # of a cell: this near to its cell a tile counts as at rest
NOUNS = ("tile", "block", "piece", "square", "number")
Direction = Literal["up", "down", "left", "right"]
Corner = Literal["top-left", "top-right", "bottom-left", "bottom-right"]
STEPS: dict[Direction, tuple[int, int]] = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}


@dataclass(frozen=True)
class Board:
    """Row-major numbers, 0 is the blank; at the goal the numbers rise row by row and the blank is in `corner`."""

    rows: int
    cols: int
    tiles: tuple[int, ...]
    corner: Corner = "bottom-right"

    def cell(self, number: int) -> tuple[int, int]:
        """(row, column) of a tile or the blank, from 0."""
        row, col = divmod(self.tiles.index(number), self.cols)
        return row, col

    def at(self, row: int, col: int) -> int | None:
        """The number in a cell; None outside the board."""
        inside = 0 <= row < self.rows and 0 <= col < self.cols
        return self.tiles[row * self.cols + col] if inside else None


@dataclass(frozen=True)
class Slide:
    """One tile slides into the cell (row, col), counted from 0. The target decides, `direction` is its word."""

    tile: int
    direction: Direction
    row: int
    col: int


@dataclass(frozen=True)
class Legend:
    """What the prompt calls a tile, and whether it states the task at all."""

    tile: str = "tile"
    task_stated: bool = True


@lru_cache(maxsize=256)
def ordered(rows: int, cols: int, corner: Corner) -> tuple[int, ...]:
    """The goal: 1, 2, 3 … row by row, the blank in its corner."""
    blank = (0 if "top" in corner else rows - 1) * cols + (0 if "left" in corner else cols - 1)
    numbers = list(range(1, rows * cols))
    return (*numbers[:blank], 0, *numbers[blank:])


def piece(number: int) -> str:
    """The piece id of a tile."""
    return f"tile-{number}"


def slides(board: Board) -> list[Slide]:
    """The legal slides: every tile beside the blank."""
    row, col = board.cell(0)
    found: list[Slide] = []
    for direction, (down, right) in STEPS.items():
        number = board.at(row - down, col - right)
        if number is not None:
            found.append(Slide(number, direction, row, col))
    return found


def slide_of(board: Board, number: int) -> Slide:
    """The legal slide of a tile; ValueError if it is not beside the blank."""
    for move in slides(board):
        if move.tile == number:
            return move
    raise ValueError(f"tile {number} is not beside the blank")
