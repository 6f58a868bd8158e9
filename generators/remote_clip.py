"""Frames out of a video that a server sent: counted, not believed; each at its own time; nothing half is used.

An empty file, an HTML page, a cut file and one without a video are told apart.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import av
import numpy as np
from av.error import FFmpegError
from av.video.frame import VideoFrame

from media.pictures import Frame, Frames
from media.probe import boxes
from orchestrator.errors import BackendFailed, CliploopError
from orchestrator.frame_counts import snap
from orchestrator.records import Capabilities, Shot, Size, Spend

MAX_SIDE = 8192
SPARE_FRAMES = 8  # some servers give one more than they are asked for
MAX_BYTES = 3 << 30  # of a clip's frames: 257 of 1920x1080 take 1.6 GB
MAX_LONGER = 4  # times the frames that were asked for
_SAME_RATE = 0.005  # 23.976 counts as 24: half a frame of a clip of eight seconds
_EVEN = 0.05  # of the rate of the first two frames: the others come at it too
_BT709 = 1


@dataclass(frozen=True)
class Wanted:
    """What the loop asked for: `fit` brings a frame onto the canvas; `usd` is the cost, used or not."""

    fps: float
    num_frames: int
    fit: Callable[[Frame], Frame]
    usd: float = 0.0

    @property
    def cost(self) -> Spend:
        return Spend(usd=self.usd)


def clip_frames(data: bytes, wanted: Wanted) -> Frames:
    """(T, H, W, 3) uint8 RGB as fitted, at `wanted.fps`: of a video at another rate the frames nearest in time.

    T is what the video holds, which may be other than was asked. Raises BackendFailed, with the cost.
    """
    try:
        _refuse_other_kinds(data)
        frames = _resampled(_timed(data), wanted, _average_rate(data))
        block = _stacked(frames, wanted)
    except BackendFailed as failure:
        raise type(failure)(str(failure), spend=wanted.cost) from failure
    except CliploopError:
        raise
    except Exception as error:  # whatever a decoder makes of it: the file is the server's
        raise BackendFailed(
            f"the video that came back ({len(data)} bytes) cannot be decoded: {type(error).__name__}",
            spend=wanted.cost,
        ) from error
    return block


def _refuse_other_kinds(data: bytes) -> None:
    if not data:
        raise BackendFailed("the video that came back is empty (0 bytes)")
    head = data[:512].lstrip().lower()
    if head.startswith((b"<!doctype", b"<html", b"<?xml")) or b"<html" in head:
        raise BackendFailed(
            "an HTML page came back instead of a video: is there a proxy or a sign-in page before the server?"
        )
    if head.startswith((b"{", b"[")):
        raise BackendFailed("JSON came back instead of a video")
    if _container(data) is None:
        raise BackendFailed("what came back is no video of a known kind (mp4, mov, webm, mkv, avi)")
    if data[4:8] == b"ftyp":
        found = dict(boxes(data))
        if b"moov" not in found:
            raise BackendFailed(f"the video that came back is cut ({len(data)} bytes): it has no index")
        if _promised(data, max(found.values())) > len(data):
            raise BackendFailed(
                f"the video that came back is cut after {len(data)} bytes: its last part is not whole"
            )


def _container(data: bytes) -> str | None:
    """The demuxer for it, never guessed: playlists and session descriptions name files and addresses."""
    if data[4:8] in (b"ftyp", b"moov", b"mdat", b"free", b"wide", b"skip"):
        return "mov,mp4,m4a,3gp,3g2,mj2"
    if data[:4] == b"\x1a\x45\xdf\xa3":
        return "matroska,webm"
    return "avi" if data[:4] == b"RIFF" and data[8:12] == b"AVI " else None


def _promised(data: bytes, last: int) -> int:
    """Where the last box of an MP4 ends; a decoder shows a last frame that is half there, and says nothing."""
    length: int = struct.unpack_from(">I", data, last)[0]
    if length == 1 and last + 16 <= len(data):
        length = struct.unpack_from(">Q", data, last + 8)[0]
    return last + length if length else len(data)


def _timed(data: bytes) -> Iterator[tuple[float, Frame]]:
    """Every frame with its time in seconds from the first. Raises BackendFailed if frames are missing."""
    with av.open(io.BytesIO(data), mode="r", format=_container(data)) as container:
        if not container.streams.video:
            raise BackendFailed("what came back holds no video, only other streams")
        stream = container.streams.video[0]
        stream.thread_type = "AUTO"
        size = Size(width=max(1, stream.width), height=max(1, stream.height))
        if max(size.width, size.height) > MAX_SIDE:
            raise BackendFailed(f"the video that came back is {size}, more than {MAX_SIDE} pixels wide or high")
        rate = float(stream.average_rate or stream.guessed_rate or 0)
        declared, count, first, unshown = stream.frames, 0, None, 0
        try:
            for packet in container.demux(stream):
                unshown += packet.is_discard  # before an edit list's start
                if packet.is_corrupt:
                    raise BackendFailed("the video that came back is cut or damaged: a part of it is not whole")
                for frame in packet.decode():
                    at = float(frame.time or 0.0) if frame.pts is not None else count / rate if rate else 0.0
                    first = at if first is None else first
                    count += 1
                    yield at - first, _rgb(frame)
        except FFmpegError:
            if not declared:
                raise
        if count < declared - unshown:
            raise BackendFailed(f"the video that came back is cut: {count} of its {declared} frames can be read")
    if count < 2:
        raise BackendFailed(f"the video that came back has {count} frames: no clip, which has at least two")


def _average_rate(data: bytes) -> float:
    """Frames a second over the whole video, as its index says; 0 where it says nothing."""
    with av.open(io.BytesIO(data), mode="r", format=_container(data)) as container:
        streams = container.streams.video
        return float(streams[0].average_rate or 0) if streams else 0.0


def _resampled(timed: Iterator[tuple[float, Frame]], wanted: Wanted, average: float) -> Iterator[Frame]:
    """Frames at the wanted rate. At (nearly) the same rate every frame once, whatever its time stamp."""
    earlier: list[tuple[float, Frame]] = []
    for each in timed:  # the rate is known from the first two
        earlier.append(each)
        if len(earlier) == 2:
            break
    if len(earlier) < 2:
        yield from (frame for _, frame in earlier)
        return
    step = earlier[1][0] - earlier[0][0]
    even = not average or abs(average * step - 1) <= _EVEN
    same = step <= 0 or (even and abs(step * wanted.fps - 1) <= _SAME_RATE)
    rest = _chained(earlier, timed)
    if same:
        yield from (frame for _, frame in rest)
        return
    yield from _nearest(rest, wanted.fps)


def _chained(
    first: list[tuple[float, Frame]], rest: Iterator[tuple[float, Frame]]
) -> Iterator[tuple[float, Frame]]:
    yield from first
    yield from rest


def _nearest(timed: Iterator[tuple[float, Frame]], fps: float) -> Iterator[Frame]:
    """At 0, 1/fps, 2/fps … up to the last frame's time the frame that is nearest, the earlier one on a tie."""
    number = 0
    held: tuple[float, Frame] | None = None
    for at, frame in timed:
        while held is not None and number / fps <= at and number / fps - held[0] <= at - number / fps:
            yield held[1]
            number += 1
        held = (at, frame)
    if held is not None and number / fps <= held[0] + 1e-6:
        yield held[1]


