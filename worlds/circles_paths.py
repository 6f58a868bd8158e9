"""Ways for one circle between the others: straight where that is clear, else around them at right angles."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from worlds.circles_rules import UNIT, Circles, piece
from worlds.polyline import from_segment, without_repeats
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
    right = (state.field[1] - state.radii[rank - 1]) / UNIT
    aisles = sorted(np.linspace(low, right, 13).tolist(), key=lambda x: abs(x - start[1]) + abs(x - target[1]))
    choices += [[start, (start[0], x), (target[0], x), target] for x in aisles]
    for points in choices:
        if _clear(state, rank, points, here):
            return without_repeats(points)
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
