"""Reads printed numbers: from the ink of one tile to a score for every number.

The network (400 inputs, two hidden layers, 10 digits and "no digit") was trained by `bench/train_digits.py` on
glyphs drawn with free fonts of Debian 12; only its weights are shipped, no font and no glyph. Sources and
licences: DejaVu (Bitstream Vera licence), Liberation, Croscore, Noto, Lato, Open Sans (OFL or Apache-2.0), Roboto
(Apache-2.0), GNU FreeFont (GPL-3 with font exception), URW base 35 (AGPL-3 with font exception), TeX Gyre (GUST),
Linux Libertine (OFL/GPL with font exception) and smaller OFL families; the script lists all of them.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

from worlds import channels, regions
from worlds.world import Frame, Mask

Floats = npt.NDArray[np.float32]

SIDE = 20  # px, the network's input is SIDE x SIDE
INNER = 18  # px, the glyph's longer side in it
NO_DIGIT = 10
INK = 0.4  # share of the strongest ink that counts as ink
CONTRAST_MIN = 14.0  # levels, 0-255; weaker marks are noise
IMPOSSIBLE = -30.0  # natural log


@dataclass(frozen=True)
class Ink:
    """The number drawn on a tile: alpha (h, w) in 0 … 1, and where its top left lies in the tile, px."""

    alpha: Floats
    top: int
    left: int
    contrast: float  # levels, 0-255


def ink_of(tile: Frame) -> Ink | None:
    """The marks inside a tile's face (h, w, 3), or None on a bare one.

    What touches the border (frames, rounded corners) is not ink. A plane is fitted, so a gradient is bare too.
    """
    difference = _distance_from_face(tile)
    scratch = difference.copy()
    for _ in range(3):
        top = _strongest(scratch)
        if top < CONTRAST_MIN:
            return None
        mask = scratch > max(INK * top, 0.6 * CONTRAST_MIN)
        kept = _inner_marks(mask)
        if kept is None:
            scratch = np.where(mask, np.float32(0), scratch)
            continue
        return _cut(difference, mask, kept)
    return None


def _distance_from_face(tile: Frame) -> Floats:
    """(h, w) Euclidean colour distance from the tile's own (possibly graded) colour."""
    pixels = tile.astype(np.float32)
    height, width = pixels.shape[:2]
    face = channels.median(tile).astype(np.float32)
    rows, cols = np.mgrid[0:height, 0:width].astype(np.float32)
    design = np.stack([rows.ravel() / height, cols.ravel() / width, np.ones(rows.size, np.float32)], axis=1)
    flat = pixels.reshape(-1, 3)
    plane = np.broadcast_to(face, flat.shape)
    for tolerance in (40.0, 14.0):
        near = channels.largest(np.abs(flat - plane)) < tolerance
        if near.sum() < max(12, 0.3 * near.size):
            break
        weights, *_ = np.linalg.lstsq(design[near], flat[near], rcond=None)
        plane = design @ weights
    return np.linalg.norm(flat - plane, axis=1).reshape(height, width).astype(np.float32)


def _strongest(difference: Floats) -> float:
    count = max(4, int(0.0005 * difference.size))
    return float(np.partition(difference.ravel(), -count)[-count])


def _inner_marks(mask: Mask) -> Mask | None:
    """The connected marks that do not touch the border and are no frame; specks are dropped."""
    labels, count = regions.label(mask, diagonal=True)
    height, width = mask.shape
    good: list[tuple[int, int]] = []
    for index, (first, left, stop, right) in enumerate(regions.boxes(labels, count), start=1):
        tall, wide = stop - first, right - left
        touches = first == 0 or left == 0 or stop == height or right == width
        if not touches and not (tall > 0.85 * height and wide > 0.85 * width):
            good.append((tall, index))
    if not good:
        return None
    tallest = max(tall for tall, _ in good)
    if tallest < 4:
        return None
    return np.isin(labels, [index for tall, index in good if tall >= 0.35 * tallest])