def _stacked(frames: Iterator[Frame], wanted: Wanted) -> Frames:
    """In one block, filled frame by frame: two of them would be gigabytes. Raises BackendFailed."""
    first = wanted.fit(next(frames))
    if first.nbytes * (wanted.num_frames + SPARE_FRAMES) > MAX_BYTES:
        raise BackendFailed(
            f"the video that came back has frames of {first.shape[1]}x{first.shape[0]}, far larger than asked"
        )
    block: Frames = np.empty((wanted.num_frames + SPARE_FRAMES, *first.shape), dtype=np.uint8)
    block[0], count = first, 1
    for frame in frames:
        fitted = wanted.fit(frame)
        if fitted.shape != first.shape:
            raise BackendFailed("the video that came back changes its size half-way")
        if count == MAX_LONGER * (wanted.num_frames + SPARE_FRAMES) or count * first.nbytes > MAX_BYTES:
            raise BackendFailed(
                f"the video that came back has more than {count} frames, asked for were {wanted.num_frames}"
            )
        if count >= len(block):
            block = np.concatenate([block, np.empty_like(block)])
        block[count] = fitted
        count += 1
    return block[:count]


def _rgb(frame: VideoFrame) -> Frame:
    """(H, W, 3) uint8. Without a word on its colours, BT.709 from 720 lines on, as players take it."""
    plain: Any = frame
    if frame.format.name.startswith(("rgb", "gbr", "bgr")):
        return plain.to_ndarray(format="rgb24")
    matrix = "ITU709" if _is_709(frame) else "ITU601"
    return plain.to_ndarray(format="rgb24", src_colorspace=matrix, dst_colorspace=matrix)


def _is_709(frame: VideoFrame) -> bool:
    said = int(frame.colorspace)
    return said == _BT709 or (said == 2 and frame.height >= 720)


def rule(counts: list[int]) -> tuple[int, int, int, int]:
    """(frame_step, frame_offset, min_frames, max_frames) of these counts. Raises ValueError if uneven."""
    steps = {later - earlier for earlier, later in pairwise(counts)}
    if not counts or len(steps) > 1 or any(step <= 0 for step in steps):
        raise ValueError("the durations must rise evenly, like 4,8,12")
    step = steps.pop() if steps else counts[0]
    return step, counts[0] % step, counts[0], counts[-1]


def duration(durations: list[int], shot: Shot, capabilities: Capabilities) -> int:
    """Of these durations the shot's own; at another rate the shortest that holds it, or the longest."""
    if abs(shot.fps / capabilities.fps - 1) <= _SAME_RATE:
        return round(snap(shot.num_frames, capabilities) / capabilities.fps)
    return next((one for one in durations if one >= shot.seconds - 1e-6), durations[-1])
