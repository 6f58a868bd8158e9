"""How a grid state is drawn: colours, shapes, lines, frame and paper of a look, from the look's own seed.

Colours are drawn until every piece stands out from what it stands on and every name fits its own colour best,
so that a prompt that names them can be understood.
"""

from __future__ import annotations

import colorsys
import math
from dataclasses import dataclass, replace

import numpy as np

from worlds.grid import Lattice
from worlds.legend import RGB, colour_of, contrast, distance, name_of
from worlds.world import Look

ROLES = ("floor", "wall", "player", "goal", "box")
CONTRAST_MIN = {"pastel": 0.14, "light": 0.2, "dark": 0.2}
NAME_MARGIN = 0.05
FRAME_PITCH_MIN_PX = 14.0


@dataclass(frozen=True)
class Style:
    """One look, resolved. Sizes are shares of a cell; `line` is the line's width, 0 for none."""

    floor: RGB
    wall: RGB
    player: RGB
    goal: RGB
    box: RGB
    player_shape: str
    goal_shape: str  # "tile" fills the cell
    box_shape: str
    trap_mark: bool  # traps carry a cross
    player_size: float
    box_size: float
    outline: bool
    line: float
    line_colour: RGB
    frame: float  # a border around the grid, in cells
    frame_colour: RGB
    smooth: bool
    noise: int  # levels of paper grain

    def colour(self, role: str) -> RGB:
        colours = {"floor": self.floor, "wall": self.wall, "player": self.player, "goal": self.goal}
        return colours.get(role, self.box)

    def name(self, role: str) -> str:
        """The plain name of a role's colour."""
        return name_of(self.colour(role))


def style_of(look: Look, *, boxes: bool = False) -> Style:
    """The style of a look; the same seed gives the same style. With boxes, no goal is a tile one could hide."""
    style = _style(look)
    if boxes and style.goal_shape in ("tile", "square"):
        return replace(style, goal_shape="ring")
    return style


def _style(look: Look) -> Style:
    rng = np.random.default_rng([look.seed, 7919])
    scheme = str(rng.choice(["light", "light", "pastel", "dark"]))
    colours = _colours(rng, scheme)
    floor, wall = colours["floor"], colours["wall"]
    line = float(rng.choice([0.0, 0.03, 0.04, 0.06]))
    line_colour = _shade(floor, -0.18 if scheme != "dark" else 0.2)
    frame = float(rng.choice([0.0, 0.0, 0.0, 0.25, 0.45]))
    return Style(
        floor=floor,
        wall=wall,
        player=colours["player"],
        goal=colours["goal"],
        box=colours["box"],
        player_shape=str(rng.choice(["circle", "circle", "circle", "diamond", "triangle"])),
        goal_shape=str(rng.choice(["tile", "tile", "square", "star", "ring"])),
        box_shape="square",
        trap_mark=bool(rng.random() < 0.6),
        player_size=float(rng.uniform(0.62, 0.86)),
        box_size=float(rng.choice([0.78, 0.88, 1.0])),
        outline=bool(rng.random() < 0.35),
        line=line,
        line_colour=line_colour,
        frame=frame,
        frame_colour=wall if rng.random() < 0.5 else _shade(wall, -0.15),
        smooth=bool(rng.random() < 0.75),
        noise=int(rng.choice([0, 0, 1, 2])),
    )


def lattice_of(rows: int, cols: int, look: Look, style: Style) -> tuple[Lattice, tuple[int, int]]:
    """Where the cells lie and the picture's (height, width), px; the longer side is `look.side_px`."""
    longest = max(rows, cols)
    frame = style.frame if look.side_px / (longest + 2 * style.frame) >= FRAME_PITCH_MIN_PX else 0.0
    pitch = look.side_px / (longest + 2 * frame)
    margin = frame * pitch
    size = (round(rows * pitch + 2 * margin), round(cols * pitch + 2 * margin))
    return Lattice(margin, margin, pitch, rows, cols), size


def _colours(rng: np.random.Generator, scheme: str) -> dict[str, RGB]:
    """Colours for every role that cannot be taken for one another, by eye or by name."""
    for _ in range(400):
        colours = {"floor": _floor(rng, scheme), "wall": _wall(rng, scheme)}
        hues = (float(rng.random()) + np.arange(3) / 3 + rng.uniform(-0.08, 0.08, 3)) % 1
        for role, hue in zip(("player", "goal", "box"), hues, strict=True):
            colours[role] = _piece(rng, scheme, float(hue))
        if _distinct(colours, scheme):
            return colours
    return {
        "floor": (255, 255, 255),
        "wall": (96, 96, 96),
        "player": (225, 30, 30),
        "goal": (20, 150, 40),
        "box": (255, 205, 30),
    }


def _floor(rng: np.random.Generator, scheme: str) -> RGB:
    hue, value = float(rng.random()), float(rng.uniform(0.92, 1.0))
    if scheme == "dark":
        return _hsv(hue, float(rng.uniform(0.0, 0.35)), float(rng.uniform(0.1, 0.24)))
    return _hsv(hue, float(rng.uniform(0.0, 0.12 if scheme == "pastel" else 0.05)), value)


def _wall(rng: np.random.Generator, scheme: str) -> RGB:
    hue = float(rng.random())
    if scheme == "dark":
        return _hsv(hue, float(rng.uniform(0.1, 0.4)), float(rng.uniform(0.5, 0.75)))
    if scheme == "pastel":
        return _hsv(hue, float(rng.uniform(0.2, 0.4)), float(rng.uniform(0.75, 0.92)))
    return _hsv(hue, float(rng.uniform(0.05, 0.6)), float(rng.uniform(0.2, 0.7)))


def _piece(rng: np.random.Generator, scheme: str, hue: float) -> RGB:
    if scheme == "pastel":
        return _hsv(hue, float(rng.uniform(0.45, 0.65)), float(rng.uniform(0.85, 0.98)))
    return _hsv(hue, float(rng.uniform(0.75, 1.0)), float(rng.uniform(0.7, 1.0)))


def _distinct(colours: dict[str, RGB], scheme: str) -> bool:
    least = CONTRAST_MIN[scheme]
    for role in ROLES:
        words = colour_of(name_of(colours[role]))
        if words is None:
            return False
        own = distance(colours[role], words)
        for other in ROLES:
            if other == role:
                continue
            if (
                contrast(colours[role], colours[other]) < least
                or _channel_gap(colours[role], colours[other]) < 56
            ):
                return False
            if distance(colours[other], words) < own + NAME_MARGIN:
                return False
    return True


def _channel_gap(a: RGB, b: RGB) -> int:
    """Largest difference of a channel, and of brightness more so: video keeps colour at half the resolution."""
    luma = abs(0.299 * (a[0] - b[0]) + 0.587 * (a[1] - b[1]) + 0.114 * (a[2] - b[2]))
    return max(round(2 * luma), max(abs(x - y) for x, y in zip(a, b, strict=True)))


def _hsv(hue: float, saturation: float, value: float) -> RGB:
    red, green, blue = (round(255 * channel) for channel in colorsys.hsv_to_rgb(hue % 1, saturation, value))
    return red, green, blue


def _shade(colour: RGB, amount: float) -> RGB:
    """Darker for a negative amount, lighter for a positive one."""
    target = 255 if amount > 0 else 0
    red, green, blue = (round(value + (target - value) * math.fabs(amount)) for value in colour)
    return red, green, blue
