"""In what order circles go to their places, and where one waits that is in the way. Knows no pictures."""

from __future__ import annotations

import math

import numpy as np

from worlds.circles_paths import clear_way
from worlds.circles_rules import UNIT, Aside, Circles, Place, Point, clear, piece, position, row, slot_of, spot
from worlds.world import Configuration

ROOM = 12  # lengths between a place and the circles that still have to go
SPARE = 16  # lengths around a circle that waits
PERCENTS = range(4, 97, 2)  # of the picture's height and width, where circles may wait


def home(state: Circles, rank: int) -> bool:
    """Whether the circle stands where it belongs."""
    return state.places[rank - 1] == row(state)[slot_of(state, rank) - 1]


def next_move(state: Circles) -> Place | Aside | None:
    """From the left of the row, a circle whose place and way are free; else one that is in the way goes aside.

    If none can, one goes over others to a free place. None at the goal; ValueError if every place is covered.
    """
    left = [rank for rank in range(1, len(state.radii) + 1) if not home(state, rank)]
    left.sort(key=lambda rank: slot_of(state, rank))
    if not left:
        return None
    free = [rank for rank in left if clear(state, rank, slot_of(state, rank), settled_only=False)]
    for rank in free:
        if _roomy(state, rank, left) and has_way(state, rank, row(state)[slot_of(state, rank) - 1]):
            return Place(rank, slot_of(state, rank))
    aside = _aside(state, left)
    if aside is None and not free:
        raise ValueError("every circle that is left covers another's place, and there is no room aside")
    return aside or Place(free[0], slot_of(state, free[0]))


def _roomy(state: Circles, rank: int, left: list[int]) -> bool:
    """Whether a circle touches none in its place that still has to go."""
    place = row(state)[slot_of(state, rank) - 1]
    reaches = {other: state.radii[rank - 1] + state.radii[other - 1] + ROOM for other in left if other != rank}
    return all(math.dist(place, state.places[other - 1]) >= reach for other, reach in reaches.items())


def has_way(state: Circles, rank: int, target: Point) -> bool:
    """Whether a circle gets to a place without going over another."""
    here: Configuration = {piece(other): position(place) for other, place in enumerate(state.places, start=1)}
    return clear_way(state, rank, position(target), here) is not None


def _aside(state: Circles, left: list[int]) -> Aside | None:
    """A circle that covers a place of the row goes to wait, the smallest that can; None if none can."""
    for rank in sorted(left, reverse=True):
        if all(_misses(state, rank, slot) for slot in range(1, len(state.radii) + 1)):
            continue
        for move in _spots(state, rank):
            if has_way(state, rank, spot(state, move)):
                return move
    return None


def _misses(state: Circles, rank: int, slot: int) -> bool:
    """Whether a circle leaves room for the one that belongs to a position of the row."""
    owner = slot if state.order == "descending" else len(state.radii) + 1 - slot
    reach = state.radii[rank - 1] + state.radii[owner - 1] + ROOM
    return owner == rank or math.dist(row(state)[slot - 1], state.places[rank - 1]) >= reach


def _spots(state: Circles, rank: int) -> list[Aside]:
    """Where a circle can wait, clear of the row and of all others, the nearest few first."""
    ys, xs = np.meshgrid(PERCENTS, PERCENTS, indexing="ij")
    downs, alongs = ys.ravel(), xs.ravel()
    y, x = downs * state.field[0] / 100, alongs * state.field[1] / 100
    own = state.radii[rank - 1]
    good = (np.minimum(y, state.field[0] - y) >= own + 4) & (np.minimum(x, state.field[1] - x) >= own + 4)
    sizes = state.radii if state.order == "descending" else state.radii[::-1]
    others = [(p, r) for k, (p, r) in enumerate(zip(state.places, state.radii, strict=True)) if k != rank - 1]
    for (at_y, at_x), radius in [*zip(row(state), sizes, strict=True), *others]:
        good &= np.hypot(y - at_y, x - at_x) >= own + radius + SPARE
    away = np.hypot(y - state.places[rank - 1][0], x - state.places[rank - 1][1]) / UNIT
    order = [int(i) for i in np.argsort(away, kind="stable") if good[i]]
    return [Aside(rank, int(alongs[i]), int(downs[i])) for i in order[:: max(1, len(order) // 12)]]
