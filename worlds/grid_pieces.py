"""Finding movable pieces in a frame: what differs from the static background, told apart by main colour.

A piece is found by the centroid of its main colour, so that its place is known to less than a pixel even when
compression has frayed its rim. What a mover shifts by whole pixels is found exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from worlds.grid import Cell, GridState, Lattice
from worlds.legend import RGB
from worlds.regions import filled, grown, label
from worlds.world import Frame, Mask, Position

Levels = npt.NDArray[np.uint8]  # (H, W)

Corner = tuple[float, float]  # of a piece's window, px

RESTING_PX = 0.5
FOOTPRINT_LEVELS = 15
HIDDEN = 0.75  # of a piece's area: less, and something lies on it
LOST = 0.3
SMEARED = 1.6


@dataclass(frozen=True)
class Tint:
    """A global colour change: frame ≈ background @ matrix + offset."""

    matrix: npt.NDArray[np.float32]  # (3, 3)
    offset: npt.NDArray[np.float32]  # (3,)

    def apply(self, picture: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        moved = picture.reshape(-1, 3).astype(np.float32) @ self.matrix + self.offset
        return np.clip(np.rint(moved), 0, 255).astype(np.uint8).reshape(picture.shape)


@dataclass(frozen=True)
class Template:
    """A piece as the reference shows it, in a window of one cell whose corner is `Lattice.pixel(position)`.

    `footprint`, `main`: (h, w) masks of the whole piece and of its main colour.
    """

    footprint: Mask
    main: Mask
    colour: RGB
    tolerance: int  # how far, in levels, its main colour may be off
    visible: int  # how far, in levels, it is from what it stands on

    @cached_property
    def area(self) -> int:
        return int(self.main.sum())

    @cached_property
    def centroid(self) -> tuple[float, float]:
        rows, cols = np.nonzero(self.main)
        return float(rows.mean()), float(cols.mean())

    def extent(self) -> tuple[int, int, int, int]:
        """Bounding box of the main colour in the window: (top, bottom, left, right)."""
        rows, cols = np.flatnonzero(self.main.any(axis=1)), np.flatnonzero(self.main.any(axis=0))
        return int(rows[0]), int(rows[-1]) + 1, int(cols[0]), int(cols[-1]) + 1

    def stamp(self, mask: Mask, corner: Corner, grow: int = 0) -> None:
        """Set the footprint in a mask (H, W) with its window's corner there, cut at the edges."""
        shape = self._grown(grow)
        top, left = round(corner[0]) - grow, round(corner[1]) - grow
        first = max(0, -top), max(0, -left)
        stop = min(shape.shape[0], mask.shape[0] - top), min(shape.shape[1], mask.shape[1] - left)
        if first[0] < stop[0] and first[1] < stop[1]:
            mask[top + first[0] : top + stop[0], left + first[1] : left + stop[1]] |= shape[
                first[0] : stop[0], first[1] : stop[1]
            ]

    def _grown(self, steps: int) -> Mask:
        if steps not in self._shapes:
            shape = np.pad(self.footprint, steps)
            for _ in range(steps):
                shape = grown(shape)
            self._shapes[steps] = shape
        return self._shapes[steps]

    @cached_property
    def _shapes(self) -> dict[int, Mask]:
        return {}

    def cut(self, levels: Levels, offset: tuple[int, int]) -> Mask:
        """Of a window's difference from the background, the pixels of this piece: solid, near its footprint."""
        near = np.zeros(levels.shape, np.bool_)
        self.stamp(near, (-offset[0], -offset[1]), grow=1)
        core = np.zeros(levels.shape, np.bool_)
        self.stamp(core, (-offset[0], -offset[1]))
        return _touching((levels > self.seen_from) & near, core)

    @property
    def seen_from(self) -> int:
        """Levels from which a difference is the piece and not its halo."""
        return max(FOOTPRINT_LEVELS, round(0.35 * self.visible))


@dataclass(frozen=True)
class Tracked:
    """Where the pieces were seen in one frame."""

    player: Position | None
    boxes: tuple[Position, ...]
    missing: tuple[str, ...]
    confidence: float
    stray: Mask  # changed pixels that no piece explains, (H, W)
    stray_px: int


