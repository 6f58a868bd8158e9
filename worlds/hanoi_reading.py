"""Reads towers from pixels: base and pegs first, then one disc per colour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from worlds import hanoi_words, regions
from worlds.circles_spots import background_of
from worlds.hanoi_rules import PEG_UNITS, Towers, lift, number, piece, place
from worlds.hanoi_stand import RIM, Bar, Stand, bare, bars, stand_of
from worlds.polyline import fraction_of
from worlds.world import Configuration, Frame, Mask, Position, Reading, Sprite

if TYPE_CHECKING:
    from worlds.hanoi import Hanoi

Floats = npt.NDArray[np.float64]
AT_REST = 0.12  # units: this near to its place a disc counts as at rest
WORK_SIDE = 256  # px, later frames are searched at this size
LIKE = 34  # levels: a disc's colour may differ by this much
TINT = 60.0  # levels by which the whole picture may shift


@dataclass(frozen=True)
class Legend:
    """Whether the prompt states the task at all."""

    task_stated: bool = True


def understand(world: Hanoi, frame: Frame, prompt: str) -> HanoiScene | None:
    """The scene of a picture with a base, three pegs and two to six discs. `frame`: (H, W, 3) uint8."""
    if min(frame.shape[:2]) < 40:
        return None
    background = background_of(frame)
    stand = None if background is None else stand_of(frame, background)
    if background is None or stand is None:
        return None
    discs = bars(frame, background, stand)
    if discs is None or not 2 <= len(discs) <= 6:
        return None
    discs.sort(key=lambda disc: disc.width)
    lowest = max(discs, key=lambda disc: disc.bottom)
    gap = stand.base_top - lowest.bottom
    if not 0 <= gap <= 0.5 * lowest.height:
        return None
    scene = HanoiScene(
        world,
        Legend(hanoi_words.states_task(prompt)),
        frame,
        background,
        stand,
        tuple(discs),
        lowest.height + gap,
        bare(frame, background, stand, discs),
        hanoi_words.goal_of(prompt),
        {move.disc: move.source for move in world.parse(prompt)[:1]},
    )
    return scene if scene.sound else None


@dataclass(frozen=True)
class HanoiScene:
    """Implements `worlds.world.Scene`. `discs`: by size, px of the reference; `pitch`: px per level.

    `sources`: the peg that the prompt's own first move takes its disc from.
    """

    world: Hanoi
    legend: Legend
    reference: Frame
    background: Floats
    stand: Stand
    discs: tuple[Bar, ...]
    pitch: int
    bare: Frame
    goal: int
    sources: Mapping[int, int]

    @property
    def _gap(self) -> int:
        return self.pitch - self.discs[0].height

    @property
    def start(self) -> Reading:
        """The reference's own reading."""
        return self._start

    @cached_property
    def _start(self) -> Reading:
        return self._reading({index + 1: bar for index, bar in enumerate(self.discs)}, None)

    @property
    def sound(self) -> bool:
        """Whether the discs lie as discs do: stacked on pegs, at most one in the air."""
        return not self.start.unreadable and len(self.start.moving) <= 1

    def pixel(self, position: Position) -> tuple[int, int]:
        """(bottom, centre) of a disc in px."""
        bottom = self.stand.base_top - self._gap + round(position[0] * self.pitch)
        return bottom, round(self.stand.across(position[1] / PEG_UNITS))

    def _position(self, bar: Bar) -> Position:
        y = (bar.bottom - self.stand.base_top + self._gap) / self.pitch
        return y, PEG_UNITS * self.stand.place((bar.left + bar.right) / 2)

    def read(self, frame: Frame) -> Reading | None:
        """Find every disc by its colour."""
        if frame.shape != self.reference.shape or frame.dtype != np.uint8:
            return None
        tint = np.median(frame[:3].reshape(-1, 3), axis=0) - np.median(self.reference[:3].reshape(-1, 3), axis=0)
        if np.abs(tint).max() > TINT or not self._stands(frame, tint):
            return None
        factor = max(1, max(frame.shape[:2]) // WORK_SIDE)
        found: dict[int, Bar] = {}
        for index, bar in enumerate(self.discs):
            seen = bar if self._unmoved(frame, bar) else self._find(frame, bar, tint, factor)
            if seen is not None:
                found[index + 1] = seen
        if len(found) * 2 <= len(self.discs):
            return None
        return self._reading(found, self.start)

    def _stands(self, frame: Frame, tint: Floats) -> bool:
        """Whether the base is still there."""
        base = frame[self.stand.base_top + 1, self.stand.base_left + 2 : self.stand.base_right - 2 : 4]
        return float((np.abs(base - (self.stand.colour + tint)).max(axis=1) < LIKE).mean()) > 0.6

    def _unmoved(self, frame: Frame, bar: Bar) -> bool:
        box = np.s_[bar.top : bar.bottom, bar.left : bar.right]
        return bool(np.array_equal(frame[box], self.reference[box]))

    def _tolerance(self, bar: Bar) -> float:
        """Levels by which this colour may be off without being taken for another of the picture."""
        others = [self.background, self.stand.colour, *(disc.colour for disc in self.discs if disc is not bar)]
        return float(np.clip(0.5 * min(np.abs(bar.colour - other).max() for other in others), 20, 80))

    def _find(self, frame: Frame, bar: Bar, tint: Floats, factor: int) -> Bar | None:
        """The box of this colour that is about as large as the disc, to the pixel."""
        like = self._tolerance(bar)
        coarse = np.abs(frame[::factor, ::factor] - (bar.colour + tint)).max(axis=2) < like
        rough = _box(coarse, bar.width / factor, bar.height / factor)
        if rough is None:
            return None
        top, left = max(0, (rough[0] - 1) * factor), max(0, (rough[1] - 1) * factor)
        window = frame[top : (rough[2] + 1) * factor, left : (rough[3] + 1) * factor]
        fine = _box(np.abs(window - (bar.colour + tint)).max(axis=2) < like, bar.width, bar.height)
        if fine is None or abs(fine[3] - fine[1] - bar.width) > max(3, 0.15 * bar.width):
            return None
        middle = round((fine[0] + fine[2] - bar.height) / 2), round((fine[1] + fine[3] - bar.width) / 2)
        return Bar(
            top + middle[0],
            left + middle[1],
            top + middle[0] + bar.height,
            left + middle[1] + bar.width,
            bar.colour,
        )

    def _reading(self, found: Mapping[int, Bar], known: Reading | None) -> Reading:
        """Discs on pegs by height; one that lies nowhere is under way from the peg that it left."""
        places = {disc: self._position(bar) for disc, bar in found.items()}
        stacks: list[list[int]] = [[], [], []]
        astray: list[int] = []
        for disc in sorted(places, key=lambda d: -places[d][0]):
            y, x = places[disc]
            peg = min(2, max(0, round(x / PEG_UNITS)))
            near = abs(x - PEG_UNITS * peg) < AT_REST and abs(y + len(stacks[peg])) < AT_REST
            (stacks[peg] if near else astray).append(disc)
        lost = [disc for disc in range(1, len(self.discs) + 1) if disc not in found]
        moving: dict[str, float] = {}
        for disc in [*astray, *lost]:
            peg = self._left(disc, places.get(disc), stacks, known)
            stacks[peg].append(disc)
            if disc in places:
                moving[piece(disc)] = self._fraction(disc, peg, places[disc], stacks)
            else:
                places[disc] = place(peg, len(stacks[peg]) - 1)
        towers = Towers((tuple(stacks[0]), tuple(stacks[1]), tuple(stacks[2])), self.goal)
        configuration: Configuration = {piece(disc): places[disc] for disc in sorted(places)}
        unread = tuple(piece(disc) for disc in lost) or (("towers",) if len(astray) > 1 else ())
        return Reading(towers, configuration, moving, 0.4 if unread else 1.0, unread)

    def _left(self, disc: int, seen: Position | None, stacks: list[list[int]], known: Reading | None) -> int:
        """The peg that a disc in the air has left: where prompt or reference had it, else the nearest fit."""
        free = [peg for peg in range(3) if not stacks[peg] or stacks[peg][-1] > disc]
        before = self.sources.get(disc) if known is None else known.state.peg_of(disc)
        if before in free:
            return before
        x = seen[1] / PEG_UNITS if seen else 1.0
        return min(free or range(3), key=lambda peg: abs(peg - x))

    def _fraction(self, disc: int, peg: int, seen: Position, stacks: list[list[int]]) -> float:
        """How far along the way up, across and down to the nearest peg on its side."""
        count = len(self.discs)
        others = [target for target in range(3) if target != peg]
        side = [t for t in others if (t - peg) * (seen[1] - PEG_UNITS * peg) > 0] or others
        target = min(side, key=lambda t: abs(PEG_UNITS * t - seen[1]))
        high, end = lift(count), place(target, len(stacks[target]))
        rest = place(peg, len(stacks[peg]) - 1)
        return fraction_of([rest, (high, rest[1]), (high, end[1]), end], seen)

    def sprites(self, frame: Frame, reading: Reading, pieces: Sequence[str]) -> Mapping[str, Sprite]:
        """The discs, cut from the frame where the reading saw them."""
        cut: dict[str, Sprite] = {}
        for name in pieces:
            if name in reading.configuration:
                top, left = self._corner(name, reading.configuration[name])
                mask = self.masks[number(name) - 1]
                cut[name] = Sprite(_window(frame, top, left, mask.shape), mask, top, left)
        return cut

    def _corner(self, name: str, position: Position) -> tuple[int, int]:
        bar = self.discs[number(name) - 1]
        here, there = self.pixel(self._position(bar)), self.pixel(position)
        return bar.top + there[0] - here[0], bar.left - RIM + there[1] - here[1]

    @cached_property
    def masks(self) -> list[Mask]:
        """Where each disc covers its box and a rim of RIM px beside it."""
        found: list[Mask] = []
        for bar in self.discs:
            size = (bar.height, bar.width + 2 * RIM)
            shown, under = (_window(f, bar.top, bar.left - RIM, size) for f in (self.reference, self.bare))
            found.append(regions.filled(np.abs(shown.astype(np.int16) - under).max(axis=2) > 6))
        return found

    def without(self, frame: Frame, reading: Reading, pieces: Sequence[str]) -> Frame:
        """The frame with base, pegs and background where the discs were."""
        clean = frame.copy()
        for sprite in self.sprites(frame, reading, pieces).values():
            height, width = sprite.mask.shape
            first_row, first_col = max(0, -sprite.top), max(0, -sprite.left)
            view = np.s_[max(0, sprite.top) : sprite.top + height, max(0, sprite.left) : sprite.left + width]
            shape = clean[view].shape
            part = sprite.mask[first_row : first_row + shape[0], first_col : first_col + shape[1]]
            clean[view][part] = self.bare[view][part]
        return clean


def _window(frame: Frame, top: int, left: int, size: tuple[int, ...]) -> Frame:
    """(size) pixels of the frame, the edge repeated beyond it."""
    rows = np.clip(np.arange(top, top + size[0]), 0, frame.shape[0] - 1)
    cols = np.clip(np.arange(left, left + size[1]), 0, frame.shape[1] - 1)
    return frame[np.ix_(rows, cols)]


def _box(same: Mask, width: float, height: float) -> tuple[int, int, int, int] | None:
    """(top, left, bottom, right) of the rows and columns that hold about as much of a colour as a disc does."""
    rows = np.flatnonzero(same.sum(axis=1) >= 0.5 * width)
    if rows.size == 0:
        return None
    top, bottom = int(rows[0]), int(rows[-1]) + 1
    cols = np.flatnonzero(same[top:bottom].sum(axis=0) >= 0.4 * height)
    if cols.size == 0 or bottom - top > 1.6 * height + 2 or bottom - top < 0.5 * height:
        return None
    return top, int(cols[0]), bottom, int(cols[-1]) + 1
