"""Mezzanines keep every bit and give equal bytes; deliverables are counted; faults are named."""

from __future__ import annotations

import io
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from media import ffmpeg
from media.encode import Framing, browser_clip, deliverable, encoder_version, mezzanine
from media.ffmpeg import EncodingFailed
from media.pictures import Frames
from media.probe import probe
from media.timing import Timeline, timeline
from orchestrator.errors import JobWaiting
from orchestrator.footage import whole
from orchestrator.records import Footage, Segment, Size
from tests.media.made import Studio, decoded, drawing, noise, photograph, size_of, still


def back(data: bytes) -> Frames:
    return decoded(io.BytesIO(data))


def whole_picture(size: Size) -> Framing:
    even = (size.width + size.width % 2, size.height + size.height % 2)
    return Framing((0, 0, size.width, size.height), (size.width, size.height), even)


def at_rates(*runs: tuple[int, float]) -> Timeline:
    return timeline(Footage(segments=tuple(Segment(mezzanine="a", first=0, stop=n, fps=fps) for n, fps in runs)))


# --- mezzanine ----------------------------------------------------------------------------------------------


@settings(max_examples=12, deadline=None)
@given(
    width=st.integers(16, 90), height=st.integers(16, 90), num_frames=st.integers(1, 20), seed=st.integers(0, 99)
)
def test_noise_of_any_size_comes_back_bit_for_bit(width: int, height: int, num_frames: int, seed: int) -> None:
    frames = noise(num_frames, height, width, seed)
    data = mezzanine(frames, size_of(frames), 16.0)
    assert np.array_equal(back(data), frames)


def test_a_ramp_of_every_level_comes_back_bit_for_bit() -> None:
    ramp = np.zeros((3, 16, 256, 3), dtype=np.uint8)
    for channel in range(3):
        ramp[channel, :, :, channel] = np.arange(256)
    assert np.array_equal(back(mezzanine(ramp, size_of(ramp), 24.0)), ramp)


def test_equal_frames_give_equal_bytes_and_the_header_counts_them() -> None:
    frames = noise(19, 37, 53)
    first, second = (mezzanine(iter(frames), size_of(frames), 23.976) for _ in range(2))
    assert first == second
    found = probe(first)
    assert (found.num_frames, found.size) == (19, Size(width=53, height=37))
    assert abs(float(found.seconds) - 19 / 23.976) < 1e-4


def test_the_encoder_s_version_names_what_decides_the_bytes() -> None:
    assert encoder_version().startswith("ffmpeg ")
    assert "threads" in encoder_version()


# --- deliverable --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "runs",
    [
        [(1, 16)],
        [(33, 16)],
        [(10, 16), (10, 24)],
        [(10, 24), (1, 16)],
        [(3, 24000 / 1001), (5, 30000 / 1001), (2, 12.5)],
        [(2, 16 if odd else 24) for odd in range(2)] * 20,
    ],
)
def test_every_frame_lasts_its_own_time_at_mixed_rates(runs: list[tuple[int, float]]) -> None:
    times = at_rates(*runs)
    size = Size(width=48, height=32)
    data = deliverable(noise(times.num_frames, 32, 48), size, times, whole_picture(size))
    with av.open(io.BytesIO(data), mode="r") as container:
        stream = container.streams.video[0]
        assert stream.time_base is not None
        stamps = [Fraction(frame.pts or 0) * stream.time_base for frame in container.decode(stream)]
        seconds = Fraction(stream.duration or 0) * stream.time_base
    wanted = [Fraction(0)]
    for run in times.runs:
        wanted += [wanted[-1] + number / run.fps for number in range(1, run.stop - run.first + 1)]
    assert stamps == wanted[:-1]
    assert seconds == wanted[-1]


def test_a_deliverable_is_what_players_and_browsers_take() -> None:
    size = Size(width=64, height=48)
    data = deliverable(still(drawing(48, 64), 9), size, at_rates((9, 16)), whole_picture(size))
    found = probe(data)
    assert (found.codec, found.pixel_format, found.num_frames, found.index_first) == ("h264", "yuv420p", 9, True)
    with av.open(io.BytesIO(data), mode="r") as container:
        codec = container.streams.video[0].codec_context
        assert (codec.color_primaries, codec.color_trc, codec.colorspace, codec.color_range) == (1, 1, 1, 1)
    assert data == deliverable(still(drawing(48, 64), 9), size, at_rates((9, 16)), whole_picture(size))


def test_colours_are_close_after_delivery() -> None:
    board = np.zeros((64, 64, 3), dtype=np.uint8)
    board[:32, :32], board[:32, 32:] = (200, 40, 40), (236, 236, 236)
    board[32:, :32], board[32:, 32:] = (40, 160, 90), (0, 0, 0)
    size = size_of(board)
    data = deliverable(still(board, 3), size, at_rates((3, 16)), whole_picture(size))
    with av.open(io.BytesIO(data), mode="r") as container:
        frame = next(container.decode(video=0)).reformat(format="rgb24", src_colorspace="ITU709")
        shown = np.asarray(frame.to_ndarray())
    for y in (16, 48):
        for x in (16, 48):
            assert np.abs(shown[y, x].astype(int) - board[y, x]).max() <= 4