def changed_levels(frame: Frame, background: Frame) -> Levels:
    """Largest channel difference per pixel, (H, W) uint8."""
    gap = np.maximum(frame, background) - np.minimum(frame, background)
    return np.maximum(np.maximum(gap[..., 0], gap[..., 1]), gap[..., 2])


def tint_between(frame: Frame, background: Frame) -> Tint | None:
    """The colour drift of a frame against its background; None where there is none to speak of."""
    step = max(1, int((frame.shape[0] * frame.shape[1] / 4000) ** 0.5))
    seen = frame[::step, ::step].reshape(-1, 3)
    plain = background[::step, ::step].reshape(-1, 3)
    if np.percentile(np.maximum(seen, plain) - np.minimum(seen, plain), 80) <= 4:
        return None
    source = np.column_stack([plain.astype(np.float32), np.full(len(plain), 255.0, np.float32)])
    target = seen.astype(np.float32)
    keep = np.ones(len(seen), np.bool_)
    solution = np.zeros((4, 3), np.float32)
    for _ in range(3):
        # Ridge towards no change: two colours alone do not fix a 3 × 3 matrix.
        ridge = np.eye(4, dtype=np.float32) * 0.02 * 255**2 * 0.05 * keep.sum()
        prior = np.vstack([np.eye(3, dtype=np.float32), np.zeros((1, 3), np.float32)])
        part = source[keep]
        left: npt.NDArray[np.float64] = (part.T @ part + ridge).astype(np.float64)
        wanted: npt.NDArray[np.float64] = (part.T @ target[keep] + ridge @ prior).astype(np.float64)
        solution = np.linalg.solve(left, wanted).astype(np.float32)
        error = np.abs(source @ solution - target).max(axis=1)
        keep = error <= max(12.0, float(np.median(error)) * 2)
    if np.median(np.abs(source @ solution - target)) > 8 or np.abs(solution[:3] - np.eye(3)).max() > 0.6:
        return None
    return Tint(solution[:3].astype(np.float32), (solution[3] * 255).astype(np.float32))


def template_of(frame: Frame, background: Frame, lattice: Lattice, cell: Cell, colour: RGB) -> Template:
    """Cut a resting piece's template from the reference."""
    side = int(np.ceil(lattice.pitch))
    corner = lattice.pixel((float(cell[0]), float(cell[1])))
    top, left = max(0, corner[0]), max(0, corner[1])
    crop = frame[top : corner[0] + side, left : corner[1] + side]
    under = background[top : corner[0] + side, left : corner[1] + side]
    pad = (
        (top - corner[0], side - crop.shape[0] - (top - corner[0])),
        (left - corner[1], side - crop.shape[1] - (left - corner[1])),
    )
    levels = changed_levels(crop, under)
    paint = np.broadcast_to(np.array(colour, np.uint8), crop.shape)
    off = changed_levels(crop, paint)
    like = (off < 25) & (levels > FOOTPRINT_LEVELS)
    visible = int(np.median(levels[like])) if like.any() else 40
    tolerance = int(np.clip(0.45 * visible, 18, 60))
    footprint = _touching(levels > max(FOOTPRINT_LEVELS, round(0.2 * visible)), like)
    main = footprint & (off < tolerance)
    if not main.any():
        main = footprint if footprint.any() else np.ones_like(footprint)
    return Template(np.pad(footprint, pad), np.pad(main, pad), colour, tolerance, visible)


def _touching(mask: Mask, core: Mask) -> Mask:
    """The regions of a mask that share at least a few pixels with a core, holes filled."""
    labels, count = label(filled(mask), diagonal=True)
    shared = np.bincount(labels[core & mask], minlength=count + 1)
    shared[0] = 0
    return (shared > 0.05 * shared.max())[labels] if count and shared.any() else np.zeros_like(mask)


