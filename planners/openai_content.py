"""How pictures and clips travel to a chat server: as images, as one mp4, or drawn together on a sheet.

It knows no server: what one takes is handed in as `Showing`.
"""

from __future__ import annotations

import base64
import io
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from PIL import Image

from media.encode import browser_clip
from media.frame_sheet import Cell, frame_sheet
from media.frames import FrameReader
from media.pictures import Frame, encode_png
from media.sampling import sample, seconds_at
from orchestrator.records import Footage
from planners.questions import Clip, Part, Picture

FRAMES_WORTH_SENDING = 4  # fewer of a clip say less than a sheet of all that were chosen
PNG_BYTES_MAX = 256 << 10  # a larger picture, a photograph, travels as JPEG
JPEG_QUALITY = 95

How = Literal["frames", "video", "sheets", "sheet"]


@dataclass(frozen=True)
class Showing:
    """What a server takes: `images` in one request (None: any number), and whether it takes an mp4."""

    video: bool
    images: int | None
    per_second: float
    min_frames: int
    max_frames: int
    side_max: int
    sheet_side_max: int


@dataclass(frozen=True)
class Content:
    """A user's message, what it shows in phrases, and how many images are in it."""

    parts: list[dict[str, Any]]
    sent: tuple[str, ...]
    num_images: int
    how: How


@dataclass
class _Message:
    """A message as it grows."""

    side_max: int
    parts: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    num_images: int = 0

    def text(self, words: str) -> None:
        self.parts.append({"type": "text", "text": words})

    def image(self, frame: Frame | Image.Image, side_max: int | None = None) -> _Sent:
        """Add a picture, reduced if it must be."""
        data, kind, size = _encoded(frame, side_max or self.side_max)
        self.parts.append({"type": "image_url", "image_url": {"url": _data_url(kind, data)}})
        self.num_images += 1
        return _Sent(f"{size[0]}x{size[1]}", kind.partition("/")[2].upper(), len(data))

    def video(self, data: bytes) -> None:
        self.parts.append({"type": "video_url", "video_url": {"url": _data_url("video/mp4", data)}})


@dataclass(frozen=True)
class _Sent:
    size: str
    kind: str
    num_bytes: int

    def __str__(self) -> str:
        return f"{self.size} {self.kind}, {kilobytes(self.num_bytes)}"


def content(parts: Sequence[Part], reader: FrameReader, showing: Showing) -> Content:
    """The message of a question's parts, within what the server takes."""
    how = _how(parts, showing)
    message = _Message(showing.side_max)
    if how == "sheet":
        sent = _on_one_sheet(parts, reader, showing, message)
    else:
        sent = tuple(_one_by_one(parts, reader, showing, message, how))
    return Content(message.parts, sent, message.num_images, how)


def kilobytes(num_bytes: int) -> str:
    return f"{max(1, round(num_bytes / 1000)):,} KB"


def _how(parts: Sequence[Part], showing: Showing) -> How:
    stills = sum(isinstance(part, Picture) for part in parts)
    clips = sum(isinstance(part, Clip) for part in parts)
    room = None if showing.images is None else showing.images - stills
    if showing.video:
        return "video" if room is None or room >= 0 else "sheet"
    if room is None or room >= _enough(parts, showing):
        return "frames"
    return "sheets" if clips and room >= clips else "sheet"


def _enough(parts: Sequence[Part], showing: Showing) -> int:
    """How many images the clips need at least, to be shown as frames."""
    chosen = (len(_chosen(part.footage, showing, showing.max_frames)) for part in parts if isinstance(part, Clip))
    return sum(min(FRAMES_WORTH_SENDING, count) for count in chosen)


def _chosen(footage: Footage, showing: Showing, most: int) -> tuple[int, ...]:
    return sample(
        footage.num_frames,
        footage.seconds,
        per_second=showing.per_second,
        least=showing.min_frames,
        most=min(most, showing.max_frames),
    )


