"""What a contact sheet is drawn with: cards, chips, lines of text, film strips. Knows no trajectory."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw

from media.lettering import Font, font, shorten, width
from media.pictures import Frame

Colour = tuple[int, int, int]

WIDTH_PX = 1600
MARGIN_PX, PADDING_PX, GAP_PX = 40, 28, 12

PAPER: Colour = (243, 244, 246)
CARD: Colour = (255, 255, 255)
EDGE: Colour = (222, 225, 230)
INK: Colour = (24, 28, 35)
SOFT: Colour = (92, 99, 112)
FAINT: Colour = (140, 147, 160)
GREEN: Colour = (22, 128, 80)
RED: Colour = (196, 49, 43)
AMBER: Colour = (176, 112, 8)
GREY: Colour = (107, 114, 128)
BLUE: Colour = (52, 98, 196)


HATCH_PX = 7  # from stroke to stroke


def tint(colour: Colour, strength: float = 0.12) -> Colour:
    """The colour, thinned with white."""
    red, green, blue = (round(255 - (255 - level) * strength) for level in colour)
    return red, green, blue


@functools.lru_cache(maxsize=64)
def _corner(radius: int) -> Image.Image:
    """A quarter disc, smooth: coverage 0 … 255 of the top left corner."""
    scale = 8
    large = Image.new("L", (radius * scale, radius * scale), 0)
    ImageDraw.Draw(large).ellipse((0, 0, 2 * radius * scale, 2 * radius * scale), fill=255)
    return large.resize((radius, radius), Image.Resampling.BOX)


@dataclass(frozen=True)
class Pen:
    """Draws on one image. Boxes are (left, top, right, bottom), right and bottom not included."""

    image: Image.Image

    @property
    def _draw(self) -> ImageDraw.ImageDraw:
        return ImageDraw.Draw(self.image)

    def block(self, box: tuple[int, int, int, int], fill: Colour, radius: int = 0) -> None:
        """A filled rectangle with smooth round corners."""
        left, top, right, bottom = box
        radius = min(radius, (right - left) // 2, (bottom - top) // 2)
        if radius <= 0:
            self._draw.rectangle((left, top, right - 1, bottom - 1), fill=fill)
            return
        mask = Image.new("L", (right - left, bottom - top), 255)
        corner = _corner(radius)
        for flip, place in (
            (None, (0, 0)),
            (Image.Transpose.FLIP_LEFT_RIGHT, (mask.width - radius, 0)),
            (Image.Transpose.FLIP_TOP_BOTTOM, (0, mask.height - radius)),
            (Image.Transpose.ROTATE_180, (mask.width - radius, mask.height - radius)),
        ):
            mask.paste(corner.transpose(flip) if flip is not None else corner, place)
        self.image.paste(fill, (left, top), mask)

    def hatched(self, box: tuple[int, int, int, int], colour: Colour) -> None:
        """A pale rectangle under slanting strokes, as high as wide."""
        left, top, right, bottom = box
        tile = Image.new("RGB", (right - left, bottom - top), tint(colour, 0.18))
        strokes, high = ImageDraw.Draw(tile), tile.height
        for start in range(-high, tile.width, HATCH_PX):
            strokes.line((start, high, start + high, 0), fill=colour, width=2)
        self.image.paste(tile, (left, top))

    def card(self, box: tuple[int, int, int, int], fill: Colour = CARD, radius: int = 14) -> None:
        """A block with a hair line around it."""
        left, top, right, bottom = box
        self.block(box, EDGE, radius)
        self.block((left + 1, top + 1, right - 1, bottom - 1), fill, radius - 1)

    def text(self, xy: tuple[int, int], text: str, face: Font, colour: Colour = INK) -> int:
        """A line of cleaned text, its top left at xy; returns where it ends."""
        self._draw.text(xy, text, font=face, fill=colour)
        return xy[0] + width(text, face)

    def lines(
        self, xy: tuple[int, int], lines: Sequence[str], face: Font, leading: int, colour: Colour = INK
    ) -> int:
        """Lines under each other; returns the y below the last."""
        x, y = xy
        for line in lines:
            self.text((x, y), line, face, colour)
            y += leading
        return y

    def chip(self, xy: tuple[int, int], text: str, colour: Colour, *, solid: bool = True, size: int = 15) -> int:
        """A rounded label; returns its right edge."""
        face = font(size, "Bold" if solid else "Semibold")
        x, y = xy
        right = x + width(text, face) + 20
        self.block((x, y, right, y + size + 11), colour if solid else tint(colour), (size + 11) // 2)
        self.text((x + 10, y + 3), text, face, CARD if solid else colour)
        return right

    def picture(self, box: tuple[int, int, int, int], thumbnail: Image.Image, frame: Colour = EDGE) -> None:
        """A thumbnail with a thin frame outside of it, at the box's top left."""
        left, top = box[0], box[1]
        self.block((left - 1, top - 1, left + thumbnail.width + 1, top + thumbnail.height + 1), frame)
        self.image.paste(thumbnail, (left, top))


