"""A grid picture with a piece between two cells, made readable: the piece is set into its nearest cell.

A first picture is read with every piece in a cell. A clip that goes on from a cut starts in the middle of a move;
with its pieces set back the picture can be understood, and then the frame itself can be read against it.
"""

from __future__ import annotations

import math

import numpy as np

from worlds.channels import differs
from worlds.grid import Lattice
from worlds.grid_kinds import Picture, picture_of
from worlds.grid_pieces import changed_levels
from worlds.grid_prompts import Phrase, read_prompt
from worlds.legend import RGB, distance
from worlds.regions import boxes, filled, label
from worlds.world import Frame, Mask

ALIKE_LEVELS = 40  # of a piece's main colour
PIECE_COST_MAX = 0.3  # how far a colour may be from its word
COLOUR_SLACK = 0.04  # colours this near to the best fit as well: then the most frequent is meant
RIMS_PX = (3, 8)
COLOUR_SHARE_MIN = 0.0008  # of the picture: less is no colour of a piece
OFF_CELLS = 0.03  # farther from a cell's middle is between cells
OFF_CELLS_LOPSIDED = 0.15  # of shapes whose bounding box need not be in the middle
EVEN_SHAPES = ("circle", "square", "diamond", "triangle", "ring", "cross")
SIZE_MIN, SIZE_MAX = 0.25, 1.08  # of a cell, each way
PIECES_MAX = 12
FLOOR_LEVELS = 30.0  # a floor that differs by more from what is seen around the piece is not its floor
SPRITE_LEVELS = 10
Box = tuple[int, int, int, int]  # top, left, bottom, right


def resting(frame: Frame, prompt: str) -> Frame | None:
    """The frame with every piece that the prompt names set into a cell; None if none was between cells."""
    asked = read_prompt(prompt)
    regions = [
        (phrase, box) for phrase in (*asked.of("box"), *asked.of("player")) for box in _regions(frame, phrase)
    ]
    if not regions:
        return None
    found = [_bared(frame, [box for _, box in regions], width) for width in RIMS_PX]
    seen = [(erased, picture) for erased, picture in found if picture is not None]
    if not seen:
        return None
    erased, picture = max(seen, key=lambda pair: pair[1].lattice.pitch)
    between = [box for phrase, box in regions if _is_between(picture.lattice, phrase, box)]
    if not between:
        return None
    whole = frame.copy()
    for box in between:
        _set_back(whole, frame, erased, picture, ((box[0] + box[2]) / 2, (box[1] + box[3]) / 2))
    return whole


def _regions(frame: Frame, phrase: Phrase) -> list[Box]:
    """Regions of the colour that fits a phrase best, as large as a piece can be."""
    colour = _colour(frame, phrase)
    if colour is None:
        return []
    found = boxes(*label(~differs(frame, np.array(colour, np.int16), ALIKE_LEVELS - 1)))
    longest = min(frame.shape[:2]) / 2.5
    fitting = [
        b for b in found if min(b[2] - b[0], b[3] - b[1]) >= 5 and max(b[2] - b[0], b[3] - b[1]) <= longest
    ]
    return fitting if len(fitting) <= PIECES_MAX else []


