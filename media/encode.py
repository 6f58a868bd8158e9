"""The two encodings: lossless mezzanines to go on from, and video for people's eyes.

Identical frames give identical bytes: the number of threads is fixed (x264's output depends on it) and
ffmpeg writes no version and no date.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from media import ffmpeg
from media.ffmpeg import EncodingFailed
from media.frames import FrameReader
from media.pictures import Frame
from media.probe import probe
from media.timing import Timeline, rate, timeline
from orchestrator.records import Footage, Size

THREADS = 2
# Frame k is at most 7 decoded frames away from a key frame; costs 5 % of a photograph's bytes against 16.
KEY_FRAME_INTERVAL = 8
_REPEATABLE = ("-fflags", "+bitexact", "-flags:v", "+bitexact", "-map_metadata", "-1", "-threads", str(THREADS))
_LOSSLESS = (
    *("-c:v", "libx264rgb", "-qp", "0", "-preset", "ultrafast"),
    *("-g", str(KEY_FRAME_INTERVAL), "-bf", "0", "-pix_fmt", "rgb24"),
)
_FOR_EYES = (
    *("-c:v", "libx264", "-pix_fmt", "yuv420p", "-crf", "16", "-preset", "fast"),
    *("-movflags", "+faststart", "-fps_mode", "passthrough"),
)
# Accurate rounding keeps a flat drawing's greys equal; tags say what the matrix is, or players guess by size.
_TO_BT709 = (
    "scale=out_color_matrix=bt709:out_range=tv:flags=lanczos+accurate_rnd+full_chroma_int+bitexact,format=yuv420p,"
    "setparams=color_primaries=bt709:color_trc=bt709:colorspace=bt709:range=tv"
)


def encoder_version() -> str:
    """What decides the encoded bytes, as one short line: ffmpeg's version and the settings here."""
    return f"ffmpeg {ffmpeg.version()}, {THREADS} threads, settings 2"


def mezzanine(frames: Iterable[Frame], size: Size, fps: float, *, scratch: Path | None = None) -> bytes:
    """Lossless H.264 RGB of (H, W, 3) uint8 frames, any size: every bit comes back when decoded.

    Raises EncodingFailed, and JobWaiting(disk) when there is no room.
    """
    options = [*_LOSSLESS, *_REPEATABLE, "-video_track_timescale", str(rate(fps).numerator)]
    return ffmpeg.encode(frames, size.width, size.height, rate(fps), options, scratch)


@dataclass(frozen=True)
class Framing:
    """What becomes of a canvas frame: cut `crop` (left, top, width, height), scale, replicate up to `even`."""

    crop: tuple[int, int, int, int]
    scaled: tuple[int, int]
    even: tuple[int, int]


def deliverable(
    frames: Iterable[Frame], size: Size, times: Timeline, framing: Framing, *, scratch: Path | None = None
) -> bytes:
    """H.264 yuv420p with the index in front, for players and browsers: every frame, each for its own time.

    `size` is the frames' own. The product's frames are counted before it is returned. Raises EncodingFailed,
    and JobWaiting(disk).
    """
    expression = times.expression()
    stamps = [f"settb=1/{times.timescale}", f"setpts={expression}"] if expression else []
    filters = [*stamps, *_framing_filters(framing, size), _TO_BT709]
    ticks = ["-enc_time_base", f"1/{times.timescale}", "-video_track_timescale", str(times.timescale)]
    if expression:  # reordered frames at mixed rates make MP4's total duration wrong by a frame
        ticks += ["-bf", "0"]
    options = ["-vf", ",".join(filters), *_FOR_EYES, *ticks, *_REPEATABLE]
    data = ffmpeg.encode(frames, size.width, size.height, times.last_rate, options, scratch)
    _make_sure(data, times, Size(width=framing.even[0], height=framing.even[1]))
    return data


def _framing_filters(framing: Framing, size: Size) -> list[str]:
    left, top, width, height = framing.crop
    filters: list[str] = []
    if (width, height) != (size.width, size.height):
        filters.append(f"crop={width}:{height}:{left}:{top}")
    if framing.scaled != (width, height):
        filters.append(f"scale={framing.scaled[0]}:{framing.scaled[1]}:flags=lanczos+accurate_rnd+bitexact")
    right, below = framing.even[0] - framing.scaled[0], framing.even[1] - framing.scaled[1]
    if right or below:
        filters.append(f"format=gbrp,pad={framing.even[0]}:{framing.even[1]}:0:0")
        filters.append(f"fillborders=right={right}:bottom={below}:mode=smear")
    return filters


def _make_sure(data: bytes, times: Timeline, size: Size) -> None:
    """A short or empty file that ffmpeg calls a success is none."""
    written = probe(data, decode=False)
    wrong_time = abs(written.seconds - times.seconds) > len(times.runs) * times.tick_seconds
    if (written.num_frames, written.size, written.index_first) != (times.num_frames, size, True) or wrong_time:
        raise EncodingFailed(
            f"the encoder wrote {written.num_frames} frames of {written.size} in {float(written.seconds):.3f} s,"
            f" not {times.num_frames} of {size} in {float(times.seconds):.3f} s: run the job again"
        )


def browser_clip(footage: Footage, reader: FrameReader, path: Path) -> None:
    """Write footage, as it lies on the canvas, as a file that browsers play; odd sides gain a replicated pixel.

    Raises CliploopError if there are no frames, EncodingFailed, JobWaiting(disk), OSError from writing `path`.
    """
    height, width = reader.frame(footage, 0).shape[:2]
    framing = Framing((0, 0, width, height), (width, height), (width + width % 2, height + height % 2))
    size = Size(width=width, height=height)
    path.write_bytes(deliverable(reader.iterate(footage), size, timeline(footage), framing, scratch=path.parent))
