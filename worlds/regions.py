"""Connected regions and optimal assignment: the few functions of scipy that readers need, with types."""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
import numpy.typing as npt
from scipy import ndimage

from worlds.world import Frame, Mask

Labels = npt.NDArray[np.int32]
Box = tuple[int, int, int, int]  # top, left, bottom, right; the last two not included


def label(mask: Mask, *, diagonal: bool = False) -> tuple[Labels, int]:
    """Number the connected regions of a mask 1 … count; 0 is outside."""
    structure = np.ones((3, 3)) if diagonal else None
    labels, count = cast("tuple[Labels, int]", ndimage.label(mask, structure=structure))
    return np.asarray(labels, np.int32), count


def flat(picture: Frame, tolerance: int) -> tuple[Labels, int]:
    """Zones of a picture (H, W, 3): pixels joined while neighbours differ by less than `tolerance` levels."""
    height, width = picture.shape[:2]
    pixels = picture.astype(np.int16)
    joined = np.zeros((2 * height - 1, 2 * width - 1), np.bool_)
    joined[::2, ::2] = True
    joined[1::2, ::2] = np.abs(np.diff(pixels, axis=0)).max(axis=2) < tolerance
    joined[::2, 1::2] = np.abs(np.diff(pixels, axis=1)).max(axis=2) < tolerance
    labels, count = label(joined)
    return np.ascontiguousarray(labels[::2, ::2]), count


def only(labels: Labels, count: int, least_area: float) -> tuple[Labels, list[int]]:
    """Keep the regions of at least this many pixels, numbered anew; and their areas."""
    areas = np.bincount(labels.ravel(), minlength=count + 1)
    areas[0] = 0
    large = np.flatnonzero(areas >= least_area)
    renumber = np.zeros(count + 1, np.int32)
    renumber[large] = np.arange(1, len(large) + 1)
    return renumber[labels], [int(area) for area in areas[large]]


def boxes(labels: Labels, count: int) -> list[Box]:
    """The bounding box of every region, in order; an empty box for a number that does not occur."""
    found = cast("list[tuple[slice, slice] | None]", ndimage.find_objects(labels, count))
    return [
        (int(part[0].start), int(part[1].start), int(part[0].stop), int(part[1].stop)) if part else (0, 0, 0, 0)
        for part in found
    ]


def filled(mask: Mask) -> Mask:
    """The mask without holes."""
    return np.asarray(ndimage.binary_fill_holes(mask), np.bool_)


def shrunken(mask: Mask) -> Mask:
    """The mask without its pixels that have a neighbour outside."""
    return np.asarray(ndimage.binary_erosion(mask, structure=np.ones((3, 3))), np.bool_)


def grown(mask: Mask) -> Mask:
    """The mask and its eight-neighbours."""
    return np.asarray(ndimage.binary_dilation(mask, structure=np.ones((3, 3))), np.bool_)


def assign(costs: npt.NDArray[np.floating]) -> list[tuple[int, int]]:
    """(row, column) pairs, each at most once, of the least total cost."""
    from scipy import optimize  # a third of a second to import, and seldom needed

    rows, cols = optimize.linear_sum_assignment(costs)
    return [(int(row), int(col)) for row, col in zip(rows, cols, strict=True)]


Values = npt.NDArray[np.floating] | npt.NDArray[np.integer] | Sequence[float]


def line(places: Values, values: Values, weights: Values) -> tuple[float, float]:
    """(slope, value at 0) of the weighted least-squares line through at least two places."""
    x, y, w = (np.asarray(given, np.float64) for given in (places, values, weights))
    mean_x, mean_y = float((w * x).sum() / w.sum()), float((w * y).sum() / w.sum())
    slope = float((w * (x - mean_x) * (y - mean_y)).sum() / (w * (x - mean_x) ** 2).sum())
    return slope, mean_y - slope * mean_x