def test_odd_sides_gain_a_replicated_pixel() -> None:
    size = Size(width=33, height=17)
    board = np.full((17, 33, 3), 230, dtype=np.uint8)
    board[:, 28:] = 20
    shown = back(deliverable(still(board, 2), size, at_rates((2, 16)), whole_picture(size)))
    assert shown.shape == (2, 18, 34, 3)
    assert shown[0, 17, 33].max() < 40
    assert shown[0, 17, 3].min() > 210


def test_a_clip_for_browsers_holds_every_frame(tmp_path: Path) -> None:
    studio = Studio()
    clip = studio.store(noise(11, 33, 45))
    browser_clip(whole(clip), studio.reader, tmp_path / "clip.mp4")
    found = probe(tmp_path / "clip.mp4")
    assert (found.num_frames, found.size, found.index_first) == (11, Size(width=46, height=34), True)
    assert [path.name for path in tmp_path.iterdir()] == ["clip.mp4"]


# --- faults, made real --------------------------------------------------------------------------------------


def fake_ffmpeg(folder: Path, body: str) -> str:
    path = folder / "ffmpeg"
    path.write_text(f"#!{sys.executable}\nimport sys, time, os\n{textwrap.dedent(body)}")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def other_ffmpeg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def use(body: str) -> None:
        monkeypatch.setattr(ffmpeg, "_ffmpeg", lambda: fake_ffmpeg(tmp_path, body))

    return use


def test_an_encoder_that_hangs_is_killed(
    other_ffmpeg: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    other_ffmpeg("import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)")
    monkeypatch.setattr(ffmpeg, "SECONDS_LIMIT", 0.5)
    began = time.monotonic()
    with pytest.raises(EncodingFailed, match="no end within"):
        mezzanine(noise(40, 64, 64), Size(width=64, height=64), 16.0)
    assert time.monotonic() - began < 10


def test_an_encoder_that_fails_is_quoted(other_ffmpeg: Callable[[str], None]) -> None:
    other_ffmpeg("sys.stderr.write('frame=1\\nUnknown encoder libx264rgb\\n'); sys.exit(8)")
    with pytest.raises(EncodingFailed, match=r"exit status 8.*Unknown encoder libx264rgb"):
        mezzanine(noise(40, 64, 64), Size(width=64, height=64), 16.0)


def test_a_success_that_wrote_nothing_is_an_error(other_ffmpeg: Callable[[str], None]) -> None:
    other_ffmpeg("sys.stdin.buffer.read()")
    size = Size(width=64, height=64)
    with pytest.raises(Exception, match="no readable video"):
        deliverable(noise(4, 64, 64), size, at_rates((4, 16)), whole_picture(size))


def test_a_success_with_too_few_frames_is_an_error() -> None:
    size = Size(width=64, height=64)
    with pytest.raises(EncodingFailed, match=r"3 frames.*not 4"):
        deliverable(noise(3, 64, 64), size, at_rates((4, 16)), whole_picture(size))


def test_no_frames_and_wrong_frames_are_named() -> None:
    size = Size(width=64, height=64)
    with pytest.raises(EncodingFailed, match="no frames"):
        mezzanine(iter(()), size, 16.0)
    with pytest.raises(EncodingFailed, match="frame 0 is"):
        mezzanine(noise(3, 32, 64), size, 16.0)


def limited(tmp_path: Path, limit: str) -> str:
    script = f"""
import resource, sys
from pathlib import Path
sys.path.insert(0, {str(Path.cwd())!r})
from media.encode import mezzanine
from orchestrator.errors import JobWaiting
from tests.media.made import noise, size_of
frames = noise(30, 120, 160)
{limit}
try:
    mezzanine(frames, size_of(frames), 16.0, scratch=Path({str(tmp_path)!r}))
except JobWaiting as waiting:
    print(waiting.reason, waiting)
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_a_full_disk_makes_the_job_wait(tmp_path: Path) -> None:
    said = limited(tmp_path, "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))")
    assert said.startswith("disk ")
    assert "free some space" in said
    assert list(tmp_path.iterdir()) == []


def test_a_scratch_folder_that_is_a_file_makes_the_job_wait(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(JobWaiting, match="cannot write") as caught:
        mezzanine(noise(2, 32, 32), Size(width=32, height=32), 16.0, scratch=blocked)
    assert caught.value.reason == "disk"


def test_nothing_is_left_behind_by_a_kill(tmp_path: Path) -> None:
    script = f"""
import os, signal, sys
sys.path.insert(0, {str(Path.cwd())!r})
from pathlib import Path
from media.encode import mezzanine
from tests.media.made import noise, size_of
def frames():
    yield from noise(30, 120, 160)
    os.kill(os.getpid(), signal.SIGKILL)
mezzanine(frames(), size_of(noise(1, 120, 160)), 16.0, scratch=Path({str(tmp_path)!r}))
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert ran.returncode == -9
    assert list(tmp_path.iterdir()) == []


def test_a_photograph_survives_delivery_well(tmp_path: Path) -> None:
    studio = Studio()
    shown = photograph(64, 96)
    clip = studio.store(still(shown, 4))
    browser_clip(whole(clip), studio.reader, tmp_path / "clip.mp4")
    assert np.abs(decoded(str(tmp_path / "clip.mp4"))[2].astype(int) - shown).mean() < 4
