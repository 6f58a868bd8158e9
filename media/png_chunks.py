"""The inside of a PNG upload: which chunks matter, whether they are whole, and nothing else of it.

Text, profiles and animation chunks never reach the decoder, so that what they may unpack to is no concern.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from media.sniff import PNG_SIGNATURE

_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
_DEPTHS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
_ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
_MOST_CHUNKS = 100_000
_PROFILE_LIMIT = 4 << 20  # bytes unpacked; printers' profiles are 0.5–2 MB


class DamagedPng(Exception):
    """The picture is not all there."""


@dataclass(frozen=True)
class CleanPng:
    """A PNG that holds its picture and nothing more, and what was taken out of it.

    `transparent` is the grey or RGB value that tRNS calls transparent, in 8 bits (16-bit grey: in 16 bits).
    """

    data: bytes
    transparent: tuple[int, ...] | None
    profile: bytes | None
    exif: bytes | None
    animated: bool


def clean(data: bytes) -> CleanPng:
    """Keep header, palette, palette transparency and pixels. Raises DamagedPng."""
    kept: list[tuple[bytes, bytes]] = []
    side: dict[bytes, bytes] = {}
    packed: list[bytes] = []
    for name, body, whole in _chunks(data):
        if name in (b"IHDR", b"PLTE", b"IDAT") and not whole:
            raise DamagedPng
        if name == b"IDAT":
            packed.append(body)
        elif name in (b"IHDR", b"PLTE"):
            kept.append((name, body))
        elif whole and not (packed and name == b"tRNS"):
            side.setdefault(name, body)
    if not kept or kept[0][0] != b"IHDR" or len(kept[0][1]) != 13 or not packed:
        raise DamagedPng
    depth, colour = _header(kept[0][1])
    if not _is_whole(kept[0][1], packed):
        raise DamagedPng
    transparency = side.get(b"tRNS")
    if colour == 3:
        if [name for name, _ in kept[1:2]] != [b"PLTE"]:
            raise DamagedPng
        kept = kept[:2]
        if transparency:
            kept.append((b"tRNS", transparency[:256]))
    else:
        kept = kept[:1]  # a palette beside true colour is only a hint
    kept.append((b"IDAT", b"".join(packed)))
    return CleanPng(
        data=PNG_SIGNATURE + b"".join(_chunk(*chunk) for chunk in [*kept, (b"IEND", b"")]),
        transparent=_transparent_value(transparency, colour, depth),
        profile=_profile(side.get(b"iCCP")),
        exif=side.get(b"eXIf"),
        animated=b"acTL" in side,
    )


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes, bool]]:
    """(name, body, whole) of every chunk up to IEND or the end of the file. Raises DamagedPng."""
    at = len(PNG_SIGNATURE)
    for _ in range(_MOST_CHUNKS):
        if at + 8 > len(data):
            return
        length, name = struct.unpack_from(">I4s", data, at)
        body = data[at + 8 : at + 8 + length]
        stored = data[at + 8 + length : at + 12 + length]
        yield name, body, len(stored) == 4 and zlib.crc32(name + body) == int.from_bytes(stored, "big")
        if name == b"IEND":
            return
        at += 12 + length
    raise DamagedPng


def _chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def _header(ihdr: bytes) -> tuple[int, int]:
    """(bit depth, colour type). Raises DamagedPng for a combination that does not exist."""
    depth, colour, compression, filters, interlace = ihdr[8:13]
    if depth not in _DEPTHS.get(colour, ()) or compression or filters or interlace > 1:
        raise DamagedPng
    return depth, colour


def _is_whole(ihdr: bytes, packed: list[bytes]) -> bool:
    """Whether the packed pixels unpack, without fault, to as many bytes as the header promises.

    Decoders leave missing rows black without a word. Memory: one mebibyte at a time.
    """
    missing = _unpacked_bytes(ihdr)
    try:
        for length in _unpacked_lengths(packed):
            missing -= length
            if missing <= 0:
                return True
    except zlib.error:
        return False
    return False


def _unpacked_lengths(packed: list[bytes]) -> Iterator[int]:
    """What the packed pixels unpack to, a piece at a time. Raises zlib.error."""
    unpacker = zlib.decompressobj()
    for part in packed:
        for at in range(0, len(part), 1 << 16):
            pending = part[at : at + (1 << 16)]
            while pending and not unpacker.eof:
                yield len(unpacker.decompress(pending, 1 << 20))
                pending = unpacker.unconsumed_tail
    while not unpacker.eof and (rest := unpacker.decompress(b"", 1 << 20)):
        yield len(rest)


def _unpacked_bytes(ihdr: bytes) -> int:
    width, height = struct.unpack_from(">II", ihdr)
    depth, colour, _, _, interlace = ihdr[8:13]
    bits = depth * _CHANNELS[colour]
    passes = _ADAM7 if interlace else ((0, 0, 1, 1),)
    total = 0
    for x, y, step_x, step_y in passes:
        columns, rows = -(-(width - x) // step_x), -(-(height - y) // step_y)
        if columns > 0 and rows > 0:
            total += rows * (1 + -(-columns * bits // 8))
    return total


def _transparent_value(body: bytes | None, colour: int, depth: int) -> tuple[int, ...] | None:
    wanted = {0: 1, 2: 3}.get(colour, 0)
    if body is None or not wanted or len(body) < 2 * wanted:
        return None
    values = struct.unpack_from(f">{wanted}H", body)
    if depth == 16:  # the decoder hands 16-bit grey on whole, and 16-bit colour cut to 8
        return values if colour == 0 else tuple(value >> 8 for value in values)
    return tuple(value * 255 // ((1 << depth) - 1) for value in values)


def _profile(body: bytes | None) -> bytes | None:
    """The unpacked ICC profile; None if there is none, or it is broken or too large."""
    if body is None:
        return None
    try:
        unpacker = zlib.decompressobj()
        profile = unpacker.decompress(body[body.index(b"\0") + 2 :], _PROFILE_LIMIT)
    except (ValueError, zlib.error):
        return None
    return profile if unpacker.eof else None
