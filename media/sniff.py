"""What kind of file these bytes are, and how large the picture is, from the header alone.

Knows no decoder: a header that promises too much is refused before one byte of it is decoded.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator

PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_SOF_MARKERS = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_MARKER = re.compile(rb"\xff([^\xff\x00\x01\xd0-\xd8])")  # of a segment that says its length
_MOST_SEGMENTS = 10_000  # of a JPEG, and
_MOST_BLOCKS = 500_000  # of a GIF's extensions: files of photographs have hundreds, films of drawings thousands


def kind(data: bytes) -> str | None:
    """`PNG`, `JPEG`, `GIF`, `WEBP`, `BMP`, `TIFF` or `AVIF`, by content; None for everything else."""
    if data.startswith(PNG_SIGNATURE):
        return "PNG"
    if data.startswith(b"\xff\xd8\xff"):
        return "JPEG"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "GIF"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "WEBP"
    if data.startswith((b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")):
        return "TIFF"
    if data.startswith(b"BM") and len(data) >= 26:
        return "BMP"
    if data[4:8] == b"ftyp" and _brands(data) & {b"avif", b"avis"}:
        return "AVIF"
    return None


def describe(data: bytes) -> str:
    """A word for a file that is no picture we read, for the refusal's message."""
    head = data[:1024].lstrip(b"\xef\xbb\xbf \t\r\n")
    lowered = head.lower()
    if b"<svg" in lowered:
        return "an SVG drawing"
    for start, words in _OTHER_FILES:
        if head.startswith(start):
            return words
    if data[4:8] == b"ftyp":
        return "a HEIC photo" if _brands(data) & {b"heic", b"heix", b"mif1", b"msf1"} else "a video"
    if lowered.startswith((b"<!doctype html", b"<html", b"<?xml")):
        return "a web page or XML text"
    return "text" if _is_text(data[:1024]) else "a file of an unknown kind"


_OTHER_FILES: tuple[tuple[bytes, str], ...] = (
    (b"%PDF", "a PDF document"),
    (b"%!PS", "a PostScript drawing"),
    (b"\xc5\xd0\xd3\xc6", "a PostScript drawing"),
    (b"8BPS", "a Photoshop file"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"\x00\x00\x01\x00", "an icon file"),
    (b"\x00\x00\x00\x0cjP  ", "a JPEG 2000 picture"),
    (b"\xff\x4f\xff\x51", "a JPEG 2000 picture"),
    (b"\xff\x0a", "a JPEG XL picture"),
    (b"\x00\x00\x00\x0cJXL ", "a JPEG XL picture"),
    (b"\x1aE\xdf\xa3", "a video"),
    (b"RIFF", "a video or sound file"),
)


def _is_text(head: bytes) -> bool:
    return bool(head) and all(byte >= 32 or byte in b"\t\r\n\f" for byte in head)


def _brands(data: bytes) -> set[bytes]:
    length = min(int.from_bytes(data[:4], "big"), 512)
    return {data[8:12], *(data[at : at + 4] for at in range(16, length - 3, 4))}


def header_size(data: bytes, kind: str) -> tuple[int, int] | None:
    """(width, height) in pixels as the header says, before any rotation; None if the header ends too early."""
    try:
        size = _SIZE_READERS[kind](data)
    except (struct.error, IndexError):
        return None
    return size if size and size[0] > 0 and size[1] > 0 else None


def _png_size(data: bytes) -> tuple[int, int] | None:
    return struct.unpack_from(">II", data, 16) if data[12:16] == b"IHDR" else None


def jpeg_segments(data: bytes) -> Iterator[tuple[int, int]]:
    """(marker, offset of its length field) of every segment up to the first scan; stray bytes are skipped."""
    at = 2
    for _ in range(_MOST_SEGMENTS):
        found = _MARKER.search(data, at)
        if found is None:
            return
        marker, at = found[1][0], found.end()
        yield marker, at
        if marker in (0xDA, 0xD9):
            return
        at += max(2, struct.unpack_from(">H", data, at)[0])


def _jpeg_size(data: bytes) -> tuple[int, int] | None:
    for marker, at in jpeg_segments(data):
        if marker in _SOF_MARKERS:
            height, width = struct.unpack_from(">HH", data, at + 3)
            return width, height
    return None


