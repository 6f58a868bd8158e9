"""Ways for one circle between the others: straight where that is clear, at right angles, or close around them."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from worlds.circles_rules import UNIT, Circles, piece
from worlds.polyline import from_segment, without_repeats
from worlds.world import Configuration, Position

NEAR = 0.25  # units: a circle this near to a way is on it
MARGIN = 4  # lengths kept between circles on the way
MARGINS = (24, 12, MARGIN)  # lengths, the widest that leaves a way, close around the others
CORNERS = 16  # of the polygon around a circle
SLIP = 0.005  # units: circles that touch already may come this much nearer

Floats = npt.NDArray[np.float64]
Disc = tuple[Position, float]  # centre and radius, units


def way(state: Circles, rank: int, target: Position, here: Configuration) -> list[Position]:
    """Waypoints from where the circle rests to the target, both included; straight if there is no clear way."""
    start = here[piece(rank)]
    return clear_way(state, rank, target, here) or [start, target]


def clear_way(state: Circles, rank: int, target: Position, here: Configuration) -> list[Position] | None:
    """The same; None if every way leads over another circle."""
    start = here[piece(rank)]
    choices = [[start, target], [start, (start[0], target[1]), target], [start, (target[0], start[1]), target]]
    low, high = state.radii[rank - 1] / UNIT, (state.field[0] - state.radii[rank - 1]) / UNIT
    lanes = sorted(np.linspace(low, high, 13).tolist(), key=lambda y: abs(y - start[0]) + abs(y - target[0]))
    choices += [[start, (y, start[1]), (y, target[1]), target] for y in lanes]
    right = (state.field[1] - state.radii[rank - 1]) / UNIT
    aisles = sorted(np.linspace(low, right, 13).tolist(), key=lambda x: abs(x - start[1]) + abs(x - target[1]))
    choices += [[start, (start[0], x), (target[0], x), target] for x in aisles]
    others = _others(state, rank, here)
    own = state.radii[rank - 1] / UNIT
    for points in choices:
        if _clear(own, points, others):
            return without_repeats(points)
    for margin in MARGINS:
        around = _around(own, start, target, others, (high, right), margin / UNIT)
        if around is not None:
            return without_repeats(list(around))
    return None


def _others(state: Circles, rank: int, here: Configuration) -> tuple[Disc, ...]:
    return tuple(
        (here[piece(other)], radius / UNIT) for other, radius in enumerate(state.radii, start=1) if other != rank
    )


def _clear(own: float, points: Sequence[Position], others: Sequence[Disc]) -> bool:
    """Whether the circle keeps its distance all the way; what it touches at an end it comes no nearer to."""
    for centre, radius in others:
        reach = own + radius + MARGIN / UNIT
        ends = min(math.dist(points[0], centre), math.dist(points[-1], centre)) - SLIP
        if any(from_segment(a, b, centre)[0] < min(reach, ends) for a, b in itertools.pairwise(points)):
            return False
    return True


@lru_cache(maxsize=256)
def _around(
    own: float, start: Position, target: Position, others: tuple[Disc, ...], far: Position, margin: float
) -> tuple[Position, ...] | None:
    """The shortest way over the corners of polygons around the others, `margin` units away; or None.

    `far`: the largest y and x that the circle's centre may have.
    """
    angles = 2 * math.pi * np.arange(CORNERS) / CORNERS
    spokes = np.stack([np.sin(angles), np.cos(angles)], axis=1) * 1.01 / math.cos(math.pi / CORNERS)
    rings = [np.array(centre) + spokes * (own + radius + margin) for centre, radius in others]
    corners: Floats = np.concatenate(rings) if rings else np.zeros((0, 2))
    inside = (corners >= own).all(axis=1) & (corners <= np.array(far)).all(axis=1)
    nodes: Floats = np.concatenate([np.array([start, target]), corners[inside]])
    limits: list[tuple[Floats, float]] = []
    for centre, radius in others:
        ends = min(math.dist(start, centre), math.dist(target, centre)) - SLIP
        limits.append((np.array(centre), min(own + radius + margin, ends)))
    open_nodes = np.ones(len(nodes), np.bool_)
    for centre, limit in limits:
        open_nodes &= np.hypot(*(nodes - centre).T) >= limit
    nodes = nodes[open_nodes]
    found = _shortest(nodes, limits)
    return None if found is None else tuple((float(nodes[i][0]), float(nodes[i][1])) for i in found)


def _shortest(nodes: Floats, limits: Sequence[tuple[Floats, float]]) -> list[int] | None:
    """Dijkstra from node 0 to node 1 over segments that keep their distance from every centre."""
    costs = np.full(len(nodes), np.inf)
    costs[0] = 0.0
    before: dict[int, int] = {}
    queue: list[tuple[float, int]] = [(0.0, 0)]
    settled: set[int] = set()
    while queue:
        cost, index = heapq.heappop(queue)
        if index in settled:
            continue
        settled.add(index)
        if index == 1:
            found = [1]
            while found[-1]:
                found.append(before[found[-1]])
            return found[::-1]
        lengths = np.hypot(*(nodes - nodes[index]).T)
        better = _seen_from(nodes, index, limits) & (cost + lengths < costs - 1e-12)
        for other in np.flatnonzero(better).tolist():
            costs[other] = cost + lengths[other]
            before[other] = index
            heapq.heappush(queue, (float(costs[other]), other))
    return None


def _seen_from(nodes: Floats, index: int, limits: Sequence[tuple[Floats, float]]) -> npt.NDArray[np.bool_]:
    """(n,) whether the straight way from a node to each other one keeps its distance from every centre."""
    ahead = nodes - nodes[index]
    squares = np.maximum((ahead**2).sum(axis=1), 1e-12)
    seen = np.ones(len(nodes), np.bool_)
    for centre, limit in limits:
        along = np.clip(((centre - nodes[index]) * ahead).sum(axis=1) / squares, 0, 1)
        feet = nodes[index] + along[:, None] * ahead
        seen &= np.hypot(*(feet - centre).T) >= limit
    return seen
