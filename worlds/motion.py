"""Pieces under way: positions along a path, and the mover that carries a picture's own pixels along it.

Knows no world: it speaks in configurations, and asks a scene for sprites, floor and pixel positions.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np

from worlds.world import Configuration, Frame, Frames, Position, Reading, Scene, Sprite

Path = Sequence[Configuration]


def completed(path: Path) -> list[dict[str, Position]]:
    """The path with every piece in every waypoint, so that paths of several actions can be joined.

    A piece that a waypoint leaves out stands where it stood before; before its first mention, where it is
    first mentioned.
    """
    known: dict[str, Position] = {}
    for waypoint in path:
        for piece, position in waypoint.items():
            known.setdefault(piece, position)
    full: list[dict[str, Position]] = []
    for waypoint in path:
        known = {**known, **waypoint}
        full.append(known)
    return full


def length(path: Path) -> float:
    """Arc length in the world's units: per segment, the way of the piece that goes farthest."""
    return sum(_segment_lengths(completed(path)))


def interpolate(path: Path, fraction: float) -> Configuration:
    """Where the pieces are after `fraction` (clamped to 0 … 1) of the path's length.

    Raises ValueError for a path without waypoints.
    """
    full = completed(path)
    if not full:
        raise ValueError("a path needs at least one waypoint")
    lengths = _segment_lengths(full)
    if fraction >= 1.0 or not lengths:
        return full[-1]
    left = max(0.0, fraction) * sum(lengths)
    for before, after, segment in zip(full, full[1:], lengths, strict=False):
        if left < segment:
            return {piece: _between(before[piece], after[piece], left / segment) for piece in before}
        left -= segment
    return full[-1]


def sample(path: Path, num_frames: int) -> list[Configuration]:
    """`num_frames` configurations at constant speed, the first at the start, the last exactly at the end."""
    last = max(1, num_frames - 1)
    return [interpolate(path, index / last) for index in range(num_frames)]


def move(scene: Scene, frame: Frame, reading: Reading, path: Path, num_frames: int, rest: int = 0) -> Frames:
    """Carry the pieces of a frame along a path. `frame`: (H, W, 3) uint8 -> (num_frames + rest, H, W, 3) uint8.

    Frame 0 is `frame`, bit for bit; so is every pixel that no piece sweeps. Sprites are shifted by whole
    pixels and never resampled. Pieces later in the path's mapping lie on top. The last `rest` frames are still.
    """
    frames: Frames = np.empty((num_frames + rest, *frame.shape), np.uint8)
    shifts = [_shifts(scene, reading, places) for places in sample(path, num_frames)] if path else []
    moved = [piece for piece in shifts[0] if any(s[piece] != (0, 0) for s in shifts)] if shifts else []
    if not moved:
        frames[:] = frame
        return frames
    sprites = {piece: _Stencil(sprite) for piece, sprite in scene.sprites(frame, reading, moved).items()}
    background = scene.without(frame, reading, moved)
    frames[0] = frame
    for index in range(1, num_frames):
        if all(shifts[index][piece] == (0, 0) for piece in moved):
            frames[index] = frame
            continue
        frames[index] = background
        for piece in moved:
            if piece in sprites:
                sprites[piece].paste(frames[index], shifts[index][piece])
    frames[num_frames:] = frames[num_frames - 1]
    return frames


def paste(canvas: Frame, sprite: Sprite, shift: tuple[int, int]) -> None:
    """Lay a sprite on the canvas in place, `shift` = (down, right) px from where it was cut; edges clip it."""
    _Stencil(sprite).paste(canvas, shift)


class _Stencil:
    """A sprite made ready to be laid down often: all bits of its pixels, and all bits of what stays around it."""

    def __init__(self, sprite: Sprite) -> None:
        self._top, self._left = sprite.top, sprite.left
        self._around = np.where(sprite.mask[..., np.newaxis], np.uint8(0), np.uint8(255)).repeat(3, axis=2)
        self._pixels = sprite.pixels & ~self._around

    def paste(self, canvas: Frame, shift: tuple[int, int]) -> None:
        height, width = self._pixels.shape[:2]
        top, left = self._top + shift[0], self._left + shift[1]
        first_row, first_col = max(0, -top), max(0, -left)
        stop_row, stop_col = min(height, canvas.shape[0] - top), min(width, canvas.shape[1] - left)
        if first_row >= stop_row or first_col >= stop_col:
            return
        part = np.s_[first_row:stop_row, first_col:stop_col]
        view = canvas[top + first_row : top + stop_row, left + first_col : left + stop_col]
        np.bitwise_and(view, self._around[part], out=view)
        np.bitwise_or(view, self._pixels[part], out=view)


def _shifts(scene: Scene, reading: Reading, configuration: Configuration) -> Mapping[str, tuple[int, int]]:
    """How far each piece's sprite is from where the reading saw it, px (down, right)."""
    shifts: dict[str, tuple[int, int]] = {}
    for piece, position in configuration.items():
        seen = reading.configuration.get(piece)
        if seen is None:
            continue
        here, there = scene.pixel(seen), scene.pixel(position)
        shifts[piece] = (there[0] - here[0], there[1] - here[1])
    return shifts


def _segment_lengths(path: Sequence[Mapping[str, Position]]) -> list[float]:
    return [
        max((math.dist(before[piece], after[piece]) for piece in before), default=0.0)
        for before, after in itertools.pairwise(path)
    ]


def _between(before: Position, after: Position, fraction: float) -> Position:
    return (
        before[0] + (after[0] - before[0]) * fraction,
        before[1] + (after[1] - before[1]) * fraction,
    )
