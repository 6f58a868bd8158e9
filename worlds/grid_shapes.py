"""Shapes of pieces: drawn with smooth edges at any sub-pixel place, and recognised from a mask."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

Alpha = npt.NDArray[np.float32]  # (h, w), 0 … 1
Floats = npt.NDArray[np.float64]

SHAPES = ("circle", "square", "diamond", "triangle", "star", "ring", "cross")


def inside(shape: str, v: Floats, u: Floats) -> npt.NDArray[np.bool_]:
    """Whether points are inside a shape of half-size 1 around (0, 0); v down, u right."""
    radius = np.hypot(u, v)
    if shape == "square":
        return np.maximum(np.abs(u), np.abs(v)) <= 1
    if shape == "diamond":
        return np.abs(u) + np.abs(v) <= 1
    if shape == "triangle":
        return (np.abs(v) <= 0.9) & (np.abs(u) <= (v + 0.9) / 1.8)
    if shape == "star":
        sector = (np.arctan2(u, -v) + math.pi / 5) % (2 * math.pi / 5) - math.pi / 5
        edge = 0.5 * math.sin(math.pi / 5) / (1 - 0.5 * math.cos(math.pi / 5))
        x, y = radius * np.cos(sector), radius * np.abs(np.sin(sector))
        return x + y / edge <= 1
    if shape == "ring":
        return (radius <= 1) & (radius >= 0.55)
    if shape == "cross":
        return (np.abs(np.abs(u) - np.abs(v)) <= 0.25) & (np.maximum(np.abs(u), np.abs(v)) <= 1)
    return radius <= 1


def coverage(shape: str, half_px: float, centre: tuple[float, float], smooth: bool) -> tuple[Alpha, int, int]:
    """How much of each pixel a shape covers: (alpha, top, left). `centre`: (y, x) px, sub-pixel."""
    top, left = math.floor(centre[0] - half_px) - 1, math.floor(centre[1] - half_px) - 1
    side = math.ceil(2 * half_px) + 3
    fine = 4 if smooth else 1
    steps = (np.arange(side * fine) + 0.5) / fine
    v = (steps[:, np.newaxis] + top - centre[0]) / half_px
    u = (steps[np.newaxis, :] + left - centre[1]) / half_px
    mask = inside(shape, v, u).astype(np.float32)
    return mask.reshape(side, fine, side, fine).mean(axis=(1, 3), dtype=np.float32), top, left


@lru_cache(maxsize=1)
def _templates() -> tuple[tuple[str, npt.NDArray[np.bool_]], ...]:
    found: list[tuple[str, npt.NDArray[np.bool_]]] = []
    for shape in SHAPES:
        mask = coverage(shape, 60.0, (64.0, 64.0), False)[0] > 0.5
        turns = 4 if shape == "triangle" else 1
        found += [(shape, _normal(np.rot90(mask, turn))) for turn in range(turns)]
    thin = np.abs(np.subtract.outer(np.arange(16), np.arange(16))) <= 1
    found.append(("cross", thin | thin[:, ::-1]))
    return tuple(found)


def _normal(mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """The mask's bounding box at 16 × 16."""
    rows, cols = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    steps = (np.arange(16) + 0.5) / 16
    y = (int(rows[0]) + steps * (int(rows[-1]) + 1 - int(rows[0]))).astype(np.int64)
    x = (int(cols[0]) + steps * (int(cols[-1]) + 1 - int(cols[0]))).astype(np.int64)
    return mask[np.ix_(y, x)]


def shape_of(mask: npt.NDArray[np.bool_]) -> str:
    """The shape that a mask (h, w) looks like most, by intersection over union; "" for an empty mask."""
    if not mask.any():
        return ""
    normal = _normal(mask)

    def agreement(template: npt.NDArray[np.bool_]) -> float:
        return float((normal & template).sum() / (normal | template).sum())

    return max(_templates(), key=lambda pair: agreement(pair[1]))[0]
