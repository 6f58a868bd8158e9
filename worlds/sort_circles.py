"""Sort circles by size: circles of different sizes lie anywhere; an action brings one to its place in a row.

Lengths are in 1/1024 of the picture's longer side; positions of pieces in units of UNIT such lengths, so that a
unit is about a small circle. Pictures: `circles_drawing`, `circles_reading`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from orchestrator.records import FailureKind
from worlds import circles_drawing, circles_paths, circles_plan, circles_reading, circles_words
from worlds.circles_rules import (
    UNIT,
    Aside,
    CircleMove,
    Circles,
    Legend,
    Place,
    Point,
    clear,
    fits,
    overlap,
    piece,
    position,
    row,
    slot_of,
    target,
)
from worlds.motion import sample as sample_path
from worlds.polyline import rest_of
from worlds.world import Configuration, Difficulty, Frame, Frames, Look, Position, Scene

DIFFICULTIES: dict[Difficulty, tuple[int, int]] = {"easy": (2, 3), "medium": (4, 4), "hard": (5, 6)}
EDGE = 0.15  # units: reading errors that are forgiven


class SortCircles:
    """Implements `worlds.world.World`."""

    name = "sort_circles"

    def sample(self, rng: np.random.Generator, difficulty: Difficulty) -> Circles:
        """Circles above and below the row's band, none touching another."""
        low, high = DIFFICULTIES[difficulty]
        count = int(rng.integers(low, high + 1))
        order = "ascending" if rng.random() < 0.25 else "descending"
        while True:
            steps = rng.choice([8, 16, 24], size=count)
            radii = tuple(int(r) for r in (16 + np.cumsum(steps))[::-1])
            places = _scattered(rng, radii) if 2 * sum(radii) + 16 * count < 960 else None
            if places is not None:
                return Circles((1024, 1024), radii, places, order)

    def legal(self, state: Circles, action: CircleMove) -> bool:
        """A known circle and place, not taken by a circle that belongs there; also a repeated move."""
        count = len(state.radii)
        if isinstance(action, Aside):
            return 1 <= action.rank <= count and fits(state, action)
        if not (1 <= action.rank <= count and 1 <= action.slot <= count):
            return False
        return clear(state, action.rank, action.slot, settled_only=True)

    def step(self, state: Circles, action: CircleMove) -> Circles:
        """The circle stands where the move ends; ValueError if the move is not legal."""
        if not self.legal(state, action):
            where = "aside there" if isinstance(action, Aside) else f"to position {action.slot} of the row"
            raise ValueError(f"circle {action.rank} cannot go {where}")
        places = list(state.places)
        places[action.rank - 1] = target(state, action)
        return replace(state, places=tuple(places))

    def done(self, state: Circles, actions: Sequence[CircleMove]) -> bool:
        """Whether every circle stands where its last move ends."""
        last = {action.rank: action for action in actions}
        count = len(state.radii)
        if any(action.rank > count or (isinstance(action, Place) and action.slot > count) for action in actions):
            return False
        return all(state.places[rank - 1] == target(state, action) for rank, action in last.items())

    def goal(self, state: Circles) -> bool:
        """Whether every circle stands where it belongs."""
        return all(circles_plan.home(state, rank) for rank in range(1, len(state.radii) + 1))

    def oracle_plan(self, state: Circles) -> list[CircleMove]:
        """From the left of the row; one whose place is covered waits, and one that blocks the rest goes aside."""
        plan: list[CircleMove] = []
        while (move := circles_plan.next_move(state)) is not None:
            plan.append(move)
            state = self.step(state, move)
        return plan

    def configuration(self, state: Circles) -> Configuration:
        """Centres (y, x) in units, by rank: the largest first, so that it lies below the others."""
        return {piece(rank): position(place) for rank, place in enumerate(state.places, start=1)}

    def path(self, state: Circles, action: CircleMove, start: Configuration | None = None) -> list[Configuration]:
        """Straight if that is clear, else around the others; from a place on this way, the rest of it."""
        name = piece(action.rank)
        end = position(target(state, action))
        home = self.configuration(state)
        seen = (start or {}).get(name, home[name])
        points = circles_paths.way(state, action.rank, end, home)
        rest = rest_of(points, seen, circles_paths.NEAR)
        if rest is None:
            rest = circles_paths.way(state, action.rank, end, {**home, **(start or {}), name: seen})
        return [{name: point} for point in rest]

    def alternatives(self, state: Circles, action: CircleMove) -> list[tuple[FailureKind, list[Configuration]]]:
        """Another circle moves; this one goes to another place, away from the row, or onto another circle."""
        here = self.configuration(state)
        name, count = piece(action.rank), len(state.radii)
        found: list[tuple[FailureKind, list[Configuration]]] = []
        for rank in range(1, count + 1):
            other = Place(rank, slot_of(state, rank))
            if rank != action.rank and not circles_plan.home(state, rank) and self.legal(state, other):
                found.append(("wrong_action", self.path(state, other)))
        for slot in range(1, count + 1):
            if row(state)[slot - 1] != target(state, action) and clear(
                state, action.rank, slot, settled_only=False
            ):
                found.append(("wrong_target", self.path(state, Place(action.rank, slot))))
        away = self._away(state, action)
        if away is not None:
            found.append(("wrong_direction", [{name: here[name]}, {name: away}]))
        for rank in range(1, count + 1):
            if rank != action.rank and math.dist(here[piece(rank)], here[name]) > 1:
                found.append(("illegal_move", [{name: here[name]}, {name: here[piece(rank)]}]))
        return found

    def forbidden(self, state: Circles, configuration: Configuration) -> bool:
        """Whether a circle leaves the picture, or rests (in the row or where it was) upon another that rests."""
        here = {**self.configuration(state), **configuration}
        still: list[int] = []
        for rank, radius in enumerate(state.radii, start=1):
            y, x = here[piece(rank)]
            reach = radius / UNIT - EDGE
            if y < reach or x < reach or y > state.field[0] / UNIT - reach or x > state.field[1] / UNIT - reach:
                return True
            rests = [position(point) for point in (*row(state), *state.places)]
            if any(math.dist((y, x), rest) <= EDGE for rest in rests):
                still.append(rank)
        return any(
            overlap(here[piece(a)], here[piece(b)], state.radii[a - 1] + state.radii[b - 1], 0.85)
            for a in still
            for b in still
            if a < b
        )

    def render(self, state: Circles, look: Look, configuration: Configuration | None = None) -> Frame:
        """(H, W, 3); the longer side is `look.side_px`."""
        return circles_drawing.draw(state, {**self.configuration(state), **(configuration or {})}, look)

    def animate(self, state: Circles, action: CircleMove, look: Look, num_frames: int) -> Frames:
        """The circle moves at constant speed."""
        path = self.path(state, action)
        return np.stack([self.render(state, look, place) for place in sample_path(path, num_frames)])

    def prompt(self, state: Circles, wording: int, look: Look | None = None) -> str:
        """The task in one of several wordings; with a look, some of them name the colours."""
        named = circles_drawing.style(look.seed, len(state.radii)).circles if look else ()
        return circles_words.task(state, wording, tuple(name for name, _ in named))

    def understand(self, frame: Frame, prompt: str) -> Scene | None:
        """Read a picture of circles, ours or foreign."""
        return circles_reading.understand(self, frame, prompt)

    def describe(self, actions: Sequence[CircleMove], legend: Legend) -> str:
        """One sentence per move."""
        return " ".join(
            circles_words.sentence(action, legend, index == 0) for index, action in enumerate(actions)
        )

    def parse(self, text: str) -> list[CircleMove]:
        """The moves that sentences of `describe` ask for; anything else is read over."""
        return circles_words.actions_in(text)

    def target(self, state: Circles, actions: Sequence[CircleMove], legend: Legend) -> str:
        """Which circles stand in the row afterwards, or aside."""
        return circles_words.outcome(actions)

    def answer(self, state: Circles) -> tuple[str, str]:
        """How many circles have to move."""
        return "integer", str(len(self.oracle_plan(state)))

    def score(self, state: Circles, given: str) -> float:
        """1.0 for the right number."""
        return float(re.fullmatch(r"\s*\d+\s*", given) is not None and int(given) == len(self.oracle_plan(state)))

    def _away(self, state: Circles, action: CircleMove) -> Position | None:
        """A point on the far side of where the circle should go, inside the picture; None if there is no room."""
        here = position(state.places[action.rank - 1])
        end = position(target(state, action))
        radius = state.radii[action.rank - 1] / UNIT
        high, wide = state.field[0] / UNIT - radius, state.field[1] / UNIT - radius
        turned = [(here[0] - end[0], here[1] - end[1]), (0.0, here[1] - end[1]), (here[0] - end[0], 0.0)]
        for down, right in turned:
            y = min(high, max(radius, here[0] + 0.7 * down))
            x = min(wide, max(radius, here[1] + 0.7 * right))
            if math.dist((y, x), here) > 1:
                return y, x
        return None


def _scattered(rng: np.random.Generator, radii: tuple[int, ...]) -> tuple[Point, ...] | None:
    """Centres on a lattice of 16, outside the band of the row; None if it gets too tight."""
    places: list[Point] = []
    for radius in radii:
        for _ in range(60):
            y, x = (int(rng.integers(1 + radius // 16, 64 - radius // 16)) * 16 for _ in range(2))
            inside = all(radius + 8 <= v <= 1016 - radius for v in (y, x))
            beside_row = abs(y - 512) >= radius + radii[0] + 16
            apart = all(math.dist((y, x), p) >= radius + r + 20 for p, r in zip(places, radii, strict=False))
            if inside and beside_row and apart:
                places.append((y, x))
                break
        else:
            return None
    return tuple(places)


WORLD = SortCircles()
