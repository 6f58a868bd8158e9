"""Whether what does not move still looks as it did: a picture that melts is gone before its pieces are."""

from __future__ import annotations

import numpy as np

from worlds.world import Frame, Mask, Reading, Scene

LEVELS = 16  # noise and drift of colour stay below
SHARE = 0.04  # of the pixels where no piece is or was
STRIDE = 2  # px; every second pixel of every second row is enough
MARGIN = 4  # px around a piece
SAME_PLACE = 1e-3


def is_steady(scene: Scene, first: Frame, start: Reading, frame: Frame, reading: Reading) -> bool:
    """Compare a frame with the first one of its footage, apart from where its moved pieces stood and stand.

    `first`, `frame`: (H, W, 3) uint8 RGB of one size; `start`, `reading`: what was read in them. A false alarm
    needs 4 % of the still pixels to change by more than 16 levels in some channel.
    """
    changed = _changed(first[::STRIDE], frame[::STRIDE])
    if not changed.any():
        return True
    swept = _around(scene, first, start, reading)[::STRIDE, ::STRIDE]
    still = swept.size - np.count_nonzero(swept)
    return still == 0 or bool(np.count_nonzero(changed & ~swept) / still <= SHARE)


def _changed(first: Frame, frame: Frame) -> Mask:
    """(h, w) whether some channel of every second column differs by more than the limit.

    Whole rows are compared, in bytes: that is quicker than to pick every second pixel first.
    """
    differs = np.maximum(first, frame) - np.minimum(first, frame) > LEVELS
    red, green, blue = (differs[:, ::STRIDE, channel] for channel in range(3))
    return red | green | blue


def _around(scene: Scene, first: Frame, start: Reading, reading: Reading) -> Mask:
    """(H, W) the boxes of the moved pieces, before and now."""
    moved = [
        piece
        for piece, (y, x) in start.configuration.items()
        if (there := reading.configuration.get(piece)) is not None
        and abs(there[0] - y) + abs(there[1] - x) > SAME_PLACE
    ]
    mask = np.zeros(first.shape[:2], np.bool_)
    for piece, sprite in scene.sprites(first, start, moved).items():
        before = scene.pixel(start.configuration[piece])
        now = scene.pixel(reading.configuration[piece])
        height, width = sprite.mask.shape
        for down, right in ((0, 0), (now[0] - before[0], now[1] - before[1])):
            top, left = sprite.top + down - MARGIN, sprite.left + right - MARGIN
            mask[max(0, top) : top + height + 2 * MARGIN, max(0, left) : left + width + 2 * MARGIN] = True
    return mask
