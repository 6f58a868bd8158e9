"""The rules of sorting circles: where they lie, the row that they belong in. Knows no pictures.

Lengths are in 1/1024 of the picture's longer side; a piece's position is in units of UNIT of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from worlds.world import Position

FULL = 1024  # lengths on the picture's longer side
UNIT = 64  # lengths in a unit of position: the smallest circle with its gap
GAP = 16  # lengths between neighbours in the row
Order = Literal["descending", "ascending"]
Point = tuple[int, int]  # (y, x) lengths


@dataclass(frozen=True)
class Circles:
    """Circles by rank: index 0 is the largest. `field`: (height, width); `places`: centres (y, x).

    `order` is from left to right.
    """

    field: Point
    radii: tuple[int, ...]
    places: tuple[Point, ...]
    order: Order = "descending"


@dataclass(frozen=True)
class Place:
    """The circle of this rank (1 is the largest) goes to this position of the row (1 is leftmost)."""

    rank: int
    slot: int


@dataclass(frozen=True)
class Aside:
    """The circle of this rank makes room: it waits at so many % of the picture's width and height."""

    rank: int
    along: int
    down: int


CircleMove = Place | Aside


@dataclass(frozen=True)
class Legend:
    """Words for the circles' colours by rank, the row's order, and whether the prompt states the task at all."""

    colours: tuple[str, ...] = ()
    order: Order = "descending"
    task_stated: bool = True


def piece(rank: int) -> str:
    """The piece id of the circle of this rank."""
    return f"circle-{rank}"


def slot_of(state: Circles, rank: int) -> int:
    """Where in the row a rank belongs, from 1."""
    return rank if state.order == "descending" else len(state.radii) + 1 - rank


def spot(state: Circles, action: Aside) -> Point:
    """The centre of a circle that waits aside."""
    return round(state.field[0] * action.down / 100), round(state.field[1] * action.along / 100)


def target(state: Circles, action: CircleMove) -> Point:
    """The centre at which a move ends."""
    return spot(state, action) if isinstance(action, Aside) else row(state)[action.slot - 1]


def row(state: Circles) -> tuple[Point, ...]:
    """The centres of the positions 1 … n: centred in the picture, equal gaps between circles in order."""
    return _row(state.field, state.radii, state.order)


@lru_cache(maxsize=256)
def _row(field: Point, radii: tuple[int, ...], order: Order) -> tuple[Point, ...]:
    sizes = radii if order == "descending" else radii[::-1]
    gaps = max(1, len(sizes) - 1)
    gap = max(0, min(GAP, (field[1] - 2 * sum(sizes)) // gaps))
    left = (field[1] - 2 * sum(sizes) - gap * (len(sizes) - 1)) // 2
    centres: list[Point] = []
    for radius in sizes:
        centres.append((field[0] // 2, left + radius))
        left += 2 * radius + gap
    return tuple(centres)


def position(point: Point) -> Position:
    """Lengths to units."""
    return point[0] / UNIT, point[1] / UNIT


def overlap(one: Position, other: Position, radii: int, share: float = 1.0) -> bool:
    """Whether two circles whose radii sum up to `radii` lengths come nearer than this share of touching."""
    return math.dist(one, other) < share * radii / UNIT - 1e-9


def clear(state: Circles, rank: int, slot: int, *, settled_only: bool) -> bool:
    """Whether a position of the row is free for a circle; or at least of circles that belong where they are."""
    target = row(state)[slot - 1]
    for other, place in enumerate(state.places, start=1):
        if other == rank or (settled_only and place != row(state)[slot_of(state, other) - 1]):
            continue
        if overlap(position(target), position(place), state.radii[rank - 1] + state.radii[other - 1], 0.95):
            return False
    return True


def fits(state: Circles, action: Aside) -> bool:
    """Whether a circle can wait there: inside the picture, upon no other."""
    y, x = spot(state, action)
    radius = state.radii[action.rank - 1]
    if not (radius <= y <= state.field[0] - radius and radius <= x <= state.field[1] - radius):
        return False
    return not any(
        overlap(position((y, x)), position(place), radius + state.radii[other - 1], 0.95)
        for other, place in enumerate(state.places, start=1)
        if other != action.rank
    )