def _share(parts: Sequence[Part], showing: Showing) -> int:
    """How many frames of each clip there is room for."""
    clips = sum(isinstance(part, Clip) for part in parts)
    stills = sum(isinstance(part, Picture) for part in parts)
    if showing.images is None or not clips:
        return showing.max_frames
    return max(1, (showing.images - stills) // clips)


def _one_by_one(
    parts: Sequence[Part], reader: FrameReader, showing: Showing, message: _Message, how: How
) -> Iterator[str]:
    """Fill the message; yields what was sent."""
    share = _share(parts, showing)
    for part in parts:
        if isinstance(part, str):
            message.text(part)
        elif isinstance(part, Picture):
            yield f"a picture ({message.image(reader.picture(part.key))})"
        elif how == "video":
            yield _as_video(part.footage, reader, message)
        elif how == "sheets":
            chosen = _chosen(part.footage, showing, showing.max_frames)
            message.text(f"{len(chosen)} frames of it on one sheet, in reading order, each under its number:")
            cells = [Cell(label, frame) for label, frame in _labelled(part.footage, chosen, reader)]
            sheet = message.image(frame_sheet(cells, showing.sheet_side_max), showing.sheet_side_max)
            yield f"{_told(part.footage, chosen)} on one sheet ({sheet})"
        else:
            chosen = _chosen(part.footage, showing, share)
            yield _as_frames(part.footage, chosen, reader, message)


def _as_frames(footage: Footage, chosen: Sequence[int], reader: FrameReader, message: _Message) -> str:
    total, shown = 0, None
    for label, frame in _labelled(footage, chosen, reader):
        message.text(f"{label}:")
        shown = message.image(frame)
        total += shown.num_bytes
    size = f"{shown.size} {shown.kind}, " if shown else ""
    return f"{_told(footage, chosen)} as images ({size}{kilobytes(total)})"


def _as_video(footage: Footage, reader: FrameReader, message: _Message) -> str:
    with tempfile.TemporaryDirectory(prefix="cliploop-") as folder:
        path = Path(folder) / "clip.mp4"
        browser_clip(footage, reader, path)
        data = path.read_bytes()
    message.video(data)
    fps = footage.segments[0].fps
    return f"{footage.num_frames} frames as mp4 at {fps:g} fps ({kilobytes(len(data))}); the server samples them"


def _on_one_sheet(
    parts: Sequence[Part], reader: FrameReader, showing: Showing, message: _Message
) -> tuple[str, ...]:
    """Every picture and every clip's frames on a single sheet, to which the text points."""
    cells: list[Cell] = []
    sent: list[str] = []
    stills = clips = 0
    for part in parts:
        if isinstance(part, str):
            message.text(part)
        elif isinstance(part, Picture):
            stills += 1
            cells.append(Cell(f"Picture {stills}", reader.picture(part.key)))
            message.text(f'(on the sheet below, under "Picture {stills}")')
            sent.append("a picture")
        else:
            clips += 1
            chosen = _chosen(part.footage, showing, showing.max_frames)
            cells += [
                Cell(f"Clip {clips} · {label}", frame) for label, frame in _labelled(part.footage, chosen, reader)
            ]
            message.text(f'({len(chosen)} frames of it are on the sheet below, under "Clip {clips}")')
            sent.append(_told(part.footage, chosen))
    message.text("The sheet that holds them all:")
    sheet = message.image(frame_sheet(cells, showing.sheet_side_max), showing.sheet_side_max)
    return (*sent, f"all on one sheet ({sheet})")


def _labelled(footage: Footage, chosen: Sequence[int], reader: FrameReader) -> Iterator[tuple[str, Frame]]:
    wanted = set(chosen)
    for index, frame in enumerate(reader.iterate(footage)):
        if index in wanted:
            yield f"Frame {index} · {seconds_at(footage, index):.2f} s", frame


def _told(footage: Footage, chosen: Sequence[int]) -> str:
    """`9 of 81 frames at 1.6 fps`."""
    span = seconds_at(footage, chosen[-1]) - seconds_at(footage, chosen[0])
    rate = f" at {(len(chosen) - 1) / span:.3g} fps" if span else ""
    return f"{len(chosen)} of {footage.num_frames} frames{rate}"


def _encoded(frame: Frame | Image.Image, side_max: int) -> tuple[bytes, str, tuple[int, int]]:
    """File, kind and size: PNG where that is small, JPEG without colour subsampling where it is not."""
    image = frame if isinstance(frame, Image.Image) else Image.fromarray(np.ascontiguousarray(frame))
    if max(image.size) > side_max:
        image = image.copy()
        image.thumbnail((side_max, side_max), Image.Resampling.LANCZOS)
    data = encode_png(image)
    if len(data) <= PNG_BYTES_MAX:
        return data, "image/png", image.size
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=JPEG_QUALITY, subsampling=0)
    return buffer.getvalue(), "image/jpeg", image.size


def _data_url(kind: str, data: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode('ascii')}"
