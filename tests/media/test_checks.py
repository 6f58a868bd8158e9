"""Quick checks reject what stands still or starts elsewhere, note what is strange, and pass every true video."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageEnhance, ImageFilter

from media.checks import examine
from media.encode import Framing, deliverable
from media.pictures import Frame, Frames, to_array
from media.timing import timeline
from orchestrator.footage import first_frames, join, whole
from orchestrator.records import Check, Clip, Footage, Segment, Size
from tests.media.made import Studio, decoded, dot_moves, drawing, noise, photograph, size_of, still

DATA = Path(__file__).parents[1] / "data"
TRUE_VIDEOS = sorted(str(path.relative_to(DATA)) for path in DATA.glob("v*/**/ground_truth.mp4"))
GROUNDS = {"drawing": drawing(), "photograph": photograph()}


def checked(frames: Frames, *, start: Frame | None = None) -> Check:
    studio = Studio()
    clip = studio.store(frames, start=start)
    return studio.editor.check(whole(clip), clip, studio.picture(frames[0]), psnr_min=30.0)


def perfect_clip() -> Clip:
    size = Size(width=1, height=1)
    return Clip(
        mezzanine="m",
        last_frame="l",
        num_frames=2,
        fps=16,
        size=size,
        rendered_size=size,
        frames_digest="",
        first_frame_psnr=100.0,
        first_frame_ssim=1.0,
    )


def compressed(frames: Frames) -> Frames:
    """Through the lossy encoder and back."""
    size, n = size_of(frames), len(frames)
    times = timeline(Footage(segments=(Segment(mezzanine="a", first=0, stop=n, fps=16),)))
    framing = Framing((0, 0, size.width, size.height), (size.width, size.height), (size.width, size.height))
    return decoded(io.BytesIO(deliverable(frames, size, times, framing)))


def test_there_are_true_videos_to_check() -> None:
    assert len(TRUE_VIDEOS) >= 10


@pytest.mark.parametrize("name", TRUE_VIDEOS)
def test_no_true_video_fails_or_is_noted(name: str) -> None:
    frames = decoded(str(DATA / name))
    check = examine(frames, 0, perfect_clip(), frames[0], psnr_min=30.0)
    assert check.failure is None
    assert check.notes == ()


# --- motion -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ground", GROUNDS.values(), ids=GROUNDS)
def test_identical_frames_are_frozen(ground: Frame) -> None:
    check = checked(still(ground, 33))
    assert check.failure == "no_motion"
    assert "nothing moves" in check.reason


@pytest.mark.parametrize("ground", GROUNDS.values(), ids=GROUNDS)
def test_compression_and_sensor_noise_are_no_motion(ground: Frame) -> None:
    frames = still(ground, 24)
    assert checked(compressed(frames), start=ground).failure == "no_motion"
    flicker = np.random.default_rng(0).normal(0, 3, frames.shape)
    assert checked(np.clip(frames + flicker, 0, 255).astype(np.uint8), start=ground).failure == "no_motion"


def test_a_frozen_clip_after_a_slightly_different_first_frame_is_frozen() -> None:
    ground = np.full((96, 128, 3), 120, np.uint8)
    check = checked(np.concatenate([ground[None], still(ground + 8, 20)]))
    assert check.failure == "no_motion"


@pytest.mark.parametrize("ground", GROUNDS.values(), ids=GROUNDS)
@pytest.mark.parametrize(("side", "travel"), [(6, 12), (8, 60), (5, 30)])
def test_a_small_piece_that_moves_is_motion(ground: Frame, side: int, travel: int) -> None:
    frames = dot_moves(ground, 24, side=side, travel=travel)
    assert checked(frames).failure is None
    assert checked(compressed(frames), start=frames[0]).failure is None


def test_a_faint_piece_that_moves_is_motion() -> None:
    assert checked(dot_moves(drawing(), 24, side=8, colour=(212, 212, 212))).failure is None


def test_a_tiny_piece_in_a_large_picture_is_motion() -> None:
    board = np.full((480, 832, 3), 238, np.uint8)
    frames = dot_moves(board, 6, side=6, travel=20)
    assert np.abs(np.diff(frames.astype(int), axis=0)).mean() < 0.02
    assert checked(frames).failure is None


def test_two_frames_are_enough_to_move() -> None:
    assert checked(dot_moves(drawing(), 2)).failure is None
    assert checked(still(drawing(), 2)).failure == "no_motion"


def test_motion_is_judged_on_the_whole_candidate_and_the_still_part_is_noted() -> None:
    studio = Studio()
    moving = dot_moves(drawing(), 20)
    first = studio.store(moving)
    kept = first_frames(whole(first), 12)
    clip = studio.store(still(moving[11], 15))
    check = studio.editor.check(join(kept, whole(clip)), clip, studio.picture(moving[0]), psnr_min=30.0)
    assert check.failure is None
    assert check.notes == (
        "the newly rendered part stands still, from frame 12 on: all motion is in what was kept",
    )
    jumps = studio.store(np.concatenate([moving[11:12], still(moving[19], 14)]))
    check = studio.editor.check(join(kept, whole(jumps)), jumps, studio.picture(moving[0]), psnr_min=30.0)
    assert check.notes == ()
    goes_on = studio.store(moving[11:])
    check = studio.editor.check(join(kept, whole(goes_on)), goes_on, studio.picture(moving[0]), psnr_min=30.0)
    assert check.notes == ()


# --- first frame --------------------------------------------------------------------------------------------


def test_a_first_frame_below_the_limit_is_rejected_with_its_figures() -> None:
    frames = dot_moves(drawing(), 12)
    check = checked(np.concatenate([noise(1, 96, 128), frames]), start=frames[0])
    assert check.failure == "first_frame"
    assert "dB" in check.reason
    assert "30 dB" in check.reason


def test_a_first_frame_at_the_limit_passes() -> None:
    studio = Studio()
    frames = dot_moves(drawing(), 12)
    shifted = frames.copy()
    shifted[0] = np.clip(frames[0].astype(int) + 6, 0, 255)
    clip = studio.store(shifted, start=frames[0])
    look = studio.editor.check
    first = studio.picture(frames[0])
    assert look(whole(clip), clip, first, psnr_min=clip.first_frame_psnr).failure is None
    assert look(whole(clip), clip, first, psnr_min=clip.first_frame_psnr + 0.01).failure == "first_frame"


# --- notes --------------------------------------------------------------------------------------------------


def times(frames: Frames, index: int | slice, factor: float) -> Frames:
    changed = frames.copy()
    changed[index] = np.clip(frames[index] * factor, 0, 255).astype(np.uint8)
    return changed


def noted(frames: Frames, word: str) -> bool:
    check = checked(frames)
    assert check.failure is None
    return any(word in note for note in check.notes)


@pytest.mark.parametrize("ground", GROUNDS.values(), ids=GROUNDS)
def test_one_frame_times_1_6_is_a_flash(ground: Frame) -> None:
    frames = dot_moves(ground, 24)
    assert noted(times(frames, 9, 1.6), "frame 9 flashes")
    assert noted(times(frames, 9, 0.6), "frame 9 flashes")
    assert noted(times(frames, slice(15, 24), 0.8), "jumps darker at frame 15")
    assert noted(times(frames, 23, 1.6), "jumps brighter at frame 23")


@pytest.mark.parametrize("ground", GROUNDS.values(), ids=GROUNDS)
@pytest.mark.parametrize("step", [2, -2, 0.5])
def test_a_brightness_ramp_is_noted(ground: Frame, step: float) -> None:
    frames = dot_moves(ground, 24).astype(float)
    ramp = frames + step * np.arange(24)[:, None, None, None]
    check = checked(np.clip(ramp, 0, 255).astype(np.uint8))
    direction = "brighter" if step > 0 else "darker"
    assert check.failure is None
    assert any(f"grows {direction}" in note for note in check.notes)


def test_a_still_picture_that_ramps_or_flashes_is_noted() -> None:
    frames = still(photograph(), 24)
    ramp = np.clip(frames.astype(int) + 2 * np.arange(24)[:, None, None, None], 0, 255).astype(np.uint8)
    assert any("grows brighter" in note for note in checked(ramp).notes)
    assert any("flashes" in note for note in checked(times(frames, 5, 1.6)).notes)


def test_black_frames_are_black_relative_to_the_start() -> None:
    frames = dot_moves(photograph(), 24)
    assert noted(times(frames, slice(10, 14), 0.02), "frames 10 to 13 are black")
    night = (frames * 0.05).astype(np.uint8)
    assert not any("black" in note for note in checked(night).notes)


def test_colour_drift_and_loss_of_sharpness_are_noted() -> None:
    ground = photograph(grain=2)
    frames = dot_moves(ground, 24)
    saturated = np.stack(
        [to_array(ImageEnhance.Color(Image.fromarray(f)).enhance(1.03 ** (i / 4))) for i, f in enumerate(frames)]
    )
    assert noted(saturated, "more saturated")
    blurred = np.stack(
        [to_array(Image.fromarray(f).filter(ImageFilter.GaussianBlur(i / 12))) for i, f in enumerate(frames)]
    )
    assert noted(blurred, "loses sharpness")


@pytest.mark.parametrize("ground", GROUNDS.values(), ids=GROUNDS)
def test_a_plain_moving_clip_has_no_notes(ground: Frame) -> None:
    assert checked(dot_moves(ground, 33)).notes == ()
    assert checked(compressed(dot_moves(ground, 33)), start=dot_moves(ground, 33)[0]).notes == ()