@dataclass(frozen=True)
class Block:
    """Something of a known height that draws itself at y."""

    height: int
    draw: Callable[[Pen, int], None]


def count(number: int, noun: str) -> str:
    """As in `1 frame`, `1,234 frames`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def thumbnail(frame: Frame, width_max: int, height_max: int) -> Image.Image:
    """The frame scaled to fit; small pictures grow in whole steps, so that their pixels stay square."""
    image = Image.fromarray(np.ascontiguousarray(frame))
    ratio = min(width_max / image.width, height_max / image.height)
    if ratio >= 2:
        factor = int(ratio)
        return image.resize((image.width * factor, image.height * factor), Image.Resampling.NEAREST)
    size = (max(1, round(image.width * ratio)), max(1, round(image.height * ratio)))
    return image.resize(size, Image.Resampling.LANCZOS, reducing_gap=3.0)


@dataclass(frozen=True)
class Shown:
    """One frame of a strip: its number in the candidate and its picture."""

    number: int
    image: Image.Image


@dataclass(frozen=True)
class Strip:
    """Some frames of a candidate in order. Frames below `cut` were kept from an earlier attempt."""

    shown: tuple[Shown, ...]
    num_frames: int
    cut: int
    kept_until: int | None  # frames up to this one were kept for what follows; None: all of them
    colour: Colour
    fps: float

    @property
    def kept(self) -> int:
        """How many frames from the first on are used by what follows."""
        return self.num_frames if self.kept_until is None else max(self.cut, self.kept_until + 1)

    @property
    def kept_colour(self) -> Colour:
        """Of what is kept: a rejected clip's good part is as good as an accepted clip."""
        return GREEN if self.colour == RED else self.colour

    def edge(self, number: int) -> Colour:
        """Of a frame: kept from before, kept, or thrown away."""
        return BLUE if number < self.cut else self.kept_colour if number < self.kept else self.colour


BAR_PX, CAPTION_PX = 8, 20


def strip_height(strip: Strip) -> int:
    return max((shown.image.height for shown in strip.shown), default=0) + BAR_PX + 10 + CAPTION_PX


def draw_strip(pen: Pen, xy: tuple[int, int], strip: Strip, cell: int) -> None:
    """Frames side by side, each over its time; below them a bar: kept, new, and what was thrown away."""
    x, y = xy
    tallest = max(shown.image.height for shown in strip.shown)
    caption = font(13)
    for place, shown in enumerate(strip.shown):
        left = x + place * (cell + GAP_PX)
        pen.picture((left, y, 0, 0), shown.image, tint(strip.edge(shown.number), 0.55))
        label = f"{shown.number / strip.fps:.2f} s"
        pen.text((left, y + tallest + BAR_PX + 12), label, caption, SOFT)
        if shown.number == strip.cut - 1:
            bold, start = font(13, "Semibold"), left + width(label, caption) + 8
            note = shorten("continued from here", bold, left + cell - start)
            pen.text((start, y + tallest + BAR_PX + 12), note, bold, BLUE)
    _draw_bar(pen, (x, y + tallest + 7), strip, len(strip.shown) * (cell + GAP_PX) - GAP_PX)


def _draw_bar(pen: Pen, xy: tuple[int, int], strip: Strip, length: int) -> None:
    """The candidate from first to last frame: blue where kept from before, hatched where thrown away."""
    x, y = xy
    cut, kept = (round(length * number / strip.num_frames) for number in (strip.cut, strip.kept))
    box = (x, y, x + length, y + BAR_PX)
    if strip.colour == RED:
        pen.hatched(box, RED)
    else:
        pen.block(box, tint(strip.colour, 0.25), BAR_PX // 2)
    if kept > cut:
        pen.block((x + cut, y, x + kept, y + BAR_PX), strip.kept_colour, BAR_PX // 2)
    if cut:
        pen.block((x, y, x + cut, y + BAR_PX), BLUE, BAR_PX // 2)


def legend() -> Block:
    """What the bars under the frames say."""
    face = font(15)

    def draw(pen: Pen, top: int) -> None:
        x = pen.text((MARGIN_PX + PADDING_PX, top), "The bar under the frames:", face, SOFT) + 16
        for colour, text in ((BLUE, "kept from the attempt before"), (GREEN, "kept"), (RED, "thrown away")):
            box = (x, top + 7, x + 40, top + 7 + BAR_PX)
            pen.hatched(box, colour) if colour == RED else pen.block(box, colour, BAR_PX // 2)
            x = pen.text((x + 48, top), text, face, SOFT) + 24

    return Block(18, draw)
