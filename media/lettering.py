"""Text on pictures: fonts that ship with the package, any text made safe to draw, wrapped and shortened."""

from __future__ import annotations

import functools
import unicodedata
from importlib.resources import files
from typing import Any, Literal, cast

from PIL import ImageFont

Weight = Literal["Regular", "Semibold", "Bold"]
Font = ImageFont.FreeTypeFont

_CHARS_MAX = 4000  # of one text: more is never shown, and measuring it would take time
_TOFU_RUN = 3  # letters without a glyph that are shown as boxes before the rest is left out


@functools.cache
def font(size: int, weight: Weight = "Regular") -> Font:
    """Source Sans Pro at `size` pixels. Basic layout: the same on every machine."""
    path = files("font_source_sans_pro").joinpath(f"files/SourceSansPro-{weight}.ttf")
    return ImageFont.truetype(str(path), size, layout_engine=ImageFont.Layout.BASIC)


@functools.cache
def _has_glyph(char: str) -> bool:
    face = font(20)
    return _drawn(face, char) != _drawn(face, "\U0010ffff")


def _drawn(face: Font, char: str) -> tuple[tuple[int, int], bytes]:
    mask = face.getmask(char)
    return mask.size, bytes(cast("Any", mask))


def clean(text: str) -> str:
    """One line of drawable characters: blanks joined, controls and direction marks gone, no glyph: a box."""
    composed = unicodedata.normalize("NFC", text[:_CHARS_MAX])
    kept: list[str] = []
    missing = 0
    for char in " ".join(composed.split()):
        if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Mn", "Me", "Zl", "Zp"):
            continue
        if char == " " or _has_glyph(char):
            missing = 0
            kept.append(char)
        else:
            missing += 1
            kept.append("�" if missing <= _TOFU_RUN else "")
            if missing == _TOFU_RUN + 1:
                kept.append("…")
    return " ".join("".join(kept).split())


def sentence(text: str) -> str:
    """With a capital at its start and a mark at its end: reasons come as fragments."""
    text = text.strip()
    if not text:
        return ""
    return text[0].upper() + text[1:] + ("" if text[-1] in ".!?…:" else ".")


def width(text: str, face: Font) -> int:
    """Pixels that a line takes, rounded up."""
    return int(face.getlength(text) + 0.999)


def wrap(text: str, face: Font, width_px: int, lines_max: int) -> list[str]:
    """Cleaned text in at most `lines_max` lines of at most `width_px` pixels; what is cut ends in "…".

    Breaks between words; a word that is wider than a line is broken where it must be.
    """
    lines: list[str] = []
    words = clean(text).split()
    while words and len(lines) < lines_max:
        line, words = _line(words, face, width_px)
        lines.append(line)
    if words and lines:
        lines[-1] = shorten(lines[-1] + " …", face, width_px, force=True)
    return lines


def _line(words: list[str], face: Font, width_px: int) -> tuple[str, list[str]]:
    """One line and the words that are left for the next."""
    line = ""
    for index, word in enumerate(words):
        longer = f"{line} {word}" if line else word
        if face.getlength(longer) <= width_px:
            line = longer
        elif line:
            return line, words[index:]
        else:
            count = _fitting(word, face, width_px)
            return word[:count], [word[count:], *words[index + 1 :]]
    return line, []


def _fitting(text: str, face: Font, width_px: int) -> int:
    """How many characters fit, at least one."""
    low, high = 1, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if face.getlength(text[:middle]) <= width_px:
            low = middle
        else:
            high = middle - 1
    return low


def shorten(text: str, face: Font, width_px: int, *, force: bool = False) -> str:
    """The text, cut to fit with "…" at its end; `force`: it already stands for something longer."""
    if face.getlength(text) <= width_px:
        return text
    body = text.removesuffix(" …") if force else text
    count = _fitting(body, face, width_px - width("…", face))
    return body[:count].rstrip(" ,;:.") + "…"
