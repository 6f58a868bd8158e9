"""One grid picture, understood: reads every later frame against the static background, cuts pieces, paints floor.

The background is the reference with all movable pieces taken off. A frame is compared with it once; what differs
is explained by pieces (their main colour, where its centroid is), and what remains tells a collapse.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from worlds.grid import PLAYER, Cell, GridState, Legend, configuration_of
from worlds.grid_pieces import Template, Tint, Tracker, changed_levels, template_of, tint_between
from worlds.grid_reading import Roles
from worlds.grid_rest import settled
from worlds.world import Frame, Mask, Position, Reading, Sprite, World

STRAY_MAX = 0.06  # share of the frame that differs and is no piece: more is a collapse
STRAY_NOTED = 0.35  # of a cell: more, and the layout is called unreadable
HALO_LEVELS = 3  # what a piece uncovers is repainted where it differs by more


class GridScene:
    """A `Scene` of maze, trapfield or sokoban."""

    def __init__(self, world: World, frame: Frame, roles: Roles, legend: Legend) -> None:
        self._world = world
        self._legend = legend
        self._lattice = roles.lattice
        self._state = roles.state
        self._background = background_of(frame, roles)
        self._player = template_of(
            frame, self._background, roles.lattice, roles.state.player, roles.player.colour
        )
        self._box: Template | None = None
        if roles.box is not None:
            cell = roles.box.cells[0]
            self._box = template_of(frame, self._background, roles.lattice, cell, roles.box.colour)
        self._tracker = Tracker(roles.lattice, self._player, self._box)
        self._start = self._reference_reading()

    @property
    def world(self) -> World:
        return self._world

    @property
    def legend(self) -> Legend:
        return self._legend

    @property
    def start(self) -> Reading:
        return self._start

    def read(self, frame: Frame) -> Reading | None:
        """Read a frame (H, W, 3) uint8; None if it no longer shows this scene."""
        if frame.shape != self._background.shape:
            return None
        background, tint = self._backdrop(frame)
        changed = changed_levels(frame, background) > self._tracker.levels
        tracked = self._tracker.track(frame, changed, self._state, tint)
        if tracked is None or tracked.stray_px > STRAY_MAX * changed.size:
            return None
        missing = list(tracked.missing)
        if tracked.stray_px > STRAY_NOTED * self._lattice.pitch**2 and self._solid(tracked.stray):
            missing.append("layout")
        return settled(self._state, tracked.player, tracked.boxes, tuple(missing), tracked.confidence)

    def sprites(self, frame: Frame, reading: Reading, pieces: Sequence[str]) -> Mapping[str, Sprite]:
        """Cut pieces out: what differs from the background inside the piece's own cell-sized window."""
        background, _ = self._backdrop(frame)
        found: dict[str, Sprite] = {}
        for piece in pieces:
            window = self._window(reading.configuration[piece], int(self._lattice.pitch), frame)
            if window is None:
                continue
            top, bottom, left, right = window
            cut = frame[top:bottom, left:right]
            levels = changed_levels(cut, background[top:bottom, left:right])
            mask = self._template(piece).cut(levels, self._offset(reading, piece, window))
            mask &= ~self._others(frame, reading, [piece])[top:bottom, left:right]
            found[piece] = Sprite(cut.copy(), mask, top, left)
        return found

    def without(self, frame: Frame, reading: Reading, pieces: Sequence[str]) -> Frame:
        """Paint the background where the pieces stand; everything else stays bit for bit."""
        background, _ = self._backdrop(frame)
        bare = frame.copy()
        others = self._others(frame, reading, pieces)
        for piece in pieces:
            window = self._window(reading.configuration[piece], int(np.ceil(self._lattice.pitch)), frame)
            if window is None:
                continue
            top, bottom, left, right = window
            under = background[top:bottom, left:right]
            region = changed_levels(frame[top:bottom, left:right], under) > HALO_LEVELS
            region &= ~others[top:bottom, left:right]
            bare[top:bottom, left:right][region] = under[region]
        return bare

    def pixel(self, position: Position) -> tuple[int, int]:
        return self._lattice.pixel(position)

    def _backdrop(self, frame: Frame) -> tuple[Frame, Tint | None]:
        """The static background in the colours that this frame has drifted to."""
        tint = tint_between(frame, self._background)
        return (self._background, None) if tint is None else (tint.apply(self._background), tint)

    def _solid(self, stray: Mask) -> bool:
        """Whether what no piece explains has an inside, unlike rims that compression has frayed."""
        inner = stray[1:-1, 1:-1].copy()
        for rows in (slice(0, -2), slice(1, -1), slice(2, None)):
            for cols in (slice(0, -2), slice(1, -1), slice(2, None)):
                inner &= stray[rows, cols]
        return bool(inner.sum() > 0.5 * STRAY_NOTED * self._lattice.pitch**2)

    def _reference_reading(self) -> Reading:
        return Reading(self._state, configuration_of(self._state))

    def _template(self, piece: str) -> Template:
        return self._player if piece == PLAYER or self._box is None else self._box

    def _window(self, position: Position, side: int, frame: Frame) -> tuple[int, int, int, int] | None:
        """The cell-sized window of a piece, cut at the picture's edges: (top, bottom, left, right)."""
        top, left = self.pixel(position)
        bottom, right = min(top + side, frame.shape[0]), min(left + side, frame.shape[1])
        top, left = max(0, top), max(0, left)
        return (top, bottom, left, right) if top < bottom and left < right else None

    def _offset(self, reading: Reading, piece: str, window: tuple[int, int, int, int]) -> tuple[int, int]:
        top, left = self.pixel(reading.configuration[piece])
        return window[0] - top, window[2] - left

    def _others(self, frame: Frame, reading: Reading, pieces: Sequence[str]) -> Mask:
        """Where the pieces that are not named stand."""
        mask = np.zeros(frame.shape[:2], np.bool_)
        for piece, position in reading.configuration.items():
            if piece not in pieces:
                self._template(piece).stamp(mask, self.pixel(position))
        return mask


