"""Frames out of files: every colour matrix, every rate, and nothing of a file that is broken."""

from __future__ import annotations

import io
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from av.video.reformatter import Colorspace

from generators.remote_clip import Wanted, clip_frames, duration, rule
from media.encode import mezzanine
from media.pictures import Frame, Frames
from orchestrator.errors import BackendFailed
from orchestrator.records import Capabilities, Size
from tests.generators.vendor_clips import Studio, encoded, index_first

COLOURS = ((220, 30, 30), (30, 200, 40), (40, 60, 220), (200, 150, 30), (128, 128, 128))


def same(frame: Frame) -> Frame:
    return frame


def stripes(num_frames: int = 5, height: int = 64) -> Frames:
    frames = np.zeros((num_frames, height, 32 * len(COLOURS), 3), np.uint8)
    for place, colour in enumerate(COLOURS):
        frames[:, :, 32 * place : 32 * (place + 1)] = colour
    return frames


def in_matrix(frames: Frames, matrix: Any, tagged: bool) -> bytes:
    """H.264 with its colours in this matrix, which the file says or not."""
    file = io.BytesIO()
    opened: Any = av.open(file, "w", format="mp4")
    with opened as container:
        stream: Any = container.add_stream("libx264", rate=16, options={"crf": "1", "preset": "ultrafast"})
        stream.height, stream.width = frames.shape[1:3]
        stream.pix_fmt = "yuv420p"
        if tagged:
            stream.codec_context.colorspace = 1 if matrix is Colorspace.ITU709 else 6
        for pixels in frames:
            frame: Any = av.VideoFrame.from_ndarray(pixels, format="rgb24")
            container.mux(stream.encode(frame.reformat(format="yuv420p", dst_colorspace=matrix)))
        container.mux(stream.encode())
    return file.getvalue()


@pytest.mark.parametrize(
    ("matrix", "tagged", "height"),
    [
        (Colorspace.ITU709, True, 64),
        (Colorspace.ITU601, True, 64),
        (Colorspace.ITU601, False, 64),
        (Colorspace.ITU709, False, 720),  # as players take a file that says nothing
        (Colorspace.ITU601, True, 720),
    ],
)
def test_colours_come_back_whatever_the_matrix(matrix: Any, tagged: bool, height: int) -> None:
    frames = stripes(2, height)
    found = clip_frames(in_matrix(frames, matrix, tagged), Wanted(16, 2, same))
    for place, colour in enumerate(COLOURS):
        assert np.abs(found[-1, height // 2, 32 * place + 16].astype(int) - colour).max() <= 4


def test_a_lossless_file_comes_back_bit_for_bit() -> None:
    frames = np.random.default_rng(1).integers(0, 256, (5, 48, 64, 3), dtype=np.uint8)
    data = mezzanine(iter(frames), Size(width=64, height=48), 16)
    assert np.array_equal(clip_frames(data, Wanted(16, 5, same)), frames)


def numbered(num_frames: int) -> Frames:
    """Each frame's grey is its number times five."""
    frames = np.zeros((num_frames, 32, 32, 3), np.uint8)
    frames += (np.arange(num_frames, dtype=np.uint8) * 5)[:, None, None, None]
    return frames


def numbers(frames: Frames) -> list[int]:
    return [round(float(frame.mean()) / 5) for frame in frames]


@pytest.mark.parametrize(
    ("rendered", "fps", "wanted", "shown"),
    [
        (9, 16, 16, [0, 1, 2, 3, 4, 5, 6, 7, 8]),
        (9, 24, 23.976, [0, 1, 2, 3, 4, 5, 6, 7, 8]),
        (9, 32, 16, [0, 2, 4, 6, 8]),
        (10, 32, 16, [0, 2, 4, 6, 8]),
        (7, 24, 16, [0, 1, 3, 4, 6]),
        (3, 8, 16, [0, 0, 1, 1, 2]),
    ],
)
def test_at_another_rate_the_frames_nearest_in_time_are_shown(
    rendered: int, fps: int, wanted: float, shown: list[int]
) -> None:
    found = numbers(clip_frames(encoded(numbered(rendered), fps), Wanted(wanted, len(shown), same)))
    assert len(found) == len(shown)
    assert found[0] == 0
    for got, meant in zip(found, shown, strict=True):
        assert abs(got - meant) <= (1 if fps == 24 and wanted == 16 else 0)


def test_a_video_far_longer_than_asked_is_refused_before_it_fills_the_memory() -> None:
    data = encoded(iter(numbered(50)), 16)
    assert len(clip_frames(data, Wanted(16, 5, same))) == 50
    with pytest.raises(BackendFailed, match=r"more than 40 frames, asked for were 2"):
        clip_frames(data, Wanted(16, 2, same))


@pytest.mark.parametrize("end", [0.2, 0.5, 0.9, 0.999])
def test_a_cut_file_is_never_a_shorter_clip(end: float) -> None:
    noise = np.random.default_rng(2).integers(0, 256, (12, 64, 64, 3), dtype=np.uint8)
    for whole in (encoded(noise, 16), index_first(noise, 16)):
        with pytest.raises(BackendFailed, match="is cut") as lost:
            clip_frames(whole[: int(len(whole) * end)], Wanted(16, 12, same, usd=0.5))
        assert lost.value.spend.usd == 0.5


def test_one_frame_is_no_clip_and_sound_is_no_video() -> None:
    with pytest.raises(BackendFailed, match="has 1 frames"):
        clip_frames(encoded(numbered(1), 16), Wanted(16, 5, same))
    file = io.BytesIO()
    opened: Any = av.open(file, "w", format="mp4")
    with opened as container:
        stream: Any = container.add_stream("aac", rate=16000)
        frame: Any = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), format="fltp", layout="mono")
        frame.sample_rate = 16000
        container.mux(stream.encode(frame))
        container.mux(stream.encode())
    with pytest.raises(BackendFailed, match="holds no video"):
        clip_frames(file.getvalue(), Wanted(16, 5, same))


