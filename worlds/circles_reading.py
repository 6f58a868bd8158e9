"""Reads circles from pixels: a first picture by its round spots, later frames by the circles already known."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from worlds import channels, circles_words, regions
from worlds.circles_rules import FULL, UNIT, Aside, Circles, Legend, Point, piece, position, row, slot_of, target
from worlds.circles_spots import Spot, background_of, spots
from worlds.legend import NAMES
from worlds.polyline import from_segment
from worlds.world import Frame, Mask, Position, Reading, Sprite

if TYPE_CHECKING:
    from worlds.sort_circles import SortCircles

Floats = npt.NDArray[np.float64]
WORK_SIDE = 256  # px, later frames are searched at this size
LIKE = 40  # levels within one colour
KNOWN = 60.0  # levels: a circle's colour may differ by this much
COLOURS = (
    "white",
    "black",
    "gray",
    "red",
    "orange",
    "brown",
    "yellow",
    "green",
    "cyan",
    "blue",
    "purple",
    "pink",
)


def understand(world: SortCircles, frame: Frame, prompt: str) -> CirclesScene | None:
    """The scene of a picture that shows at least two circles and nothing else. `frame`: (H, W, 3) uint8.

    None too where the prompt names no order, or two.
    """
    order = circles_words.order_of(prompt)
    if order is None or min(frame.shape[:2]) < 32:
        return None
    background = background_of(frame)
    found = None if background is None else spots(frame, background)
    if background is None or found is None or not 2 <= len(found) <= 12:
        return None
    found.sort(key=lambda spot: (-spot.radius, spot.x))
    scale = FULL / max(frame.shape[:2])
    fine = int(min(8, max(1, 2 ** math.ceil(math.log2(scale)) if scale > 1 else 1)))
    field = (_snap(frame.shape[0] * scale, 16), _snap(frame.shape[1] * scale, 16))
    radii = tuple(max(fine, _snap(spot.radius * scale, fine)) for spot in found)
    if radii[0] == radii[-1]:
        return None
    rough = tuple((_snap(spot.y * scale, 2 * fine), _snap(spot.x * scale, 2 * fine)) for spot in found)
    state = Circles(field, radii, rough, order)
    seen = [(spot.y * scale, spot.x * scale) for spot in found]
    places = tuple(
        _resting(state, rank, place, scale) or rough[rank - 1] for rank, place in enumerate(seen, start=1)
    )
    state = Circles(field, radii, places, state.order)
    exact = {piece(rank): position_of(place) for rank, place in enumerate(seen, start=1)}
    names = tuple(_name(spot.colour) for spot in found)
    legend = Legend(names, state.order, circles_words.states_task(prompt))
    sure = float(np.mean([spot.roundness for spot in found]))
    return CirclesScene(world, legend, Reading(state, exact, {}, sure), frame, background, tuple(found))


def position_of(place: tuple[float, float]) -> Position:
    """Lengths to units."""
    return place[0] / UNIT, place[1] / UNIT


def _snap(value: float, step: int) -> int:
    return round(value / step) * step


def _resting(state: Circles, rank: int, place: tuple[float, float], scale: float) -> Point | None:
    """The place of the row, own first, that a circle stands on; None if it stands on none."""
    centres = row(state)
    near = max(8.0, 1.6 * scale)
    for slot in [slot_of(state, rank), *range(1, len(centres) + 1)]:
        if math.dist(centres[slot - 1], place) <= near:
            return centres[slot - 1]
    return None


def _name(colour: Floats) -> str:
    distances = {name: min(math.dist(colour, shade) for shade in NAMES[name]) for name in COLOURS}
    return min(distances, key=lambda name: distances[name])


@dataclass(frozen=True)
class CirclesScene:
    """Implements `worlds.world.Scene`. `circles`: by rank, px of the reference."""

    world: SortCircles
    legend: Legend
    start: Reading
    reference: Frame
    background: Floats
    circles: tuple[Spot, ...]

    @property
    def scale(self) -> float:
        """Lengths per pixel."""
        return FULL / max(self.reference.shape[:2])

    @cached_property
    def cuts(self) -> list[Sprite]:
        """Every circle's box in the reference, by rank."""
        return [
            self._cut(self.reference, spot, self.start.configuration[piece(rank)]) for rank, spot in self._ranked
        ]

    @cached_property
    def rim(self) -> Floats:
        """The background's colour at the reference's rim."""
        return _border(self.reference)

    @property
    def _ranked(self) -> list[tuple[int, Spot]]:
        return list(enumerate(self.circles, start=1))

    def pixel(self, position: Position) -> tuple[int, int]:
        """The centre of a circle in px; boxes move with it."""
        return round(position[0] * UNIT / self.scale), round(position[1] * UNIT / self.scale)

    def read(self, frame: Frame) -> Reading | None:
        """Match round spots with the known circles by colour and radius; look for the others by colour."""
        if frame.shape != self.reference.shape or frame.dtype != np.uint8:
            return None
        background = _border(frame)
        tint = background - self.rim
        if np.abs(tint).max() > KNOWN:
            return None
        factor = max(1, -(-max(frame.shape[:2]) // WORK_SIDE))
        still = self._unmoved(frame)
        known = [self.circles[rank - 1] for rank in still]
        if len(still) == len(self.circles):
            return self._reading({rank: (spot.y, spot.x) for rank, spot in self._ranked}, 0)
        seen = spots(frame, background, factor=factor, strict=False, known=known) or []
        places = self._matched(seen, tint)
        for rank, spot in self._ranked:
            if rank not in places:
                place = self._search(
                    frame, spot, tint, factor, [places[r] for r in places if self._alike(r, rank)]
                )
                if place is not None:
                    places[rank] = place
        if len(places) * 2 <= len(self.circles):
            return None
        strangers = max(0, len(seen) - len(self.circles))
        return self._reading(places, strangers)

    def _unmoved(self, frame: Frame) -> list[int]:
        """Ranks of the circles whose disc shows, bit for bit, what it shows in the reference."""
        return [
            rank
            for rank, sprite in enumerate(self.cuts, start=1)
            if not ((_window(frame, sprite) != _window(self.reference, sprite)) & self._discs[rank - 1]).any()
        ]

    @cached_property
    def _discs(self) -> list[Mask]:
        """(h, w, 1) by rank: the disc without its rim, in the part of the circle's box that is in the picture."""
        shape = self.reference.shape[:2]
        return [
            _clipped(sprite, regions.shrunken(regions.shrunken(sprite.mask)), shape)[..., None]
            for sprite in self.cuts
        ]

    def _matched(self, seen: Sequence[Spot], tint: Floats) -> dict[int, tuple[float, float]]:
        """Rank -> centre px."""
        if not seen:
            return {}
        costs = np.array(
            [
                [
                    abs(known.radius - spot.radius) / max(1.0, 0.08 * known.radius)
                    + float(np.abs(spot.colour - known.colour - tint).max()) / LIKE
                    for spot in seen
                ]
                for known in self.circles
            ]
        )
        pairs = regions.assign(np.minimum(costs, 9.0))
        return {known + 1: (seen[spot].y, seen[spot].x) for known, spot in pairs if costs[known, spot] < 3.0}

    def _alike(self, one: int, other: int) -> bool:
        """Whether two circles have about the same colour."""
        colours = self.circles[one - 1].colour, self.circles[other - 1].colour
        return float(np.abs(colours[0] - colours[1]).max()) < 2 * LIKE

    def _search(
        self, frame: Frame, spot: Spot, tint: Floats, factor: int, taken: Sequence[tuple[float, float]]
    ) -> tuple[float, float] | None:
        """Where a disc of this colour and size fits best, for one that touches or covers another."""
        angles = np.linspace(0, 2 * np.pi, 16, endpoint=False)
        inner = np.concatenate([np.zeros((1, 2))] + [_ring(angles, spot.radius * share) for share in (0.5, 0.85)])
        outer = _ring(angles, spot.radius + max(2.0, 0.08 * spot.radius))
        coarse = frame[::factor, ::factor]
        centres: Floats = (
            np.argwhere(np.abs(coarse - (spot.colour + tint)).max(axis=2) < LIKE).astype(np.float64) * factor
        )
        for y, x in taken:
            centres = centres[np.hypot(centres[:, 0] - y, centres[:, 1] - x) > 0.5 * spot.radius]
        if len(centres) == 0:
            return None
        best: tuple[float, Floats] = (-1.0, centres[0])
        for reach in (0, factor, 1):
            if reach:
                ys, xs = np.mgrid[-reach : reach + 1, -reach : reach + 1]
                centres = best[1] + np.stack([ys.ravel(), xs.ravel()], axis=1).astype(np.float64)
            else:
                centres = centres[:: max(1, len(centres) // 600)]
            scores = self._fits(frame, spot, tint, centres, inner)
            scores -= 0.3 * self._fits(frame, spot, tint, centres, outer)
            index = int(np.argmax(scores))
            best = (float(scores[index]), centres[index])
        return self._outlined(frame, spot, tint, best[1]) if best[0] > 0.45 else None

    def _outlined(self, frame: Frame, spot: Spot, tint: Floats, rough: Floats) -> tuple[float, float]:
        """The place near a rough one at which most of the outline parts this colour from others."""
        angles = np.linspace(0, 2 * np.pi, 48, endpoint=False)
        inner, outer = _ring(angles, max(1.0, spot.radius - 2)), _ring(angles, spot.radius + 1.5)
        steps = (max(1.0, spot.radius / 12), 1.0, 0.5)
        for step in steps:
            ys, xs = np.mgrid[-6:7, -6:7] * step
            centres: Floats = rough + np.stack([ys.ravel(), xs.ravel()], axis=1).astype(np.float64)
            scores = self._fits(frame, spot, tint, centres, inner)
            scores -= self._fits(frame, spot, tint, centres, outer)
            rough = centres[scores > scores.max() - 1e-6].mean(axis=0)
        return float(rough[0]) + 0.5, float(rough[1]) + 0.5

    def _fits(self, frame: Frame, spot: Spot, tint: Floats, centres: Floats, around: Floats) -> Floats:
        """(n,) share of the points around each centre that have the circle's colour."""
        points = np.round(centres[:, None] + around[None]).astype(np.int64)
        rows, cols = points[..., 0], points[..., 1]
        inside = (rows >= 0) & (cols >= 0) & (rows < frame.shape[0]) & (cols < frame.shape[1])
        shown = frame[np.where(inside, rows, 0), np.where(inside, cols, 0)]
        same = np.abs(shown - (spot.colour + tint)).max(axis=2) < LIKE
        return (same & inside).mean(axis=1)

    def _reading(self, places: Mapping[int, tuple[float, float]], strangers: int) -> Reading:
        """Circles rest in the row or where the reference had them; elsewhere they are under way from there."""
        known: Circles = self.start.state
        rests: list[Point] = []
        configuration: dict[str, Position] = {}
        moving: dict[str, float] = {}
        for rank in range(1, len(self.circles) + 1):
            home = known.places[rank - 1]
            if rank not in places:
                rests.append(home)
                configuration[piece(rank)] = position(home)
                continue
            place = (places[rank][0] * self.scale, places[rank][1] * self.scale)
            before = self.start.configuration[piece(rank)]
            at_home = math.dist(before, position_of(place)) * UNIT <= max(8.0, 1.6 * self.scale)
            rest = _resting(known, rank, place, self.scale) or (home if at_home else self._aside(rank, place))
            rests.append(rest or home)
            configuration[piece(rank)] = position_of(place)
            if rest is None:
                target = position(row(known)[slot_of(known, rank) - 1])
                moving[piece(rank)] = from_segment(position(home), target, position_of(place))[1]
        lost = tuple(piece(rank) for rank in range(1, len(self.circles) + 1) if rank not in places)
        state = Circles(known.field, known.radii, tuple(rests), known.order)
        confidence = (0.4 if lost else 1.0) * (0.6 if strangers else 1.0) * self.start.confidence
        return Reading(state, configuration, moving, confidence, lost)

    @cached_property
    def spots_aside(self) -> list[tuple[int, Point]]:
        """Rank and place of the circles that must wait aside before they go home."""
        try:
            plan = self.world.oracle_plan(self.start.state)
        except ValueError:
            return []
        return [(move.rank, target(self.start.state, move)) for move in plan if isinstance(move, Aside)]

    def _aside(self, rank: int, place: tuple[float, float]) -> Point | None:
        """Where this circle waits, if it stands there."""
        near = max(8.0, 1.6 * self.scale)
        found = [point for waits, point in self.spots_aside if waits == rank and math.dist(point, place) <= near]
        return found[0] if found else None

    def _cut(self, frame: Frame, spot: Spot, place: Position) -> Sprite:
        """The circle's box, centred on its centre pixel."""
        centre = self.pixel(place)
        reach = math.ceil(spot.radius) + 2
        rows = np.arange(centre[0] - reach, centre[0] + reach)
        cols = np.arange(centre[1] - reach, centre[1] + reach)
        inside = ((rows >= 0) & (rows < frame.shape[0]))[:, None] & ((cols >= 0) & (cols < frame.shape[1]))[None]
        away = np.hypot(
            rows[:, None] + 0.5 - place[0] * UNIT / self.scale, cols[None] + 0.5 - place[1] * UNIT / self.scale
        )
        mask: Mask = inside & (away <= spot.radius + 1.2)
        pixels = frame[np.ix_(np.clip(rows, 0, frame.shape[0] - 1), np.clip(cols, 0, frame.shape[1] - 1))]
        return Sprite(pixels, mask, int(rows[0]), int(cols[0]))

    def sprites(self, frame: Frame, reading: Reading, pieces: Sequence[str]) -> Mapping[str, Sprite]:
        """The circles, cut from the frame where the reading saw them."""
        spots_by_name = {piece(rank): spot for rank, spot in self._ranked}
        cuts = {
            name: self._cut(frame, spots_by_name[name], reading.configuration[name])
            for name in pieces
            if name in reading.configuration
        }
        return {name: self._without_rims(sprite, name, reading) for name, sprite in cuts.items()}

    def _without_rims(self, sprite: Sprite, name: str, reading: Reading) -> Sprite:
        """The sprite without what its halo shows of the circles beside it."""
        rows, cols = np.ogrid[0 : sprite.mask.shape[0], 0 : sprite.mask.shape[1]]
        past: dict[str, Floats] = {}
        for rank, spot in self._ranked:
            place = reading.configuration.get(piece(rank))
            if place is not None:
                y, x = (value * UNIT / self.scale for value in place)
                past[piece(rank)] = (
                    np.hypot(rows + 0.5 + sprite.top - y, cols + 0.5 + sprite.left - x) - spot.radius
                )
        mask = sprite.mask.copy()
        for other, gaps in past.items():
            if other != name:
                mask &= (past[name] < -0.5) | (past[name] <= gaps)
        return Sprite(sprite.pixels, mask, sprite.top, sprite.left)

    def without(self, frame: Frame, reading: Reading, pieces: Sequence[str]) -> Frame:
        """The frame with bare background where the circles were; a circle that lay beneath shows again."""
        clean = frame.copy()
        gone = np.zeros(frame.shape[:2], np.bool_)
        cuts = self.sprites(frame, reading, pieces)
        for sprite in cuts.values():
            _paint(gone, sprite, sprite.mask, (0, 0))
        clean[gone] = np.round(np.clip(self.background, 0, 255)).astype(np.uint8)
        for rank, _ in self._ranked:
            name = piece(rank)
            if name in pieces or name not in reading.configuration:
                continue
            sprite = self.cuts[rank - 1]
            here, there = self.pixel(self.start.configuration[name]), self.pixel(reading.configuration[name])
            _uncover(clean, gone, sprite, (there[0] - here[0], there[1] - here[1]))
        return clean


def _border(frame: Frame) -> Floats:
    """The background's colour at the picture's rim."""
    rim = np.concatenate([frame[0], frame[-1], frame[:, 0], frame[:, -1]])
    return channels.median(rim)


def _ring(angles: Floats, radius: float) -> Floats:
    return np.stack([np.sin(angles), np.cos(angles)], axis=1) * radius


def _window(frame: Frame, sprite: Sprite) -> Frame:
    height, width = sprite.mask.shape
    return frame[max(0, sprite.top) : sprite.top + height, max(0, sprite.left) : sprite.left + width]


def _clipped(sprite: Sprite, mask: Mask, shape: tuple[int, ...]) -> Mask:
    """The part of a sprite's mask that lies in a picture of this shape."""
    return mask[_clip(shape, sprite, (0, 0))[1]]


def _paint(canvas: Mask, sprite: Sprite, values: Mask, shift: tuple[int, int]) -> None:
    """Or a sprite's mask into a mask of the whole frame, in place."""
    view, part = _clip(canvas.shape[:2], sprite, shift)
    canvas[view] |= values[part]


def _uncover(frame: Frame, gone: Mask, sprite: Sprite, shift: tuple[int, int]) -> None:
    view, part = _clip(frame.shape[:2], sprite, shift)
    shown = gone[view] & sprite.mask[part]
    frame[view][shown] = sprite.pixels[part][shown]


def _clip(
    shape: tuple[int, ...], sprite: Sprite, shift: tuple[int, int]
) -> tuple[tuple[slice, slice], tuple[slice, slice]]:
    top, left = sprite.top + shift[0], sprite.left + shift[1]
    height, width = sprite.mask.shape
    first_row, first_col = max(0, -top), max(0, -left)
    stop_row = max(first_row, min(height, shape[0] - top))
    stop_col = max(first_col, min(width, shape[1] - left))
    part = (slice(first_row, stop_row), slice(first_col, stop_col))
    return (slice(top + first_row, top + stop_row), slice(left + first_col, left + stop_col)), part
