"""The reader gives every bit back, decodes no more than it must, and holds little."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from media.encode import mezzanine
from media.frames import FrameReader
from orchestrator.errors import CliploopError
from orchestrator.footage import first_frames, join, whole
from orchestrator.footage import still as still_footage
from orchestrator.records import Footage, Segment
from tests.media.made import Studio, drawing, noise, size_of


def test_every_single_frame_equals_what_was_stored() -> None:
    studio = Studio()
    frames = noise(40, 33, 47)
    clip = whole(studio.store(frames))
    studio.forget()
    for index in range(40):
        assert np.array_equal(studio.reader.frame(clip, index), frames[index])
        assert np.array_equal(studio.reader.frame(clip, index - 40), frames[index])


@pytest.mark.parametrize("fps", [1.0, 12.5, 16.0, 24000 / 1001, 29.97, 60.0, 7.3])
def test_seeking_is_exact_at_any_rate(fps: float) -> None:
    studio = Studio()
    frames = noise(50, 16, 16)
    clip = whole(studio.store(frames, fps=fps))
    studio.forget()
    for index in (0, 15, 16, 17, 31, 33, 48, 49):
        assert np.array_equal(studio.reader.frame(clip, index), frames[index])


@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_footage_reads_the_same_as_one_block_and_frame_by_frame(data: st.DataObject) -> None:
    studio = Studio()
    clips = [noise(data.draw(st.integers(2, 24)), 16, 24, seed) for seed in range(3)]
    segments: list[Segment] = []
    expected: list[np.ndarray] = []
    for frames in clips:
        clip = studio.store(frames)
        first = data.draw(st.integers(0, len(frames) - 1))
        stop = data.draw(st.integers(first + 1, len(frames)))
        segments.append(Segment(mezzanine=clip.mezzanine, first=first, stop=stop, fps=16))
        expected.extend(frames[first:stop])
    footage = Footage(segments=tuple(segments))
    for _ in range(2):
        assert np.array_equal(studio.reader.frames(footage), expected)
        assert np.array_equal(list(studio.reader.iterate(footage)), expected)
        studio.forget()


def test_a_still_is_footage_of_one_frame() -> None:
    studio = Studio()
    board = drawing()
    footage = join(still_footage(studio.picture(board), 16), whole(studio.store(noise(5, 96, 128))))
    assert footage.num_frames == 5
    assert np.array_equal(studio.reader.frame(footage, 0), board)
    assert np.array_equal(studio.reader.frames(first_frames(footage, 1))[0], board)
    assert np.array_equal(next(studio.reader.iterate(footage)), board)


def test_the_cache_is_bounded_and_the_newest_stays() -> None:
    studio = Studio()
    clips = [studio.store(noise(10, 32, 32, seed)) for seed in range(5)]
    one = 10 * 32 * 32 * 3
    reader = FrameReader(studio.artifacts, cache_bytes=2 * one)
    for clip in clips:
        reader.frames(whole(clip))
    assert sum(kept.nbytes for kept in reader._kept.values()) <= 2 * one
    assert list(reader._kept) == [clip.mezzanine for clip in clips[-2:]]


def test_a_clip_larger_than_the_cache_is_read_all_the_same() -> None:
    studio = Studio()
    frames = noise(10, 32, 32)
    reader = FrameReader(studio.artifacts, cache_bytes=100)
    assert np.array_equal(reader.frames(whole(studio.store(frames))), frames)
    assert not reader._kept


def test_what_is_handed_out_cannot_be_written_to() -> None:
    studio = Studio()
    footage = whole(studio.store(noise(4, 16, 16)))
    for array in (
        studio.reader.frames(footage),
        studio.reader.frame(footage, 2),
        next(studio.reader.iterate(footage)),
    ):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_frames_that_do_not_exist_are_named() -> None:
    studio = Studio()
    clip = studio.store(noise(4, 16, 16))
    for index in (4, -5, 1000):
        with pytest.raises(CliploopError, match=f"no frame {index} in footage of 4"):
            studio.reader.frame(whole(clip), index)
    with pytest.raises(CliploopError, match="no frames"):
        studio.reader.frames(Footage())
    assert list(studio.reader.iterate(Footage())) == []


@pytest.mark.parametrize("forgotten", [False, True])
def test_a_segment_longer_than_its_clip_is_an_error_not_a_short_answer(forgotten: bool) -> None:
    studio = Studio()
    clip = studio.store(noise(4, 16, 16))
    if forgotten:
        studio.forget()
    footage = Footage(segments=(Segment(mezzanine=clip.mezzanine, first=1, stop=9, fps=16),))
    with pytest.raises(CliploopError, match="has 4 frames, not 9"):
        studio.reader.frames(footage)
    with pytest.raises(CliploopError, match="has 4 frames, not 9"):
        list(studio.reader.iterate(footage))


@pytest.mark.parametrize("keep", [0, 20, 400])
def test_a_damaged_clip_is_named_with_the_remedy(keep: int) -> None:
    studio = Studio()
    frames = noise(9, 32, 32)
    broken = studio.artifacts.put(mezzanine(frames, size_of(frames), 16.0)[:keep] + b" ", ".mp4")
    footage = Footage(segments=(Segment(mezzanine=broken, first=0, stop=9, fps=16),))
    with pytest.raises(CliploopError, match=r"artifact folder is damaged"):
        list(studio.reader.iterate(footage))
    with pytest.raises(CliploopError, match=r"artifact folder is damaged"):
        studio.reader.frames(footage)