def background_of(frame: Frame, roles: Roles) -> Frame:
    """The reference without its movable pieces: floor (or goal) copied from a bare cell of the same colour."""
    bare = frame.copy()
    state = roles.state
    for cell in (state.player, *state.boxes):
        _cover(bare, frame, roles, cell)
    return bare


def _cover(bare: Frame, frame: Frame, roles: Roles, cell: Cell) -> None:
    top, bottom, left, right = roles.lattice.box(cell)
    top, left = max(0, top), max(0, left)
    here = bare[top:bottom, left:right]
    donor = _donor(roles, cell)
    if donor is None:
        return
    above, below, before, behind = roles.lattice.box(donor)
    patch = frame[max(0, above) : below, max(0, before) : behind]
    grow = (max(0, here.shape[0] - patch.shape[0]), max(0, here.shape[1] - patch.shape[1]))
    patch = np.pad(patch, ((0, grow[0]), (0, grow[1]), (0, 0)), mode="edge")[: here.shape[0], : here.shape[1]]
    region = changed_levels(here, patch) > HALO_LEVELS
    here[region] = patch[region]


def _donor(roles: Roles, cell: Cell) -> Cell | None:
    """The bare cell to copy: a goal under a piece that stands on one, else floor; same shade, then nearest."""
    state: GridState = roles.state
    kinds = [kind for kind in roles.floors if kind.piece is None] or list(roles.floors)
    if cell in state.goals and roles.goal is not None:
        kinds = [roles.goal]
    taken = {state.player, *state.boxes}
    cells = [other for kind in kinds for other in kind.cells if other not in taken]
    if not cells:
        return None

    def apart(other: Cell) -> tuple[int, int]:
        rows, cols = abs(other[0] - cell[0]), abs(other[1] - cell[1])
        return (rows + cols) % 2, rows + cols

    return min(cells, key=apart)
