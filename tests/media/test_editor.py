"""The editor: lossless hand-offs, honest records of what came back, a deliverable that was counted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from media.canvas import choose
from media.pictures import decode_png
from media.probe import probe
from orchestrator.errors import BackendFailed, CliploopError
from orchestrator.footage import first_frames, join, whole
from orchestrator.footage import still as still_footage
from orchestrator.records import Capabilities, Footage, Size, Task
from tests.media.made import (
    Studio,
    decoded,
    dot_moves,
    drawing,
    identity,
    noise,
    photograph,
    shot,
    size_of,
    still,
)


@pytest.fixture
def studio() -> Studio:
    return Studio()


def delivered(studio: Studio, key: str) -> np.ndarray:
    return decoded(str(studio.artifacts.path(key)))


# --- hand-off -----------------------------------------------------------------------------------------------


@settings(max_examples=10, deadline=None)
@given(width=st.integers(16, 70), height=st.integers(16, 70), seed=st.integers(0, 99), cut=st.floats(0, 1))
def test_a_cut_at_any_frame_is_that_frame_bit_for_bit(width: int, height: int, seed: int, cut: float) -> None:
    studio = Studio()
    frames = noise(21, height, width, seed)
    clip = whole(studio.store(frames))
    index = round(cut * 20)
    studio.forget()
    key = studio.editor.frame(clip, index)
    assert np.array_equal(studio.reader.picture(key), frames[index])
    assert key == studio.picture(frames[index])


def test_eight_hand_offs_of_an_unchanged_frame_keep_every_bit(studio: Studio) -> None:
    first = noise(1, 45, 61)[0]
    start = studio.picture(first)
    answer = Footage()
    for _ in range(8):
        frames = still(studio.reader.picture(start), 5)
        clip = studio.editor.store(frames, shot(start, 5, size_of(first)))
        assert (clip.first_frame_psnr, clip.first_frame_ssim) == (100.0, 1.0)
        assert clip.last_frame == start
        answer = join(answer, whole(clip))
        studio.forget()
        start = studio.editor.frame(answer, -1)
    assert np.array_equal(studio.reader.frame(answer, -1), first)
    assert answer.num_frames == 8 * 5 - 7


def test_three_chained_prefixes_read_as_their_own_frames(studio: Studio) -> None:
    clips = [noise(12, 32, 48, seed) for seed in range(3)]
    kept = Footage()
    expected = clips[0][:0]
    for frames in clips:
        kept = join(kept, whole(studio.store(frames)))
        expected = np.concatenate([expected, frames if not len(expected) else frames[1:]])
        kept, expected = first_frames(kept, len(expected) - 4), expected[:-4]
    studio.forget()
    assert np.array_equal(studio.reader.frames(kept), expected)


# --- store --------------------------------------------------------------------------------------------------


def test_what_was_rendered_is_recorded_not_what_was_asked(studio: Studio) -> None:
    board = drawing(96, 128)
    small = dot_moves(drawing(80, 112), 15)
    clip = studio.editor.store(small, shot(studio.picture(board), 81, Size(width=128, height=96)))
    assert clip.num_frames == 15
    assert clip.rendered_size == Size(width=112, height=80)
    assert clip.size == Size(width=128, height=96)
    assert studio.reader.frame(whole(clip), 3).shape == (96, 128, 3)
    assert clip.first_frame_psnr < 40


def test_frame_zero_is_measured_against_the_start_frame(studio: Studio) -> None:
    start = photograph()
    other = np.clip(start.astype(int) + 10, 0, 255).astype(np.uint8)
    clip = studio.store(np.stack([other, start]), start=start)
    assert clip.first_frame_psnr == pytest.approx(28.13, abs=0.2)
    assert 0.9 < clip.first_frame_ssim < 1
    strange = studio.store(noise(2, 96, 128), start=start)
    assert strange.first_frame_psnr < 12
    assert strange.first_frame_ssim < 0.2


def test_the_same_frames_give_the_same_record_and_another_video_another_digest(studio: Studio) -> None:
    frames = dot_moves(drawing(), 9)
    assert studio.store(frames) == studio.store(frames.copy())
    changed = frames.copy()
    changed[4, 0, 0, 0] ^= 1
    assert studio.store(changed).frames_digest != studio.store(frames).frames_digest


def test_a_backend_that_reuses_its_buffer_changes_no_stored_clip(studio: Studio) -> None:
    buffer = noise(6, 32, 32, 1)
    expected = buffer.copy()
    clip = studio.store(buffer)
    buffer[:] = 0
    assert np.array_equal(studio.reader.frames(whole(clip)), expected)


def test_a_list_of_frames_and_a_strided_view_are_frames_too(studio: Studio) -> None:
    frames = noise(6, 32, 48)
    digest = studio.store(frames).frames_digest
    start, size = studio.picture(frames[0]), size_of(frames)
    assert studio.editor.store(list(frames), shot(start, 6, size)).frames_digest == digest
    view = np.asfortranarray(frames)
    assert studio.editor.store(view, shot(start, 6, size)).frames_digest == digest


@pytest.mark.parametrize(
    ("frames", "word"),
    [
        (noise(4, 32, 32).astype(np.float32) / 255, "float32"),
        (noise(4, 32, 32).astype(np.int64), "int64"),
        (noise(1, 32, 32), "at least two"),
        (noise(4, 32, 32)[:0], "at least two"),
        (noise(4, 32, 32)[0], "32×32×3"),
        (np.zeros((4, 32, 32, 4), np.uint8), "32×32×4"),
        (np.zeros((4, 0, 32, 3), np.uint8), "0×32"),
        (None, "NoneType"),
        ([], "float64"),
        ("frames", "str"),
        ([noise(1, 32, 32)[0], noise(1, 16, 16)[0]], "different sizes"),
    ],
)
def test_what_is_no_clip_is_a_lost_attempt_that_says_why(studio: Studio, frames: Any, word: str) -> None:
    with pytest.raises(BackendFailed, match=word):
        studio.editor.store(frames, shot(studio.picture(drawing()), 4, Size(width=32, height=32)))


# --- place and deliver --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "multiple"),
    [((128, 96), 1), ((65, 49), 2), ((65, 49), 16), ((300, 200), 16), ((40, 120), 32), ((20, 20), 16)],
)
def test_the_deliverable_has_the_picture_s_own_size_whatever_the_canvas(
    studio: Studio, size: tuple[int, int], multiple: int
) -> None:
    width, height = size
    own = Size(width=width, height=height)
    capabilities = Capabilities(name="b", size_multiple=multiple, min_side=16, max_side=256, max_pixels=160 * 160)
    canvas = choose(own, capabilities)
    ground = photograph(height, width, grain=1)
    task = Task(prompt="go", picture=studio.picture(ground), size=own)
    first = studio.reader.picture(studio.editor.place(task, canvas))
    assert first.shape == (canvas.size.height, canvas.size.width, 3)
    clip = studio.store(still(first, 5))
    video = studio.editor.deliver(whole(clip), canvas, own, long_side_max=1920)
    assert video.size == Size(width=width + width % 2, height=height + height % 2)
    assert bool(video.notes) == (video.size != own)
    shown = delivered(studio, video.artifact)
    assert shown.shape == (5, video.size.height, video.size.width, 3)
    error = np.abs(shown[2, :height, :width].astype(int) - ground).mean()
    assert error < (2 if canvas.fit in ("identity", "pad") else 12)


def test_a_place_on_the_own_size_is_the_picture_itself(studio: Studio) -> None:
    board = drawing()
    task = Task(prompt="go", picture=studio.picture(board), size=size_of(board))
    assert studio.editor.place(task, identity(size_of(board))) == task.picture


def test_mixed_rates_deliver_every_frame_for_its_own_time(studio: Studio) -> None:
    slow, fast = studio.store(dot_moves(drawing(), 17), fps=16), studio.store(dot_moves(drawing(), 25), fps=24)
    footage = join(whole(slow), whole(fast))
    video = studio.editor.deliver(footage, identity(slow.size), slow.size, long_side_max=1920)
    found = probe(studio.artifacts.read(video.artifact))
    assert found.num_frames == video.num_frames == footage.num_frames == 17 + 24
    assert found.seconds == 17 / 16 + 1
    assert video.seconds == pytest.approx(footage.seconds)


def test_the_long_side_is_capped_and_said(studio: Studio) -> None:
    clip = studio.store(noise(3, 50, 150))
    video = studio.editor.deliver(whole(clip), identity(clip.size), clip.size, long_side_max=100)
    assert video.size == Size(width=100, height=34)
    assert "100 pixels" in video.notes[0]


def test_1080_stays_1080(studio: Studio) -> None:
    size = Size(width=1920, height=1080)
    clip = studio.store(np.zeros((2, 1080, 1920, 3), np.uint8))
    assert studio.editor.deliver(whole(clip), identity(size), size, long_side_max=1920).size == size


def test_a_still_alone_is_a_video_of_one_frame(studio: Studio) -> None:
    board = drawing()
    video = studio.editor.deliver(
        still_footage(studio.picture(board), 16), identity(size_of(board)), size_of(board), long_side_max=1920
    )
    assert (video.num_frames, video.seconds) == (1, 1 / 16)


def test_equal_footage_gives_an_equal_file_and_none_gives_an_error(studio: Studio) -> None:
    clip = studio.store(dot_moves(drawing(), 12))
    deliver = studio.editor.deliver
    once = deliver(whole(clip), identity(clip.size), clip.size, long_side_max=1920)
    studio.forget()
    assert studio.editor.deliver(whole(clip), identity(clip.size), clip.size, long_side_max=1920) == once
    with pytest.raises(CliploopError, match="no video to deliver"):
        deliver(Footage(), identity(clip.size), clip.size, long_side_max=1920)


def test_the_last_frame_png_is_the_last_frame(studio: Studio) -> None:
    frames = noise(5, 33, 31)
    clip = studio.store(frames)
    assert np.array_equal(decode_png(studio.artifacts.read(clip.last_frame)), frames[-1])
