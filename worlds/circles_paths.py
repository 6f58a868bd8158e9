"""Ways for one circle between the others: straight where that is clear, else around them at right angles."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from worlds.circles_rules import UNIT, Circles, piece
from worlds.world import Configuration, Position

NEAR = 0.25  # units: a circle this near to a way is on it
MARGIN = 4  # lengths kept between circles on the way


def way(state: Circles, rank: int, target: Position, here: Configuration) -> list[Position]:
    """Waypoints from where the circle rests to the target, the first and the last included."""
    start = here[piece(rank)]
    choices = [[start, target], [start, (start[0], target[1]), target], [start, (target[0], start[1]), target]]
    low, high = state.radii[rank - 1] / UNIT, (state.field[0] - state.radii[rank - 1]) / UNIT
    lanes = sorted(np.linspace(low, high, 13).tolist(), key=lambda y: abs(y - start[0]) + abs(y - target[0]))
    choices += [[start, (y, start[1]), (y, target[1]), target] for y in lanes]
    for points in choices:
        if _clear(state, rank, points, here):
            return _without_repeats(points)
    return [start, target]


def _clear(state: Circles, rank: int, points: Sequence[Position], here: Configuration) -> bool:
    """Whether the circle, on this way, touches none that it does not touch at its beginning or end anyway."""
    for other in range(1, len(state.radii) + 1):
        if other == rank:
            continue
        centre = here[piece(other)]
        reach = (state.radii[rank - 1] + state.radii[other - 1] + MARGIN) / UNIT
        if min(math.dist(points[0], centre), math.dist(points[-1], centre)) <= reach:
            continue
        if any(from_segment(a, b, centre)[0] < reach for a, b in itertools.pairwise(points)):
            return False
    return True


def from_segment(one: Position, other: Position, point: Position) -> tuple[float, float]:
    """(distance of a point from a segment, fraction of the segment at its foot)."""
    down, right = other[0] - one[0], other[1] - one[1]
    square = down * down + right * right
    along = ((point[0] - one[0]) * down + (point[1] - one[1]) * right) / square if square else 0.0
    fraction = min(1.0, max(0.0, along))
    foot = (one[0] + fraction * down, one[1] + fraction * right)
    return math.dist(foot, point), fraction


def rest_of(points: Sequence[Position], seen: Position) -> list[Position] | None:
    """The part of a way that is left for a circle seen on it; None if it is not on it."""
    best: tuple[float, int] | None = None
    for index, (one, other) in enumerate(itertools.pairwise(points)):
        distance, _ = from_segment(one, other, seen)
        if distance <= NEAR and (best is None or distance < best[0] - 1e-9):
            best = (distance, index)
    return None if best is None else _without_repeats([seen, *points[best[1] + 1 :]])


def _without_repeats(points: Sequence[Position]) -> list[Position]:
    kept = [points[0]]
    for point in points[1:]:
        if math.dist(point, kept[-1]) > 1e-9:
            kept.append(point)
    return kept if len(kept) > 1 else [points[0], points[-1]]
