"""Words of colours and shapes, and how far a pixel's colour is from a word.

Names are relative: a prompt's "white" is the whitest thing in the picture, so distances are soft and callers
assign all words of a prompt to all colours of a picture at once. Distances are in Oklab (B. Ottosson, 2020),
with hue weighing most, as people name colours by it.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import lru_cache

RGB = tuple[int, int, int]
Lab = tuple[float, float, float]

NAMES: dict[str, tuple[RGB, ...]] = {
    "white": ((255, 255, 255), (238, 238, 238)),
    "ivory": ((255, 255, 240),),
    "cream": ((255, 250, 225),),
    "snow": ((255, 250, 250),),
    "black": ((0, 0, 0), (34, 34, 34)),
    "charcoal": ((54, 60, 66),),
    "gray": ((128, 128, 128), (165, 165, 165), (95, 95, 95)),
    "silver": ((192, 192, 192),),
    "slate": ((92, 108, 124), (112, 128, 144)),
    "red": ((225, 30, 30), (255, 66, 66), (200, 30, 50)),
    "crimson": ((205, 20, 55),),
    "scarlet": ((240, 40, 20),),
    "maroon": ((115, 10, 25),),
    "burgundy": ((110, 15, 40),),
    "ruby": ((200, 20, 75),),
    "coral": ((255, 127, 80), (250, 115, 105)),
    "salmon": ((250, 128, 114),),
    "tomato": ((255, 99, 71),),
    "orange": ((255, 145, 0), (250, 120, 30)),
    "amber": ((255, 191, 0),),
    "peach": ((255, 205, 170),),
    "apricot": ((250, 190, 140),),
    "brown": ((130, 80, 35), (150, 100, 60), (95, 60, 35)),
    "chocolate": ((110, 60, 25),),
    "rust": ((180, 70, 20),),
    "bronze": ((170, 115, 50),),
    "copper": ((184, 115, 51),),
    "tan": ((210, 180, 140),),
    "beige": ((240, 230, 205), (225, 210, 180)),
    "sand": ((225, 200, 155),),
    "khaki": ((200, 185, 125), (240, 230, 140)),
    "wheat": ((245, 222, 179),),
    "yellow": ((255, 235, 40), (250, 215, 60)),
    "gold": ((255, 205, 30), (212, 175, 55)),
    "mustard": ((215, 170, 40),),
    "lemon": ((255, 245, 90),),
    "lime": ((150, 235, 40), (50, 225, 50)),
    "chartreuse": ((127, 255, 0),),
    "green": ((20, 150, 40), (70, 230, 80), (60, 180, 90)),
    "olive": ((128, 128, 20),),
    "emerald": ((30, 180, 100),),
    "mint": ((165, 240, 200),),
    "sage": ((160, 185, 145),),
    "jade": ((0, 168, 107),),
    "teal": ((0, 128, 128), (20, 150, 145)),
    "cyan": ((0, 225, 235), (60, 200, 220)),
    "aqua": ((40, 225, 225),),
    "turquoise": ((64, 215, 200),),
    "blue": ((30, 70, 220), (60, 130, 245), (70, 66, 254), (80, 140, 210)),
    "azure": ((40, 130, 250),),
    "sky": ((135, 200, 240),),
    "cobalt": ((0, 71, 171),),
    "sapphire": ((20, 80, 185),),
    "navy": ((15, 25, 95), (30, 40, 80)),
    "indigo": ((75, 0, 140), (65, 55, 160)),
    "purple": ((130, 40, 160), (155, 90, 200)),
    "violet": ((140, 70, 220), (160, 110, 220)),
    "lavender": ((205, 190, 240),),
    "lilac": ((200, 162, 200),),
    "plum": ((145, 70, 130),),
    "magenta": ((230, 20, 200), (210, 50, 160)),
    "fuchsia": ((240, 20, 170),),
    "pink": ((255, 150, 190), (250, 125, 135), (240, 100, 170)),
    "rose": ((240, 90, 130),),
}
COMPOUND: dict[str, RGB] = {
    "light blue": (173, 214, 235),
    "pale blue": (190, 220, 240),
    "sky blue": (135, 200, 240),
    "baby blue": (150, 205, 240),
    "powder blue": (176, 224, 230),
    "steel blue": (70, 130, 180),
    "royal blue": (50, 85, 215),
    "navy blue": (20, 30, 95),
    "midnight blue": (25, 25, 90),
    "ice blue": (200, 230, 245),
    "lime green": (60, 215, 60),
    "forest green": (30, 110, 40),
    "olive green": (110, 125, 40),
    "mint green": (160, 235, 190),
    "sea green": (46, 145, 100),
    "hot pink": (255, 90, 175),
    "off white": (245, 243, 235),
    "blood red": (140, 10, 15),
    "brick red": (170, 55, 45),
    "wine red": (115, 20, 45),
    "golden yellow": (250, 205, 40),
    "dark gray": (80, 80, 80),
    "light gray": (205, 205, 205),
    "blue gray": (105, 125, 145),
    "slate gray": (105, 120, 135),
    "dark slate gray": (47, 75, 78),
}
SYNONYMS = {
    "grey": "gray",
    "greyish": "grayish",
    "golden": "gold",
    "silvery": "silver",
    "rosy": "rose",
    "sandy": "sand",
    "creamy": "cream",
    "whitish": "white",
    "blackish": "black",
    "turquois": "turquoise",
    "fuschia": "fuchsia",
    "ochre": "mustard",
}
# How a modifier moves a colour: towards white or black, by how much.
MODIFIERS: dict[str, tuple[float, float]] = {
    "light": (0.5, 0.0),
    "lighter": (0.5, 0.0),
    "pale": (0.6, 0.0),
    "pastel": (0.5, 0.0),
    "soft": (0.3, 0.0),
    "faint": (0.7, 0.0),
    "dark": (0.0, 0.45),
    "darker": (0.0, 0.45),
    "deep": (0.0, 0.35),
    "dim": (0.0, 0.35),
    "medium": (0.0, 0.0),
    "mid": (0.0, 0.0),
    "bright": (0.0, 0.0),
    "vivid": (0.0, 0.0),
    "neon": (0.0, 0.0),
    "strong": (0.0, 0.0),
    "pure": (0.0, 0.0),
    "dull": (0.0, 0.2),
    "muted": (0.2, 0.1),
    "dusty": (0.25, 0.1),
    "very": (0.0, 0.0),
}
ISH = {
    "bluish": "blue",
    "greenish": "green",
    "reddish": "red",
    "yellowish": "yellow",
    "grayish": "gray",
    "purplish": "purple",
    "pinkish": "pink",
    "brownish": "brown",
    "orangish": "orange",
}
SHAPES: dict[str, tuple[str, ...]] = {
    "circle": ("circle", "ball", "disc", "disk", "dot", "round", "circular", "sphere", "orb", "bead", "coin"),
    "square": ("square", "tile", "block", "cell", "box", "crate", "cube", "rectangle", "brick"),
    "cross": ("x", "cross", "×", "✕", "✖", "✗"),
    "star": ("star",),
    "triangle": ("triangle", "triangular", "arrow", "arrowhead"),
    "diamond": ("diamond", "rhombus", "lozenge"),
    "ring": ("ring", "donut", "bullseye"),
}
SHAPE_OF = {word: shape for shape, words in SHAPES.items() for word in words}
HEX = re.compile(r"#([0-9a-f]{6}|[0-9a-f]{3})\b")
TRIPLE = re.compile(r"\(?\s*(\d{1,3})\s*,\s*(\d{1,3})\s*,\s*(\d{1,3})\s*\)?")


@dataclass(frozen=True)
class Colour:
    """A colour as a prompt names it: its words, and the RGB values that the words stand for."""

    words: str
    focal: tuple[RGB, ...]
    exact: bool = False  # given as hex or rgb()


def colour_of(words: str) -> Colour | None:
    """Read `"light blue"`, `"bluish dark gray"`, `"#3af"`, `"rgb(1, 2, 3)"`; None if it names no colour."""
    text = words.strip().lower()
    exact = _exact(text)
    if exact is not None:
        return Colour(text, (exact,), exact=True)
    parts = [SYNONYMS.get(part, part) for part in re.split(r"[\s-]+", text) if part]
    name = " ".join(parts)
    if name in COMPOUND:
        return Colour(text, (COMPOUND[name], *_modified(parts)))
    focal = _modified(parts)
    return Colour(text, focal) if focal else None


def _exact(text: str) -> RGB | None:
    match = HEX.fullmatch(text)
    if match:
        digits = match.group(1)
        if len(digits) == 3:
            digits = "".join(2 * digit for digit in digits)
        return int(digits[:2], 16), int(digits[2:4], 16), int(digits[4:], 16)
    match = TRIPLE.fullmatch(text.removeprefix("rgb"))
    if match:
        values = [int(group) for group in match.groups()]
        return (values[0], values[1], values[2]) if max(values) <= 255 else None
    return None


def _modified(parts: list[str]) -> tuple[RGB, ...]:
    """Focal colours of a phrase: base names mixed, then lightened or darkened."""
    bases = [part for part in parts if part in NAMES]
    tints = [ISH[part] for part in parts if part in ISH]
    if not bases:
        bases, tints = tints, []
    if not bases or any(part not in NAMES and part not in MODIFIERS and part not in ISH for part in parts):
        return ()
    focal = list(NAMES[bases[-1]])
    for other in bases[:-1]:
        focal = [_mix(a, b, 0.5) for a in focal for b in NAMES[other]]
    for tint in tints:
        focal = [_mix(a, NAMES[tint][0], 0.25) for a in focal]
    for part in parts:
        light, dark = MODIFIERS.get(part, (0.0, 0.0))
        focal = [_mix(_mix(a, (255, 255, 255), light), (0, 0, 0), dark) for a in focal]
    return tuple(focal)


def _mix(a: RGB, b: RGB, share: float) -> RGB:
    red, green, blue = (round(x + (y - x) * share) for x, y in zip(a, b, strict=True))
    return red, green, blue


@lru_cache(maxsize=4096)
def oklab(rgb: RGB) -> Lab:
    """sRGB 0–255 -> Oklab (L 0–1, a, b); https://bottosson.github.io/posts/oklab/."""
    red, green, blue = (_linear(value / 255) for value in rgb)
    long = (0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue) ** (1 / 3)
    medium = (0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue) ** (1 / 3)
    short = (0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue) ** (1 / 3)
    return (
        0.2104542553 * long + 0.7936177850 * medium - 0.0040720468 * short,
        1.9779984951 * long - 2.4285922050 * medium + 0.4505937099 * short,
        0.0259040371 * long + 0.7827717662 * medium - 0.8086757660 * short,
    )


