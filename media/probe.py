"""What a finished video file really is: decoded and counted, not believed."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import av
from av.error import FFmpegError

from orchestrator.errors import CliploopError
from orchestrator.records import Size


@dataclass(frozen=True)
class Probe:
    """`num_frames` is counted by demuxing, or by decoding where asked; `index_first` = playable while loading."""

    num_frames: int
    size: Size
    seconds: Fraction
    codec: str
    pixel_format: str
    index_first: bool


def probe(video: bytes | Path, *, decode: bool = True) -> Probe:
    """Look into an MP4 file or other video. Raises CliploopError if it holds no readable video."""
    data = video if isinstance(video, bytes) else video.read_bytes()
    try:
        with av.open(io.BytesIO(data), mode="r") as container:
            stream = container.streams.video[0]
            stream.thread_type = "AUTO"
            if decode:
                count = sum(1 for _ in container.decode(stream))
            else:
                count = sum(1 for packet in container.demux(stream) if packet.size)
            seconds = Fraction(stream.duration or 0) * (stream.time_base or 0)
            return Probe(
                num_frames=count,
                size=Size(width=stream.width, height=stream.height),
                seconds=seconds,
                codec=stream.codec_context.name,
                pixel_format=stream.pix_fmt or "",
                index_first=_index_first(data),
            )
    except (FFmpegError, IndexError, ValueError) as error:
        raise CliploopError(f"this is no readable video ({len(data)} bytes): {error}") from error


def _index_first(data: bytes) -> bool:
    """Whether an MP4's `moov` lies before its `mdat`."""
    order = [name for name, _ in boxes(data)]
    return b"moov" in order and b"mdat" in order and order.index(b"moov") < order.index(b"mdat")


def boxes(data: bytes) -> Iterator[tuple[bytes, int]]:
    """(name, offset) of an MP4's top-level boxes."""
    at = 0
    while at + 8 <= len(data):
        length, name = struct.unpack_from(">I4s", data, at)
        if length == 1 and at + 16 <= len(data):
            length = struct.unpack_from(">Q", data, at + 8)[0]
        yield name, at
        at += length if length >= 8 else len(data)