def test_durations_make_a_rule_for_frame_counts() -> None:
    assert rule([96, 144, 192]) == (48, 0, 96, 192)
    assert rule([192]) == (192, 0, 192, 192)
    assert rule([25, 49]) == (24, 1, 25, 49)
    for uneven in ([96, 144, 200], [96, 96], [96, 48], []):
        with pytest.raises(ValueError, match="evenly"):
            rule(uneven)


def test_a_shot_at_another_rate_gets_the_shortest_duration_that_holds_it() -> None:
    able = Capabilities(name="veo", frame_step=48, frame_offset=0, min_frames=96, max_frames=192, fps=24)

    class Slow:
        capabilities = able

    studio = Studio()
    generator: Any = Slow()
    for num_frames, fps, seconds in ((96, 24, 4), (130, 24, 6), (33, 16, 4), (81, 16, 6), (400, 16, 8)):
        assert duration([4, 6, 8], studio.shot(generator, num_frames=num_frames, fps=fps), able) == seconds


@pytest.mark.parametrize(
    "text",
    [
        b"ffconcat version 1.0\nfile local.mp4\n",
        b"v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=video 55555 RTP/AVP 96\n",
        b"#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nlocal.mp4\n",
    ],
)
def test_a_playlist_or_an_address_is_no_video_and_opens_nothing(
    text: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("local.mp4").write_bytes(encoded(numbered(5), 16))
    began = time.monotonic()
    with pytest.raises(BackendFailed, match="no video of a known kind"):
        clip_frames(text, Wanted(16, 5, same))
    assert time.monotonic() - began < 5


def test_frames_far_larger_than_asked_are_refused_before_they_fill_the_memory() -> None:
    frame = np.zeros((4096, 4096, 3), np.uint8)
    data = encoded(iter([frame] * 2), 16)
    with pytest.raises(BackendFailed, match="frames of 4096x4096, far larger than asked"):
        clip_frames(data, Wanted(16, 81, same))


def test_a_rate_that_changes_is_judged_by_the_whole_video() -> None:
    file = io.BytesIO()
    opened: Any = av.open(file, "w", format="mp4")
    with opened as container:
        stream: Any = container.add_stream("libx264", rate=16, options={"crf": "8"})
        stream.width, stream.height, stream.pix_fmt = 32, 32, "yuv420p"
        for number, at in enumerate((0, 1, 8, 16, 24, 32)):  # sixteenths of a second
            shown: Any = av.VideoFrame.from_ndarray(numbered(6)[number], format="rgb24")
            shown.pts, shown.time_base = at, Fraction(1, 16)
            container.mux(stream.encode(shown))
        container.mux(stream.encode())
    found = numbers(clip_frames(file.getvalue(), Wanted(16, 33, same)))
    assert 28 <= len(found) <= 33, "two seconds, not six frames"
    assert found == sorted(found)
    assert found.count(2) > 4
