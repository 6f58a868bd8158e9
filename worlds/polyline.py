"""Points on polylines: how far from one, how far along it, what of it is left. Knows no world."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from worlds.world import Position


def from_segment(one: Position, other: Position, point: Position) -> tuple[float, float]:
    """(distance of a point from a segment, fraction of the segment at its foot)."""
    down, right = other[0] - one[0], other[1] - one[1]
    square = down * down + right * right
    along = ((point[0] - one[0]) * down + (point[1] - one[1]) * right) / square if square else 0.0
    fraction = min(1.0, max(0.0, along))
    foot = (one[0] + fraction * down, one[1] + fraction * right)
    return math.dist(foot, point), fraction


def rest_of(points: Sequence[Position], seen: Position, near: float) -> list[Position] | None:
    """The part of a way that is left for a piece seen on it; None if it is farther than `near` from it."""
    best: tuple[float, int] | None = None
    for index, (one, other) in enumerate(itertools.pairwise(points)):
        distance, _ = from_segment(one, other, seen)
        if distance <= near and (best is None or distance < best[0] - 1e-9):
            best = (distance, index)
    return None if best is None else without_repeats([seen, *points[best[1] + 1 :]])


def fraction_of(points: Sequence[Position], seen: Position) -> float:
    """How far along a way, 0 … 1 of its length, the point nearest to `seen` is."""
    lengths = [math.dist(one, other) for one, other in itertools.pairwise(points)]
    feet = [from_segment(one, other, seen) for one, other in itertools.pairwise(points)]
    index = min(range(len(feet)), key=lambda i: feet[i][0])
    total = sum(lengths)
    return (sum(lengths[:index]) + feet[index][1] * lengths[index]) / total if total else 0.0


def without_repeats(points: Sequence[Position]) -> list[Position]:
    """The way without standing still; at least two points."""
    kept = [points[0]]
    for point in points[1:]:
        if math.dist(point, kept[-1]) > 1e-9:
            kept.append(point)
    return kept if len(kept) > 1 else [points[0], points[-1]]
