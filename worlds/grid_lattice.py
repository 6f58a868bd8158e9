"""Where the cells of a grid picture are: pitch and offset from lines and colour changes, checked on the cells.

Straight edges that run across the picture lie on the lattice: their positions are in phase at the right pitch.
Of the pitches that are in phase, the largest is right whose cells look like cells: one colour in all four
corners, and what lies in a cell lies in its middle. Knows no roles.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from worlds.grid import Lattice
from worlds.world import Frame

Floats = npt.NDArray[np.float32]

PITCH_MIN_PX = 7.0
SIDE_MAX_CELLS = 40
SAMPLES = 16  # per cell and axis
EDGE_LEVELS = 6.0  # a colour change below this is noise
EDGE_LEVELS_MAX = 60.0  # a line may be as weak as a sixth of the strongest edge
COHERENCE_MIN = 0.25
CANDIDATES_MAX = 12
SNAP_COHERENCE = 0.95
COVERED_MIN = 0.7  # share of each side that the cells take up
CELLS_MIN = 9
FILLING = 1.1  # cells that fill the picture exactly are likelier
UNEVEN_MAX = 0.1  # share of cells
OFF_MAX = 0.34  # share of contents
CONTENT_LEVELS = 30.0  # how far content is from its tile's colour
CORNER_LEVELS = 30.0


@dataclass(frozen=True)
class Cells:
    """A picture's cells, sampled. n = rows × cols, in row-major order.

    `patches`: (n, 16, 16, 3) float32; `tiles`: (n, 3), the colour in the corners; `content`: (n, 16, 16) bool,
    what differs from it; `even`: (n,) bool, all corners agree; `centred`: (n,) bool, no content or in the middle.
    """

    lattice: Lattice
    patches: Floats
    tiles: Floats
    content: npt.NDArray[np.bool_]
    even: npt.NDArray[np.bool_]
    centred: npt.NDArray[np.bool_]


def find_cells(frame: Frame) -> Cells | None:
    """The lattice that fits the picture; None if it shows no grid. `frame`: (H, W, 3) uint8 RGB."""
    height, width = frame.shape[:2]
    if min(height, width) < 3 * PITCH_MIN_PX or max(height, width) > 12 * min(height, width):
        return None
    picture = frame.astype(np.float32)
    down, right = _profile(picture, 0), _profile(picture, 1)
    if down.sum() < 1e-3 or right.sum() < 1e-3:
        return None
    blurred = _blurred(picture) if min(height, width) > 300 else picture
    in_phase = [_lattice(pitch, down, right, (height, width)) for pitch in _pitches(down, right)]
    candidates = [*in_phase, *_filling(height, width)]
    seen = [sample_cells(blurred, lattice) for lattice in candidates if lattice is not None]
    scores = [_score(cells, down, right) for cells in seen]
    return seen[scores.index(max(scores))] if scores and max(scores) > 0 else None


def _blurred(picture: Floats) -> Floats:
    """Means of 3 × 3 pixels, at the picture's edges of those there are."""
    down = picture.copy()
    down[1:-1] = (picture[:-2] + picture[1:-1] + picture[2:]) / 3
    both = down.copy()
    both[:, 1:-1] = (down[:, :-2] + down[:, 1:-1] + down[:, 2:]) / 3
    return both


