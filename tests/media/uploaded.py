"""Picture files made for the tests of uploads."""

from __future__ import annotations

import io
import struct
import zlib
from typing import Any

import numpy as np
import pytest
from PIL import Image

from media.pictures import Frame, decode_png
from media.png_chunks import PNG_SIGNATURE
from media.uploads import Upload, normalise
from orchestrator.errors import TaskRejected

ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
RED, WHITE = (200, 40, 40), (255, 255, 255)


def pixels(upload: Upload) -> Frame:
    return decode_png(upload.png)


def saved(image: Image.Image, kind: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def two_halves(mode: str = "RGB", size: tuple[int, int] = (40, 24)) -> Image.Image:
    """Red on the left, pale on the right."""
    image = Image.new("RGB", size, (245, 245, 240))
    image.paste(RED, (0, 0, size[0] // 2, size[1]))
    return image.quantize(8) if mode == "P" else image.convert(mode)


def near(found: np.ndarray, wanted: tuple[int, int, int], tolerance: int = 3) -> bool:
    return bool(np.abs(found.astype(int) - np.array(wanted)).max() <= tolerance)


def refusal(data: bytes, name: str = "") -> TaskRejected:
    with pytest.raises(TaskRejected) as caught:
        normalise(data, name=name)
    assert "\n" not in str(caught.value)
    return caught.value


def chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def png(width: int, height: int, depth: int, colour: int, raw: bytes, *extra: bytes, interlace: int = 0) -> bytes:
    """A PNG from its unpacked scan lines; `extra` chunks lie between header and pixels."""
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlace)
    parts = [chunk(b"IHDR", header), *extra, chunk(b"IDAT", zlib.compress(raw)), chunk(b"IEND", b"")]
    return PNG_SIGNATURE + b"".join(parts)


def rows(width_bytes: int, height: int, line: bytes) -> bytes:
    assert len(line) == width_bytes
    return (b"\0" + line) * height
