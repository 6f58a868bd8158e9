"""Frames out of stored pictures and mezzanines, bit for bit, with a small bounded memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Generator, Iterator
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from threading import RLock
from typing import cast

import av
import numpy as np
from av.error import FFmpegError
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from media.pictures import Frame, Frames, decode_png
from orchestrator.errors import CliploopError
from orchestrator.ports import Artifacts
from orchestrator.records import ArtifactKey, Footage, Segment

_THREADS = 2
CACHE_BYTES = 256 << 20  # two clips of 81 frames at 832×480 are 194 MB


class FrameReader:
    """Reads frames by artifact key. What it hands out is read-only: it may be the cache's own memory.

    Whole mezzanines that `frames` decodes are kept, at most `cache_bytes` of them, the oldest going first;
    `iterate` and single frames use what is kept and keep nothing.
    """

    def __init__(self, artifacts: Artifacts, *, cache_bytes: int = CACHE_BYTES) -> None:
        self._artifacts = artifacts
        self._cache_bytes = cache_bytes
        self._kept: OrderedDict[ArtifactKey, Frames] = OrderedDict()
        self._lock = RLock()

    def picture(self, key: ArtifactKey) -> Frame:
        """A stored picture: (H, W, 3) uint8 RGB, read-only."""
        pixels = decode_png(self._artifacts.read(key))
        pixels.setflags(write=False)
        return pixels

    def frames(self, footage: Footage) -> Frames:
        """All frames in order: (T, H, W, 3) uint8 RGB, read-only. Raises CliploopError if footage is empty."""
        if not footage.num_frames:
            raise CliploopError("there are no frames in this footage: nothing was kept of it")
        if len(footage.segments) == 1:
            segment = footage.segments[0]
            together = self._whole(segment)[segment.first : segment.stop]
        else:  # filled frame by frame: the clips are never held beside their sum
            together = _stacked(self.iterate(footage), footage.num_frames)
        together.setflags(write=False)
        return together

    def iterate(self, footage: Footage) -> Iterator[Frame]:
        """The frames in order, one at a time: (H, W, 3) uint8 RGB, read-only."""
        for segment in footage.segments:
            yield from self._segment(segment)

    def frame(self, footage: Footage, index: int) -> Frame:
        """Frame `index` of the footage, negative from the end: only what leads up to it is decoded.

        Raises CliploopError when the footage has no such frame.
        """
        at = index + footage.num_frames if index < 0 else index
        if at >= 0:
            for segment in footage.segments:
                if at < segment.num_frames:
                    first = segment.first + at
                    wanted = segment.model_copy(update={"first": first, "stop": first + 1})
                    with closing(self._segment(wanted)) as found:
                        return next(found)
                at -= segment.num_frames
        raise CliploopError(f"there is no frame {index} in footage of {footage.num_frames} frames")

    def keep(self, mezzanine: ArtifactKey, frames: Frames, *, copy: bool = False) -> None:
        """Remember frames that were just encoded, so that checking them needs no decoding.

        `copy`: their memory is somebody else's. What is larger than the whole memory is not kept.
        """
        if frames.nbytes > self._cache_bytes:
            return
        with self._lock:
            self._kept.pop(mezzanine, None)
            while sum(kept.nbytes for kept in self._kept.values()) + frames.nbytes > self._cache_bytes:
                self._kept.popitem(last=False)  # before the copy is made: there is never room taken for both
            kept = frames.copy() if copy else frames
            kept.setflags(write=False)
            self._kept[mezzanine] = kept

    def _cached(self, mezzanine: ArtifactKey) -> Frames | None:
        with self._lock:
            if mezzanine in self._kept:
                self._kept.move_to_end(mezzanine)
            return self._kept.get(mezzanine)

    def _whole(self, segment: Segment) -> Frames:
        kept = self._cached(segment.mezzanine)
        if kept is None:
            path = self._artifacts.path(segment.mezzanine)
            kept = _stacked(_decoded(segment.mezzanine, path, 0), _declared_frames(path))
            self.keep(segment.mezzanine, kept)
        if segment.stop > len(kept):
            raise _too_short(segment, len(kept))
        return kept

    def _segment(self, segment: Segment) -> Generator[Frame]:
        kept = self._cached(segment.mezzanine)
        if kept is not None:
            if segment.stop > len(kept):
                raise _too_short(segment, len(kept))
            for index in range(segment.first, segment.stop):
                yield kept[index]
            return
        reached = segment.first
        for pixels in _decoded(segment.mezzanine, self._artifacts.path(segment.mezzanine), segment.first):
            pixels.setflags(write=False)
            yield pixels
            reached += 1
            if reached == segment.stop:
                return
        raise _too_short(segment, reached)


def _too_short(segment: Segment, found: int) -> CliploopError:
    return CliploopError(
        f"the stored clip {segment.mezzanine[:12]}… has {found} frames, not {segment.stop}:"
        " the artifact folder is damaged; start the job afresh"
    )


def _stacked(frames: Iterator[Frame], expected: int) -> Frames:
    """Frames in one block, which grows where there are more than expected."""
    first = next(frames, None)
    if first is None:
        return np.empty((0, 1, 1, 3), dtype=np.uint8)
    block: Frames = np.empty((max(1, expected), *first.shape), dtype=np.uint8)
    block[0] = first
    count = 1
    for frame in frames:
        if count == len(block):
            block = np.concatenate([block, np.empty_like(block[: len(block) // 4 + 1])])
        block[count] = frame
        count += 1
    return block[:count]


def _decoded(key: ArtifactKey, path: Path, first: int) -> Iterator[Frame]:
    """Frames from number `first` on, after a seek to the key frame before it. A picture is one frame."""
    if key.endswith(".png"):
        if first == 0:
            yield decode_png(path.read_bytes())
        return
    try:
        with av.open(str(path), mode="r") as container:
            stream = container.streams.video[0]
            stream.thread_type = "AUTO"
            stream.codec_context.thread_count = _THREADS
            ticks = _ticks_per_frame(stream)
            if first:
                container.seek(round(first * ticks), stream=stream, backward=True)
            for frame in container.decode(stream):
                if frame.pts is None or round(frame.pts / ticks) >= first:
                    yield _rgb(frame)
    except (FFmpegError, IndexError, OSError) as error:
        raise CliploopError(
            f"the stored clip {key[:12]}… cannot be read ({error}): the artifact folder is damaged;"
            " start the job afresh"
        ) from error


def _rgb(frame: VideoFrame) -> Frame:
    """(H, W, 3) uint8. Planes of a mezzanine are copied as they are: half the time of a conversion."""
    return cast("Frame", frame.to_ndarray() if frame.format.name == "gbrp" else frame.to_ndarray(format="rgb24"))


def _declared_frames(path: Path) -> int:
    """How many frames the header claims: only for reserving memory, so a lie costs little."""
    if path.suffix == ".png":
        return 1
    try:
        with av.open(str(path), mode="r") as container:
            return min(max(1, container.streams.video[0].frames), 1024)
    except (FFmpegError, IndexError, OSError):
        return 1


def _ticks_per_frame(stream: VideoStream) -> Fraction:
    """Mezzanines have a constant rate and start at 0, so a timestamp is a frame number."""
    if not stream.average_rate or not stream.time_base:
        raise IndexError("no frame rate")
    return 1 / (stream.average_rate * stream.time_base)