def _profile(picture: Floats, axis: int) -> Floats:
    """Strength of straight edges across the picture at every coordinate of an axis, (H,) or (W,)."""
    turned = picture if axis == 1 else picture.transpose(1, 0, 2)
    band = max(3, turned.shape[0] // 32)  # bands of so many pixels are averaged along the edge
    bands = turned[: len(turned) // band * band].reshape(-1, band, turned.shape[1], 3).mean(axis=1)
    steps = _widest(np.diff(bands, axis=1))
    steps = np.minimum(np.where(steps < EDGE_LEVELS, 0, steps), EDGE_LEVELS_MAX)
    profile = np.square(steps).mean(
        axis=0
    )  # squared: an edge that stays on one line counts more than a round one
    profile = np.concatenate([[0.0], profile])  # entry x: the edge between pixels x − 1 and x
    return np.maximum(profile - np.median(profile), 0).astype(np.float32)


def _widest(differences: Floats) -> Floats:
    """Largest absolute value over the last axis, the three channels."""
    gap = np.abs(differences)
    return np.maximum(np.maximum(gap[..., 0], gap[..., 1]), gap[..., 2])


def _pitches(down: Floats, right: Floats) -> list[float]:
    """Pitches at which the edges of both axes are in phase, largest first."""
    longest = min(len(down), len(right)) / 2
    count = int(np.log(longest / PITCH_MIN_PX) / np.log(1.003)) + 1
    scan = longest * 1.003 ** -np.arange(max(count, 1), dtype=np.float64)
    score = np.minimum(_coherence(down, scan), _coherence(right, scan))
    peaks = [
        i
        for i in range(len(scan))
        if score[i] > COHERENCE_MIN and score[i] >= score[max(0, i - 4) : i + 5].max() - 1e-9
    ]
    return [float(scan[i]) for i in peaks][:CANDIDATES_MAX]


def _filling(height: int, width: int) -> list[Lattice | None]:
    """Lattices of square cells that fill the picture exactly: where few edges speak for any other."""
    found: list[Lattice | None] = []
    short, long = sorted((height, width))
    for count in range(3, 17):
        pitch = short / count
        other = round(long / pitch)
        if pitch >= 2 * PITCH_MIN_PX and abs(long - other * pitch) <= 1.0 and other <= SIDE_MAX_CELLS:
            pitch = long / other
            rows, cols = round(height / pitch), round(width / pitch)
            found.append(Lattice(0.0, 0.0, pitch, rows, cols))
    return found


def _coherence(profile: Floats, pitches: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    places = np.flatnonzero(profile > 0.02 * profile.max())
    turns = np.exp(2j * np.pi * places[np.newaxis, :] / pitches[:, np.newaxis])
    weights = profile[places].astype(np.float64)
    return np.abs(turns @ weights) / weights.sum()


def _alignment(profile: Floats, start: float, pitch: float) -> float:
    """How well edges agree with lines at start + k · pitch: 1 all on them, −1 all half-way between."""
    turns = np.cos(2 * np.pi * (np.arange(len(profile)) - start) / pitch)
    return float(turns @ profile / profile.sum())


def _lattice(pitch: float, down: Floats, right: Floats, shape: tuple[int, int]) -> Lattice | None:
    """Refine the pitch on both axes and find where the first cell begins."""
    around = pitch * (1 + np.linspace(-0.004, 0.004, 33))
    both = _coherence(down, around) + _coherence(right, around)
    pitch = float(around[int(np.argmax(both))])
    top, left = _start(down, pitch), _start(right, pitch)
    pitch = _snapped(pitch, (shape[0] - top, shape[1] - left), (down, right), float(both.max()))
    top, left = _start(down, pitch), _start(right, pitch)
    rows = int((shape[0] - top) / pitch + 0.12)
    cols = int((shape[1] - left) / pitch + 0.12)
    if min(rows, cols) < 2 or rows * cols < CELLS_MIN or max(rows, cols) > SIDE_MAX_CELLS:
        return None
    if rows * pitch < COVERED_MIN * shape[0] or cols * pitch < COVERED_MIN * shape[1]:
        return None
    return Lattice(top, left, pitch, rows, cols)


def _snapped(
    pitch: float, sides: tuple[float, float], profiles: tuple[Floats, Floats], coherence: float
) -> float:
    """The pitch that fills the picture to its edge, or a whole one, if the edges allow it as well."""
    wholes = [(side / max(1, round(side / pitch)), 0.1) for side in sides] + [(float(round(pitch)), 0.02)]
    for whole, slack in wholes:
        if max(abs(side / whole - side / pitch) for side in sides) > slack:
            continue
        there = np.array([whole])
        if _coherence(profiles[0], there)[0] + _coherence(profiles[1], there)[0] > SNAP_COHERENCE * coherence:
            return whole
    return pitch


def _start(profile: Floats, pitch: float) -> float:
    places = np.arange(len(profile))
    phase = np.angle(np.sum(profile * np.exp(2j * np.pi * places / pitch)))
    start = float(phase / (2 * np.pi) * pitch) % pitch
    if pitch - start < max(0.12 * pitch, 1.0):
        start -= pitch
    return 0.0 if abs(start) < max(0.06 * pitch, 1.5) else start


def sample_cells(picture: Floats, lattice: Lattice) -> Cells:
    """Look at every cell of a lattice. `picture`: (H, W, 3) float32."""
    height, width = picture.shape[:2]
    steps = (np.arange(SAMPLES) + 0.5) / SAMPLES
    y = lattice.top + (np.arange(lattice.rows)[:, np.newaxis] + steps) * lattice.pitch
    x = lattice.left + (np.arange(lattice.cols)[:, np.newaxis] + steps) * lattice.pitch
    rows = np.clip(y.astype(int), 0, height - 1).reshape(-1)
    cols = np.clip(x.astype(int), 0, width - 1).reshape(-1)
    grid = picture[np.ix_(rows, cols)].reshape(lattice.rows, SAMPLES, lattice.cols, SAMPLES, 3)
    patches = grid.transpose(0, 2, 1, 3, 4).reshape(-1, SAMPLES, SAMPLES, 3)
    near = [1, 2] if lattice.pitch >= 12 else [2, 3]  # small cells: keep off lines that are a pixel wide
    far = [SAMPLES - 1 - index for index in near]
    quads = np.stack(
        [patches[:, ys][:, :, xs].reshape(-1, 4, 3) for ys in (near, far) for xs in (near, far)], axis=1
    )
    tiles = _most_common(quads.reshape(-1, 16, 3))
    apart = _widest(quads - tiles[:, np.newaxis, np.newaxis])  # (n, 4 corners, 4 samples)
    agree = apart.min(axis=2) < CORNER_LEVELS
    content = _widest(patches - tiles[:, np.newaxis, np.newaxis]) > CONTENT_LEVELS
    rim = int(np.ceil((1.3 / lattice.pitch + 0.03) * SAMPLES))
    content[:, :rim] = content[:, -rim:] = False
    content[:, :, :rim] = content[:, :, -rim:] = False
    inside = content.copy()
    inside[:, : rim + 1] = inside[:, -rim - 1 :] = False
    inside[:, :, : rim + 1] = inside[:, :, -rim - 1 :] = False
    centred = _centred(inside, SAMPLES * 0.6 / lattice.pitch)
    return Cells(lattice, patches, tiles, content, agree.sum(axis=1) >= 4, centred)


def _most_common(samples: Floats) -> Floats:
    """Of each row of (n, k, 3) samples, the colour that most of them agree on: (n, 3)."""
    apart = _widest(samples[:, :, np.newaxis] - samples[:, np.newaxis])
    alike = apart < CORNER_LEVELS
    best = alike[np.arange(len(samples)), alike.sum(axis=2).argmax(axis=1)]
    tiles: Floats = np.stack([(samples[..., c] * best).sum(axis=1) / best.sum(axis=1) for c in range(3)], axis=1)
    return tiles


def _centred(content: npt.NDArray[np.bool_], slack: float) -> npt.NDArray[np.bool_]:
    """Whether each cell's content (n, 16, 16) lies in the middle, give or take `slack`, or is next to none."""
    area = content.sum(axis=(1, 2))
    steps = np.arange(SAMPLES, dtype=np.float64) - (SAMPLES - 1) / 2
    weights = content / np.maximum(area, 1)[:, np.newaxis, np.newaxis]
    y: npt.NDArray[np.float64] = (weights.sum(axis=2) * steps).sum(axis=1)
    x: npt.NDArray[np.float64] = (weights.sum(axis=1) * steps).sum(axis=1)
    return (area < 8) | ((np.abs(y) < 2.4 + slack) & (np.abs(x) < 1.8 + slack))


def _score(cells: Cells, down: Floats, right: Floats) -> float:
    """How well a lattice explains the picture; 0 if its cells do not look like cells.

    Edges in phase, corners of one colour, contents in the middle; every part of a right pitch does as well, so
    larger cells are preferred.
    """
    full = cells.content.sum(axis=(1, 2)) >= 8
    uneven = float(1 - cells.even.mean())
    off = float((full & ~cells.centred).sum() / max(4, full.sum()))
    if uneven > UNEVEN_MAX or off > OFF_MAX:
        return 0.0
    lattice = cells.lattice
    phase = min(_alignment(down, lattice.top, lattice.pitch), _alignment(right, lattice.left, lattice.pitch))
    gaps = (len(down) - lattice.rows * lattice.pitch, len(right) - lattice.cols * lattice.pitch)
    fills = lattice.top == lattice.left == 0.0 and max(gaps) <= 1.0
    return (
        (FILLING if fills else 1.0) * (0.1 + max(0.0, phase)) * (1 - uneven) ** 4 * (1 - off) * lattice.pitch**0.3
    )