class Tracker:
    """Finds the player and the boxes of one picture in its frames."""

    def __init__(self, lattice: Lattice, player: Template, box: Template | None) -> None:
        self._lattice = lattice
        self._player = player
        self._box = box
        visible = min(player.visible, box.visible) if box else player.visible
        self.levels = int(np.clip(0.4 * visible, 14, 45))
        self._grow = max(2, round(0.08 * lattice.pitch))

    def track(self, frame: Frame, changed: Mask, state: GridState, tint: Tint | None) -> Tracked | None:
        """Explain the changed pixels (H, W) of a frame by pieces."""
        window = _bounds(changed)
        if window is None:
            names = ("player", *(f"box#{i}" for i in range(1, len(state.boxes) + 1)))
            return Tracked(None, (), names, 0.2, changed, 0)
        top, bottom, left, right = window
        part = np.ascontiguousarray(changed[top:bottom, left:right])
        masks = self._colour_masks(frame[top:bottom, left:right], part, tint)
        corner, confidence = self._find_player(masks[0], part, (top, left))
        boxes: list[Corner] = []
        if self._box is not None:
            boxes = self._find_boxes(masks[1], part, (top, left), state)
        stray = changed.copy()
        stray_px = self._stray(stray, corner, boxes)
        missing = [] if corner is not None else ["player"]
        missing += [f"box#{i}" for i in range(len(boxes) + 1, len(state.boxes) + 1)]
        return Tracked(
            self._position(corner) if corner is not None else None,
            tuple(self._position(place) for place in boxes),
            tuple(missing),
            confidence if not missing else min(confidence, 0.3),
            stray,
            stray_px,
        )

    def _colour_masks(self, part: Frame, changed: Mask, tint: Tint | None) -> list[Mask]:
        """Changed pixels in the player's colour, and in the boxes'."""
        gaps: list[Levels] = []
        masks: list[Mask] = []
        for template in (self._player, self._box):
            if template is None:
                continue
            colour = np.array(template.colour, np.uint8)
            colour = tint.apply(colour[np.newaxis])[0] if tint is not None else colour
            gap = changed_levels(part, np.broadcast_to(colour, part.shape))
            gaps.append(gap)
            masks.append(changed & (gap < template.tolerance))
        if len(masks) == 2:
            masks[0] &= gaps[0] <= gaps[1]
            masks[1] &= gaps[1] < gaps[0]
        return masks

    def _find_player(self, mask: Mask, changed: Mask, origin: tuple[int, int]) -> tuple[Corner | None, float]:
        """(corner of its window, confidence); no corner if it is gone, smeared or there twice."""
        labels, count = label(mask)
        areas = np.bincount(labels.ravel(), minlength=count + 1)[1:] / max(1, self._player.area)
        large = [int(i) for i in np.argsort(-areas) if areas[i] >= LOST]
        if not large:
            return None, 0.2
        if len(large) > 1 and areas[large[1]] > 0.5:
            return None, 0.2
        if areas[large[0]] > SMEARED + 8 / self._player.area:
            return None, 0.3
        blob = labels == large[0] + 1
        confidence = 1.0 if areas[large[0]] > 0.6 else 0.6
        return self._place(self._player, blob, changed, origin), confidence

    def _place(self, template: Template, blob: Mask, changed: Mask, origin: tuple[int, int]) -> Corner:
        """Corner of a piece's window from a blob of its main colour, all of it or the part that shows."""
        rows, cols = np.nonzero(blob)
        if len(rows) >= HIDDEN * template.area or template.area < 24:
            middle = template.centroid
            return (
                _whole(float(rows.mean()) - middle[0]) + origin[0],
                _whole(float(cols.mean()) - middle[1]) + origin[1],
            )
        top, bottom, left, right = template.extent()
        tops = {int(rows.min()) - top, int(rows.max()) + 1 - bottom}
        lefts = {int(cols.min()) - left, int(cols.max()) + 1 - right}

        def covered(corner: tuple[int, int]) -> int:
            mask = np.zeros(changed.shape, np.bool_)
            template.stamp(mask, corner)
            return int((mask & changed).sum()) - int((blob & ~mask).sum())

        best = max(((y, x) for y in tops for x in lefts), key=covered)
        return best[0] + origin[0], best[1] + origin[1]

    def _find_boxes(self, mask: Mask, changed: Mask, origin: tuple[int, int], state: GridState) -> list[Corner]:
        """Corners of the boxes' windows: those at rest first, then what is left of the colour."""
        template = self._box
        assert template is not None
        left = mask.copy()
        found: list[Corner] = []
        labels, count = label(left)
        for index in range(1, count + 1):
            blob = labels == index
            area = int(blob.sum())
            if 0.85 * template.area <= area <= 1.25 * template.area:
                found.append(self._place(template, blob, changed, origin))
                left &= ~blob
        for cell in self._free(state):
            if len(found) == len(state.boxes):
                break
            corner = self._lattice.pixel((float(cell[0]), float(cell[1])))
            if self._covered(template, left, corner, origin) > 0.88:
                found.append(corner)
                self._erase(template, left, corner, origin)
        labels, count = label(left)
        areas = np.bincount(labels.ravel(), minlength=count + 1)[1:]
        for index in np.argsort(-areas):
            if len(found) == len(state.boxes) or areas[index] < LOST * template.area:
                break
            found.append(self._place(template, labels == index + 1, changed, origin))
        return found + self._other_colour(changed, origin, state, found)

    def _other_colour(
        self, changed: Mask, origin: tuple[int, int], state: GridState, found: list[Corner]
    ) -> list[Corner]:
        """Boxes that are drawn in another colour on their goal."""
        template = self._box
        assert template is not None
        more: list[Corner] = []
        for cell in sorted(state.goals):
            corner = self._lattice.pixel((float(cell[0]), float(cell[1])))
            near = any(max(abs(corner[0] - y), abs(corner[1] - x)) < 0.6 * self._lattice.pitch for y, x in found)
            wanted = len(found) + len(more) < len(state.boxes) and not near
            if wanted and self._covered(template, changed, corner, origin) > 0.9:
                more.append(corner)
        return more

    def _free(self, state: GridState) -> list[Cell]:
        return [cell for cell in self._lattice.cells() if cell not in state.blocked]

    def _covered(self, template: Template, mask: Mask, corner: tuple[int, int], origin: tuple[int, int]) -> float:
        """Share of the template's main colour that a mask shows at a corner."""
        top, left = corner[0] - origin[0], corner[1] - origin[1]
        height, width = template.main.shape
        if top >= mask.shape[0] or left >= mask.shape[1] or top + height <= 0 or left + width <= 0:
            return 0.0
        first = max(0, -top), max(0, -left)
        part = mask[max(0, top) : top + height, max(0, left) : left + width]
        main = template.main[first[0] : first[0] + part.shape[0], first[1] : first[1] + part.shape[1]]
        return float((part & main).sum()) / max(1, template.area)

    def _erase(self, template: Template, mask: Mask, corner: tuple[int, int], origin: tuple[int, int]) -> None:
        gone = np.zeros(mask.shape, np.bool_)
        template.stamp(gone, (corner[0] - origin[0], corner[1] - origin[1]), grow=1)
        mask &= ~gone

    def _stray(self, stray: Mask, player: Corner | None, boxes: list[Corner]) -> int:
        """Clear the pieces from the changed pixels and count what is left in solid spots."""
        explained = np.zeros(stray.shape, np.bool_)
        if player is not None:
            self._player.stamp(explained, player, self._grow)
        for corner in boxes:
            if self._box is not None:
                self._box.stamp(explained, corner, self._grow)
        stray &= ~explained
        return int(stray.sum())

    def _position(self, corner: Corner) -> Position:
        """In cells; exactly whole where the piece is on its cell's own pixel."""
        lattice = self._lattice
        row, col = (corner[0] - lattice.top) / lattice.pitch, (corner[1] - lattice.left) / lattice.pitch
        rest = lattice.pixel((float(round(row)), float(round(col))))
        if max(abs(rest[0] - corner[0]), abs(rest[1] - corner[1])) <= RESTING_PX:
            return float(round(row)), float(round(col))
        return row, col


def _whole(pixels: float) -> float:
    """Exactly whole where it nearly is: movers shift by whole pixels, and their pieces are found exactly."""
    return float(round(pixels)) if abs(pixels - round(pixels)) < 0.12 else pixels


def _bounds(mask: Mask) -> tuple[int, int, int, int] | None:
    rows = np.flatnonzero(mask.any(axis=1))
    if not len(rows):
        return None
    cols = np.flatnonzero(mask.any(axis=0))
    return int(rows[0]), int(rows[-1]) + 1, int(cols[0]), int(cols[-1]) + 1