def _linear(value: float) -> float:
    return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4


def distance(rgb: RGB, colour: Colour) -> float:
    """How badly `colour` names `rgb`: 0 perfect, under 0.1 natural, over 0.3 wrong."""
    seen = oklab(rgb)
    if colour.exact:
        return min(0.8, 2.0 * math.dist(seen, oklab(colour.focal[0])))
    return min(_apart(seen, oklab(focal)) for focal in colour.focal)


def _apart(seen: Lab, focal: Lab) -> float:
    chroma, focal_chroma = math.hypot(*seen[1:]), math.hypot(*focal[1:])
    low, high = sorted((chroma, focal_chroma))
    turn = abs(math.atan2(seen[2], seen[1]) - math.atan2(focal[2], focal[1]))
    hue = math.degrees(min(turn, 2 * math.pi - turn)) * min(1.0, low / 0.05)
    gray = 4.0 * max(0.0, min(0.04, high) - low)
    lightness = abs(seen[0] - focal[0]) * (0.6 if focal_chroma < 0.03 else 0.35)
    pale = 1.5 if focal_chroma < 0.06 and chroma > focal_chroma else 0.5  # nothing vivid is "beige"
    return math.hypot(lightness, pale * (high - low) + gray, 0.006 * hue)


def contrast(a: RGB, b: RGB) -> float:
    """Oklab distance of two colours: under 0.03 hardly seen, over 0.15 plain."""
    return math.dist(oklab(a), oklab(b))


@lru_cache(maxsize=1024)
def name_of(rgb: RGB) -> str:
    """A plain name for a colour, as a person would say it: `"light blue"`, `"red"`."""
    plain = ("white", "black", "gray", "red", "orange", "brown", "beige", "yellow", "lime", "green", "teal")
    names = [*plain, "cyan", "blue", "navy", "purple", "magenta", "pink", "light blue", "dark blue"]
    names += ["light green", "dark green", "dark gray", "light gray", "dark red", "light purple", "dark purple"]
    colours = {name: colour for name in names if (colour := colour_of(name))}
    return min(colours, key=lambda name: distance(rgb, colours[name]) + 0.01 * name.count(" "))