def _cut(difference: Floats, mask: Mask, kept: Mask) -> Ink:
    near = regions.grown(kept) & (kept | ~mask)
    top = float(np.percentile(difference[kept], 95))
    alpha = np.where(near, np.clip(difference / top, 0, 1), 0).astype(np.float32)
    rows, cols = np.flatnonzero(kept.any(axis=1)), np.flatnonzero(kept.any(axis=0))
    box = np.s_[rows[0] : rows[-1] + 1, cols[0] : cols[-1] + 1]
    return Ink(alpha[box], int(rows[0]), int(cols[0]), top)


def normalise(alpha: Floats) -> Floats:
    """A glyph's ink (h, w) -> (SIDE * SIDE,): cut to its box, longer side INNER px, centred."""
    solid = alpha > INK * max(float(alpha.max(initial=0)), 1e-6)
    rows, cols = np.flatnonzero(solid.any(axis=1)), np.flatnonzero(solid.any(axis=0))
    out = np.zeros((SIDE, SIDE), np.float32)
    if rows.size == 0:
        return out.ravel()
    glyph = alpha[rows[0] : rows[-1] + 1, cols[0] : cols[-1] + 1]
    scale = INNER / max(glyph.shape)
    height, width = (max(1, round(side * scale)) for side in glyph.shape)
    small = Image.fromarray(glyph).resize((width, height), Image.Resampling.BILINEAR)
    top, left = (SIDE - height) // 2, (SIDE - width) // 2
    out[top : top + height, left : left + width] = np.asarray(small, np.float32)
    return out.ravel() / max(float(out.max()), 1e-6)


@cache
def _weights() -> list[tuple[Floats, Floats]]:
    """Layers as (weights, bias), float32."""
    with np.load(Path(__file__).with_name("digits.npz")) as stored:
        return [
            (stored[f"w{layer}"].astype(np.float32), stored[f"b{layer}"].astype(np.float32)) for layer in range(3)
        ]


def log_probabilities(glyphs: Floats, layers: list[tuple[Floats, Floats]] | None = None) -> Floats:
    """(n, SIDE * SIDE) -> (n, 11) natural logs; the last column is "no digit"."""
    hidden = glyphs
    chosen = layers or _weights()
    for number, (weights, bias) in enumerate(chosen):
        hidden = hidden @ weights + bias
        if number + 1 < len(chosen):
            hidden = np.maximum(hidden, 0)
    top = hidden.max(axis=1, keepdims=True)
    return np.maximum(hidden - top - np.log(np.exp(hidden - top).sum(axis=1, keepdims=True)), IMPOSSIBLE)


def number_scores(ink: Ink, largest: int) -> Floats:
    """(largest + 1,) log scores of the numbers 0 … largest (at most 99); a leading zero is read over."""
    cuts = _cuts(ink.alpha)
    parts: list[Floats] = [ink.alpha]
    for cut in cuts:
        parts += [ink.alpha[:, :cut], ink.alpha[:, cut:]]
    logs = log_probabilities(np.stack([normalise(part) for part in parts]))[:, :NO_DIGIT]
    scores = np.full(100, 2 * IMPOSSIBLE, np.float32)
    scores[:10] = logs[0]
    for index in range(len(cuts)):
        pair = logs[1 + 2 * index][:, None] + logs[2 + 2 * index][None, :]  # (10, 10), tens by units
        scores = np.maximum(scores, pair.ravel())
    return scores[: largest + 1]


def _cuts(alpha: Floats) -> list[int]:
    """Columns where a number may fall into two digits: true gaps, or the thinnest places of one blob."""
    height, width = alpha.shape
    profile = alpha.sum(axis=0)
    bare = profile < 0.3
    turns = [int(turn) + 1 for turn in np.flatnonzero(np.diff(bare))]
    gaps = [(start + stop) // 2 for start, stop in itertools.pairwise(turns) if bare[start]]
    if width < 0.55 * height:
        return gaps
    middle = np.arange(max(1, int(0.2 * width)), max(2, int(0.8 * width)))
    order = middle[np.argsort(profile[middle], kind="stable")]
    thin: list[int] = []
    for column in order:
        if all(abs(int(column) - other) > max(1, 0.06 * width) for other in [*thin, *gaps]):
            thin.append(int(column))
        if len(thin) == 4:
            break
    return gaps + thin
