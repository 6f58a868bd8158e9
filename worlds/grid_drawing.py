"""Draws grid states: the static picture once, then the pieces at any sub-pixel place."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from worlds.grid import PLAYER, GridState, Lattice, configuration_of
from worlds.grid_looks import Style, lattice_of, style_of
from worlds.grid_shapes import coverage
from worlds.legend import RGB
from worlds.world import Configuration, Frame, Frames, Look, Position

Canvas = npt.NDArray[np.float32]  # (H, W, 3), 0–255

DARKER = 0.55


def draw(state: GridState, look: Look, configuration: Configuration | None, *, traps: bool = False) -> Frame:
    """The state as a picture (H, W, 3) uint8 RGB, pieces where `configuration` says."""
    return draw_frames(state, look, [configuration or configuration_of(state)], traps=traps)[0]


def draw_frames(
    state: GridState, look: Look, configurations: Sequence[Configuration], *, traps: bool = False
) -> Frames:
    """The state with its pieces at each configuration, (T, H, W, 3) uint8 RGB. Draws the static part once."""
    style = style_of(look, boxes=bool(state.boxes))
    lattice, size = lattice_of(state.rows, state.cols, look, style)
    static = _static(state, style, lattice, size, traps)
    grain = _grain(look, style, size)
    frames = np.empty((len(configurations), *size, 3), np.uint8)
    for index, configuration in enumerate(configurations):
        canvas = static.copy()
        for piece, position in sorted(configuration.items()):
            _draw_piece(canvas, piece, position, style, lattice)
        frames[index] = np.clip(np.rint(canvas + grain), 0, 255)
    return frames


def _static(state: GridState, style: Style, lattice: Lattice, size: tuple[int, int], traps: bool) -> Canvas:
    canvas = np.empty((*size, 3), np.float32)
    canvas[:] = style.frame_colour
    for cell in lattice.cells():
        top, bottom, left, right = lattice.box(cell)
        canvas[top:bottom, left:right] = style.wall if cell in state.blocked else style.floor
    if style.goal_shape == "tile":
        for cell in state.goals:
            top, bottom, left, right = lattice.box(cell)
            canvas[top:bottom, left:right] = style.goal
    _draw_lines(canvas, style, lattice)
    if traps and style.trap_mark:
        for cell in sorted(state.blocked):
            _draw_shape(canvas, "cross", _shade(style.wall), 0.32 * lattice.pitch, _centre(cell, lattice), style)
    if style.goal_shape != "tile":
        for cell in sorted(state.goals):
            _draw_shape(canvas, style.goal_shape, style.goal, 0.4 * lattice.pitch, _centre(cell, lattice), style)
    return canvas


def _draw_lines(canvas: Canvas, style: Style, lattice: Lattice) -> None:
    if style.line == 0.0:
        return
    width = max(1, round(style.line * lattice.pitch))
    bottom, right = lattice.box((lattice.rows - 1, lattice.cols - 1))[1::2]
    top, left = lattice.box((0, 0))[0::2]
    for row in range(lattice.rows + 1):
        y = round(lattice.top + row * lattice.pitch) - width // 2
        canvas[max(0, y) : max(0, y + width), left:right] = style.line_colour
    for col in range(lattice.cols + 1):
        x = round(lattice.left + col * lattice.pitch) - width // 2
        canvas[top:bottom, max(0, x) : max(0, x + width)] = style.line_colour


def _draw_piece(canvas: Canvas, piece: str, position: Position, style: Style, lattice: Lattice) -> None:
    player = piece == PLAYER
    shape = style.player_shape if player else style.box_shape
    colour = style.player if player else style.box
    half = (style.player_size if player else style.box_size) * lattice.pitch / 2
    centre = _centre(position, lattice)
    if style.outline and half > 7:
        _draw_shape(canvas, shape, _shade(colour), half, centre, style)
        half -= max(1.0, 0.05 * lattice.pitch)
    _draw_shape(canvas, shape, colour, half, centre, style)


def _draw_shape(
    canvas: Canvas, shape: str, colour: RGB, half_px: float, centre: tuple[float, float], style: Style
) -> None:
    alpha, top, left = coverage(shape, half_px, centre, style.smooth)
    rows = slice(max(0, top), min(canvas.shape[0], top + alpha.shape[0]))
    cols = slice(max(0, left), min(canvas.shape[1], left + alpha.shape[1]))
    if rows.start >= rows.stop or cols.start >= cols.stop:
        return
    part = alpha[rows.start - top : rows.stop - top, cols.start - left : cols.stop - left, np.newaxis]
    canvas[rows, cols] += (np.array(colour, np.float32) - canvas[rows, cols]) * part


def _centre(position: tuple[float, float], lattice: Lattice) -> tuple[float, float]:
    row, col = position
    return lattice.top + (row + 0.5) * lattice.pitch, lattice.left + (col + 0.5) * lattice.pitch


def _grain(look: Look, style: Style, size: tuple[int, int]) -> Canvas:
    """Paper grain: the same in every frame of a look."""
    if style.noise == 0:
        return np.zeros((*size, 1), np.float32)
    rng = np.random.default_rng([look.seed, 104729])
    return rng.integers(-style.noise, style.noise + 1, (*size, 1)).astype(np.float32)


def _shade(colour: RGB) -> RGB:
    red, green, blue = (round(value * DARKER) for value in colour)
    return red, green, blue
