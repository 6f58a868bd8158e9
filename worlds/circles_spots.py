"""Finds round spots on a plain background. Knows no task."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from PIL import Image

from worlds import channels, regions
from worlds.world import Frame, Mask

Floats = npt.NDArray[np.float64]
APART = 22  # levels between a spot and the background
ROUND = 0.92  # share of the ideal disc that a spot alone fills at least
WORK_SIDE = 640  # px, first pictures are searched at this size


@dataclass(frozen=True)
class Spot:
    """A disc: centre and radius in px, pixel i spans i … i + 1; its fill's colour; how round it is, 0 … 1."""

    y: float
    x: float
    radius: float
    colour: Floats
    roundness: float


def background_of(frame: Frame) -> Floats | None:
    """The colour of most of the picture, if it is plain; (3,) levels."""
    coarse = (frame[::2, ::2] >> 4).reshape(-1, 3).astype(np.int64)
    keys = coarse @ np.array([256, 16, 1])
    counts = np.bincount(keys, minlength=4096)
    members = frame[::2, ::2].reshape(-1, 3)[keys == int(np.argmax(counts))]
    colour = channels.median(members)
    near = ~channels.differs(frame[::2, ::2], colour, APART - 0.5)
    return colour if near.mean() > 0.4 else None


def spots(
    frame: Frame,
    background: Floats,
    *,
    factor: int | None = None,
    strict: bool = True,
    known: Sequence[Spot] = (),
) -> list[Spot] | None:
    """Every disc on the background; None (strict) if something there is no disc. `factor` shrinks the search.

    A disc that is where a known one is, is that one, without a closer look.
    """
    shrink = factor or max(1, -(-max(frame.shape[:2]) // WORK_SIDE))
    small = (
        np.asarray(Image.fromarray(frame).reduce(shrink)) if strict and shrink > 1 else frame[::shrink, ::shrink]
    )
    differs = channels.differs(small, background, APART)
    labels, areas = regions.only(*regions.label(differs), 12)
    if len(areas) > 40:
        return None
    found: list[Spot] = []
    for index, box in enumerate(regions.boxes(labels, len(areas)), start=1):
        mask = labels[box[0] : box[2], box[1] : box[3]] == index
        alone = _alone(mask, strict=strict)
        if alone is None and strict:
            alone = _alone_but_for_its_halo(mask, _levels(small, box, background))
        if alone is None:
            parts = _overlapping(small, box, mask) if strict else []
            if parts is None:
                return None
            found += [refine(frame, background, part, shrink, whole=False) for part in parts]
        else:
            y, x, radius = alone
            rough = (box[0] + y, box[1] + x, radius)
            same = [spot for spot in known if _is_at(spot, rough, shrink)]
            found.append(same[0] if same else refine(frame, background, rough, shrink, whole=True))
    return found


def _is_at(spot: Spot, rough: tuple[float, float, float], shrink: int) -> bool:
    """Whether a roughly measured disc can be this one."""
    away = math.hypot(spot.y - rough[0] * shrink, spot.x - rough[1] * shrink)
    return away <= 1.5 * shrink and abs(spot.radius - rough[2] * shrink) <= 1.5 * shrink


def _alone(mask: Mask, *, strict: bool) -> tuple[float, float, float] | None:
    """(y, x, radius) of a region that is one disc, in its box."""
    return _disc(mask.tobytes(), *mask.shape, strict)


@lru_cache(maxsize=256)
def _disc(pixels: bytes, height: int, width: int, strict: bool) -> tuple[float, float, float] | None:
    """A disc that rests, or has moved by whole pixels, has been measured before."""
    mask = np.frombuffer(pixels, np.bool_).reshape(height, width)
    solid = regions.filled(mask)
    fill = float(solid.sum()) / (math.pi / 4 * height * width)
    side = max(height, width)
    if strict:
        uneven, least, most = 1.5, ROUND - 1.0 / side, 1.04 + 1.25 / side
    else:
        uneven, least, most = 2.5, 0.8, 1.06 + 2.0 / side
    if abs(height - width) > max(uneven, 0.07 * side) or not least <= fill <= most:
        return None
    return height / 2, width / 2, (height + width) / 4


def _levels(picture: Frame, box: regions.Box, background: Floats) -> Floats:
    """How far a box of the picture is from the background, levels."""
    return np.abs(picture[box[0] : box[2], box[1] : box[3]] - background).max(axis=2)


def _alone_but_for_its_halo(mask: Mask, levels: Floats) -> tuple[float, float, float] | None:
    """`_alone` of what stands out by half a disc's own contrast: lossy compression frays edges by 2 px."""
    bold = mask & (levels > 0.5 * float(np.percentile(levels[mask], 80)))
    labels, areas = regions.only(*regions.label(bold), 12)
    if len(areas) != 1:
        return None
    bold = labels > 0
    if (mask & ~regions.grown(regions.grown(bold))).any():
        return None
    top, left, bottom, right = regions.boxes(labels, 1)[0]
    found = _alone(bold[top:bottom, left:right], strict=True)
    return (found[0] + top, found[1] + left, found[2]) if found else None


def refine(
    frame: Frame, background: Floats, rough: tuple[float, float, float], shrink: int, *, whole: bool
) -> Spot:
    """Centre and radius to a fraction of a pixel. `rough`: (y, x, radius) px on the shrunken picture."""
    y, x, radius = (value * shrink for value in rough)
    reach = radius + 2 * shrink + 2
    top, left = max(0, int(y - reach)), max(0, int(x - reach))
    crop = frame[top : int(y + reach) + 1, left : int(x + reach) + 1]
    rows, cols = np.ogrid[0 : crop.shape[0], 0 : crop.shape[1]]
    away = np.hypot(rows + 0.5 + top - y, cols + 0.5 + left - x)
    core = crop[away < max(1.0, 0.55 * radius)]
    colour = channels.median(core) if core.size else background
    if not whole:
        return Spot(y, x, radius, colour, 0.8)
    differs = channels.largest(np.abs(crop - background))
    rim = differs[(away < radius - 0.3 * shrink) & (away > radius - max(1.5, 1.2 * shrink))]
    edge = float(np.median(rim)) if rim.size else APART * 2.0
    alpha = np.clip(differs / max(edge, 1.0), 0, 1)
    alpha[away > radius + 1.2 * shrink + 1] = 0
    alpha[regions.shrunken(regions.filled(alpha > 0.5))] = 1
    area = float(alpha.sum())
    return Spot(
        top + float((alpha * (rows + 0.5)).sum()) / area,
        left + float((alpha * (cols + 0.5)).sum()) / area,
        math.sqrt(area / math.pi),
        colour,
        1.0,
    )


def _overlapping(
    picture: Frame, box: tuple[int, int, int, int], mask: Mask
) -> list[tuple[float, float, float]] | None:
    """Discs that touch or cover each other, one by one by their colours; None if some part is no disc."""
    crop = picture[box[0] : box[2], box[1] : box[3]]
    labels, count = regions.flat(crop, APART)
    labels = np.where(mask, labels, 0).astype(np.int32)
    labels, areas = regions.only(labels, count, max(16, 0.02 * mask.size))
    found: list[tuple[float, float, float]] = []
    for index in range(1, len(areas) + 1):
        zone = labels == index
        fitted = _circle_of(zone)
        if fitted is None:
            return None
        found.append((box[0] + fitted[0], box[1] + fitted[1], fitted[2]))
    return found if len(found) > 1 else None


def _circle_of(zone: Mask) -> tuple[float, float, float] | None:
    """The circle on which most of a zone's outline lies: through three points of it, the best of many."""
    solid = regions.filled(zone)
    inner = solid.copy()
    inner[1:-1, 1:-1] &= solid[:-2, 1:-1] & solid[2:, 1:-1] & solid[1:-1, :-2] & solid[1:-1, 2:]
    inner[[0, -1], :] = False
    inner[:, [0, -1]] = False
    ys, xs = np.nonzero(solid & ~inner)
    if len(ys) < 8:
        return None
    points = np.stack([ys + 0.5, xs + 0.5], axis=1)
    picks = np.random.default_rng(0).integers(len(points), size=(300, 3))
    a, b, c = (points[picks[:, index]] for index in range(3))
    d = 2 * (a[:, 1] * (b[:, 0] - c[:, 0]) + b[:, 1] * (c[:, 0] - a[:, 0]) + c[:, 1] * (a[:, 0] - b[:, 0]))
    good = np.abs(d) > 1.0
    if not good.any():
        return None
    a, b, c, d = a[good], b[good], c[good], d[good]
    squares = [(p**2).sum(axis=1) for p in (a, b, c)]
    x = sum(s * (q[:, 0] - r[:, 0]) for s, q, r in zip(squares, (b, c, a), (c, a, b), strict=True)) / d
    y = sum(s * (q[:, 1] - r[:, 1]) for s, q, r in zip(squares, (c, a, b), (b, c, a), strict=True)) / d
    radius = np.hypot(a[:, 0] - y, a[:, 1] - x)
    off = np.abs(np.hypot(points[None, :, 0] - y[:, None], points[None, :, 1] - x[:, None]) - radius[:, None])
    share = (off < 1.0).mean(axis=1) - 10.0 * (radius > max(zone.shape))
    best = int(np.argmax(share))
    return (float(y[best]), float(x[best]), float(radius[best])) if share[best] > 0.4 else None