def _colour(frame: Frame, phrase: Phrase) -> RGB | None:
    """The colour of the picture that the phrase names."""
    if phrase.colour is None:
        return None
    bins = (frame // 16).astype(np.int32) @ np.array([256, 16, 1], np.int32)
    counts = np.bincount(bins.ravel(), minlength=4096)
    names: dict[int, RGB] = {}
    for number in np.flatnonzero(counts > COLOUR_SHARE_MIN * bins.size).tolist():
        red, green, blue = (round(float(level)) for level in np.median(frame[bins == number], axis=0))
        names[number] = red, green, blue
    costs = {rgb: distance(rgb, phrase.colour) for rgb in names.values()}
    least = min(costs.values(), default=1.0)
    near = {rgb: counts[number] for number, rgb in names.items() if costs[rgb] <= least + COLOUR_SLACK}
    return max(near, key=lambda rgb: near[rgb]) if least <= PIECE_COST_MAX else None


def _bared(frame: Frame, regions: list[Box], width: int) -> tuple[Frame, Picture | None]:
    """The frame with each region painted in the colour that prevails on its rim, and the grid seen in it."""
    bare = frame.copy()
    for box in regions:
        size = max(box[2] - box[0], box[3] - box[1])
        inner, outer = _grown(box, round(0.08 * size) + 1), _grown(box, round(0.08 * size) + 1 + width)
        around = np.zeros(frame.shape[:2], np.bool_)
        around[outer] = True
        around[inner] = False
        pixels = frame[around]
        bins = (pixels // 16).astype(np.int32) @ np.array([256, 16, 1], np.int32)
        bare[inner] = np.median(pixels[bins == np.bincount(bins).argmax()], axis=0).astype(np.uint8)
    return bare, picture_of(bare)


def _grown(box: Box, grow: int) -> tuple[slice, slice]:
    top, left, bottom, right = box
    return slice(max(0, top - grow), bottom + grow), slice(max(0, left - grow), right + grow)


def _is_between(lattice: Lattice, phrase: Phrase, box: Box) -> bool:
    sizes = (box[2] - box[0]) / lattice.pitch, (box[3] - box[1]) / lattice.pitch
    if min(sizes) < SIZE_MIN or max(sizes) > SIZE_MAX:
        return False
    row, col = _position(lattice, ((box[0] + box[2]) / 2, (box[1] + box[3]) / 2))
    off = OFF_CELLS if phrase.shape in EVEN_SHAPES else OFF_CELLS_LOPSIDED
    return max(abs(row - round(row)), abs(col - round(col))) > max(off, 0.8 / lattice.pitch)


def _position(lattice: Lattice, centre: tuple[float, float]) -> tuple[float, float]:
    return (
        (centre[0] - lattice.top) / lattice.pitch - 0.5,
        (centre[1] - lattice.left) / lattice.pitch - 0.5,
    )


def _set_back(whole: Frame, frame: Frame, erased: Frame, picture: Picture, centre: tuple[float, float]) -> None:
    """Paint floor where the piece is and the piece into its nearest cell, both in `whole`."""
    lattice = picture.lattice
    place = _position(lattice, centre)
    seat = (math.ceil(place[0] - 0.5), math.ceil(place[1] - 0.5))
    here, there = lattice.pixel(place), lattice.pixel((float(seat[0]), float(seat[1])))
    side = math.ceil(lattice.pitch)
    window = _window(here, side, frame)
    bare = frame.copy()
    for row in {math.floor(place[0] + 1e-6), math.ceil(place[0] - 1e-6)}:
        for col in {math.floor(place[1] + 1e-6), math.ceil(place[1] - 1e-6)}:
            _uncover(bare, erased, picture, (row, col), _outside(frame, window))
    piece = np.zeros(frame.shape[:2], np.bool_)
    piece[window] = changed_levels(frame[window], bare[window]) > SPRITE_LEVELS
    piece = filled(piece)
    whole[piece] = bare[piece]
    down, right = there[0] - here[0], there[1] - here[1]
    rows, cols = np.nonzero(piece)
    inside = (
        (rows + down >= 0)
        & (rows + down < frame.shape[0])
        & (cols + right >= 0)
        & (cols + right < frame.shape[1])
    )
    rows, cols = rows[inside], cols[inside]
    whole[rows + down, cols + right] = frame[rows, cols]


def _window(corner: tuple[int, int], side: int, frame: Frame) -> tuple[slice, slice]:
    top, left = max(0, corner[0]), max(0, corner[1])
    return slice(top, min(corner[0] + side, frame.shape[0])), slice(left, min(corner[1] + side, frame.shape[1]))


def _outside(frame: Frame, window: tuple[slice, slice]) -> Mask:
    outside = np.ones(frame.shape[:2], np.bool_)
    outside[window] = False
    return outside


def _uncover(bare: Frame, erased: Frame, picture: Picture, cell: tuple[int, int], visible: Mask) -> None:
    """Paint what a cell shows where it is not visible: as the cell that agrees best with what is visible."""
    lattice = picture.lattice
    if not (0 <= cell[0] < lattice.rows and 0 <= cell[1] < lattice.cols):
        return
    top, bottom, left, right = lattice.box(cell)
    top, left = max(0, top), max(0, left)
    here = bare[top:bottom, left:right]
    seen = visible[top:bottom, left:right][: here.shape[0], : here.shape[1]]
    best: tuple[float, Frame] | None = None
    for kind in picture.kinds:
        others = [c for c in kind.cells if max(abs(c[0] - cell[0]), abs(c[1] - cell[1])) > 1]
        others = others or [c for c in kind.cells if c != cell]
        if not others:
            continue
        donor = min(others, key=lambda c: ((c[0] + c[1] - cell[0] - cell[1]) % 2, math.dist(c, cell)))
        patch = _patch(erased, lattice, donor, here.shape)
        score = float(changed_levels(here, patch)[seen].mean()) if seen.any() else -len(kind.cells)
        if best is None or score < best[0]:
            best = (score, patch)
    if best is None:
        return
    if best[0] > FLOOR_LEVELS:
        here[~seen] = np.median(here[seen], axis=0).astype(np.uint8)
    else:
        here[~seen] = best[1][~seen]


def _patch(frame: Frame, lattice: Lattice, cell: tuple[int, int], shape: tuple[int, ...]) -> Frame:
    """The pixels of a cell, cut or stretched by its edge to a shape."""
    top, bottom, left, right = lattice.box(cell)
    cut = frame[max(0, top) : bottom, max(0, left) : right][: shape[0], : shape[1]]
    grow = (shape[0] - cut.shape[0], shape[1] - cut.shape[1])
    return np.pad(cut, ((0, grow[0]), (0, grow[1]), (0, 0)), mode="edge")
