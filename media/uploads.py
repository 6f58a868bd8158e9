"""Whatever a user uploads becomes an upright RGB picture, or a refusal that names the remedy.

The policy: limits are read from the header before anything is decoded, the kind is told by content, EXIF
orientation is applied, transparency is laid over white, 16-bit greys are divided by 257, an embedded colour
profile is converted to sRGB, and of an animation the first frame counts. Decoding: `media.decoding`.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import PurePath

from media import sniff
from media.decoding import Damaged, Unsupported, decode
from media.pictures import encode_png
from orchestrator.errors import TaskRejected
from orchestrator.records import Size

MIN_SIDE = 16
MAX_PIXELS = 50_000_000
MAX_ASPECT = 5.0


@dataclass(frozen=True)
class Upload:
    """A normalised picture: 8-bit RGB PNG without metadata, its size, and what was changed on the way."""

    png: bytes
    size: Size
    notes: tuple[str, ...]


def normalise(data: bytes, *, name: str = "") -> Upload:
    """Decode an uploaded picture into RGB pixels, or refuse it.

    `name` only serves messages. Raises TaskRejected with reason `empty`, `not_a_picture`, `too_many_pixels`,
    `too_small`, `extreme_aspect`, `truncated` (damaged too) or `unsupported`.
    """
    who = _quoted(name)
    if not data:
        raise TaskRejected(f"{who} is empty (0 bytes): upload it again", reason="empty")
    kind = sniff.kind(data)
    if kind is None:
        raise TaskRejected(
            f"{who} is not a picture but {sniff.describe(data)}:"
            " upload a PNG, JPEG, WebP, GIF, BMP, TIFF or AVIF",
            reason="not_a_picture",
        )
    size = sniff.header_size(data, kind)
    if size is None:
        raise _damaged(who, kind)
    _check_limits(who, *size)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            decoded = decode(data, kind, lambda width, height: _check_limits(who, width, height))
            png = encode_png(decoded.image)
    except Damaged as error:
        raise _damaged(who, kind) from error
    except Unsupported as error:
        raise TaskRejected(f"{who}: {error}; save it as an 8-bit PNG or JPEG", reason="unsupported") from error
    width, height = decoded.image.size
    return Upload(png=png, size=Size(width=width, height=height), notes=decoded.notes)


def _check_limits(who: str, width: int, height: int) -> None:
    if width * height > MAX_PIXELS:
        raise TaskRejected(
            f"{who} has {width}x{height} pixels, over the limit of {MAX_PIXELS / 1e6:g} million:"
            " scale it down and upload it again",
            reason="too_many_pixels",
        )
    if min(width, height) < MIN_SIDE:
        raise TaskRejected(
            f"{who} has only {width}x{height} pixels, each side needs at least {MIN_SIDE}:"
            " upload a larger picture",
            reason="too_small",
        )
    if max(width, height) > MAX_ASPECT * min(width, height):
        raise TaskRejected(
            f"{who} has {width}x{height} pixels, its sides differ more than {MAX_ASPECT:g} to 1:"
            " crop it or add a border",
            reason="extreme_aspect",
        )


def _damaged(who: str, kind: str) -> TaskRejected:
    return TaskRejected(
        f"{who} is a damaged or incomplete {kind} file: export it again and upload the whole file",
        reason="truncated",
    )


def _quoted(name: str) -> str:
    """The file's name in one printable line, shortened."""
    if not name:
        return "the picture"
    printable = "".join(char if char.isprintable() else "?" for char in PurePath(name).name or name)
    return f"'{printable if len(printable) <= 60 else printable[:40] + '…' + printable[-16:]}'"