def jpeg_promises_too_much(data: bytes) -> bool:
    """Whether the file has fewer bits than the blocks of its header need at the least: decoders leave them grey.

    In Huffman coding a block needs a bit for its mean, and one for its end unless the scans are progressive.
    """
    for marker, at in jpeg_segments(data):
        if marker in (0xC0, 0xC1, 0xC2):
            height, width, count = struct.unpack_from(">HHB", data, at + 3)
            factors = [(data[at + 9 + 3 * each] >> 4, data[at + 9 + 3 * each] & 15) for each in range(count)]
            wide, high = max(1, *(h for h, _ in factors), 1), max(1, *(v for _, v in factors), 1)
            blocks = sum(-(-width * h // (8 * wide)) * -(-height * v // (8 * high)) for h, v in factors)
            return 8 * len(data) < blocks * (1 if marker == 0xC2 else 2)
    return False


def _gif_size(data: bytes) -> tuple[int, int] | None:
    """The canvas, grown to hold the first frame, as decoders do."""
    width, height, flags = struct.unpack_from("<HHB", data, 6)
    at = 13 + (3 << (flags & 7) + 1 if flags & 0x80 else 0)
    blocks = 0
    while data[at] == 0x21:  # an extension: label, then blocks up to an empty one
        at += 2
        while data[at]:
            at, blocks = at + data[at] + 1, blocks + 1
            if blocks > _MOST_BLOCKS:
                return None
        at, blocks = at + 1, blocks + 1
        if blocks > _MOST_BLOCKS:
            return None
    if data[at] != 0x2C:
        return width, height
    left, top, frame_width, frame_height = struct.unpack_from("<HHHH", data, at + 1)
    return max(width, left + frame_width), max(height, top + frame_height)


def _webp_size(data: bytes) -> tuple[int, int] | None:
    chunk = data[12:16]
    if chunk == b"VP8X":
        return int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1
    if chunk == b"VP8L":
        bits = struct.unpack_from("<I", data, 21)[0]
        return (bits & 0x3FFF) + 1, ((bits >> 14) & 0x3FFF) + 1
    if chunk == b"VP8 ":
        width, height = struct.unpack_from("<HH", data, 26)
        return width & 0x3FFF, height & 0x3FFF
    return None


def _bmp_size(data: bytes) -> tuple[int, int]:
    if struct.unpack_from("<I", data, 14)[0] == 12:
        return struct.unpack_from("<HH", data, 18)
    width, height = struct.unpack_from("<ii", data, 18)
    return width, abs(height)  # negative: stored from the top down


def _tiff_size(data: bytes) -> tuple[int, int] | None:
    order = "<" if data[:2] == b"II" else ">"
    big = data[2:4] in (b"+\0", b"\0+")
    start = struct.unpack_from(order + ("Q" if big else "I"), data, 8 if big else 4)[0]
    count = struct.unpack_from(order + ("Q" if big else "H"), data, start)[0]
    at, step = start + (8 if big else 2), 20 if big else 12
    sides: dict[int, int] = {}
    for entry in range(min(count, 1000)):
        tag, type_ = struct.unpack_from(order + "HH", data, at + entry * step)
        if tag in (256, 257) and type_ in _TIFF_INTEGERS:
            value_at = at + entry * step + (12 if big else 8)
            sides[tag] = struct.unpack_from(order + _TIFF_INTEGERS[type_], data, value_at)[0]
    return (sides[256], sides[257]) if len(sides) == 2 else None


_TIFF_INTEGERS = {1: "B", 3: "H", 4: "I", 16: "Q"}


def _avif_size(data: bytes) -> tuple[int, int] | None:
    """The largest extent that any item declares: a grid's canvas is larger than its tiles."""
    sizes: list[tuple[int, int]] = []
    at = data.find(b"ispe")
    while at >= 0 and len(sizes) < 1000:
        sizes.append(struct.unpack_from(">II", data, at + 8))
        at = data.find(b"ispe", at + 4, 1 << 20)
    return max(sizes, key=lambda size: size[0] * size[1], default=None)


_SIZE_READERS: dict[str, Callable[[bytes], tuple[int, int] | None]] = {
    "PNG": _png_size,
    "JPEG": _jpeg_size,
    "GIF": _gif_size,
    "WEBP": _webp_size,
    "BMP": _bmp_size,
    "TIFF": _tiff_size,
    "AVIF": _avif_size,
}
