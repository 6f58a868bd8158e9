"""Cutting and joining edit lists, against plain lists of frames."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.footage import first_frames, join, last_good_index, still
from orchestrator.records import Footage, Segment


def frames_of(footage: Footage) -> list[tuple[str, int]]:
    return [(s.mezzanine, i) for s in footage.segments for i in range(s.first, s.stop)]


def segment(name: str, first: int, count: int) -> Segment:
    return Segment(mezzanine=name, first=first, stop=first + count, fps=16)


segments = st.builds(segment, st.sampled_from(["a", "b", "c"]), st.integers(0, 5), st.integers(1, 6))
footages = st.lists(segments, min_size=1, max_size=5).map(lambda s: Footage(segments=tuple(s)))


@given(footages, footages)
def test_a_join_keeps_the_earlier_frame_and_drops_the_later_first_one(a: Footage, b: Footage) -> None:
    assert frames_of(join(a, b)) == frames_of(a) + frames_of(b)[1:]
    assert join(a, b).num_frames == a.num_frames + b.num_frames - 1


@given(footages, footages, footages)
def test_joining_does_not_depend_on_the_order_of_joins(a: Footage, b: Footage, c: Footage) -> None:
    assert frames_of(join(join(a, b), c)) == frames_of(a) + frames_of(b)[1:] + frames_of(c)[1:]


@given(footages, st.data())
def test_the_first_frames_are_exactly_those(a: Footage, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, a.num_frames))
    assert frames_of(first_frames(a, count)) == frames_of(a)[:count]


@pytest.mark.parametrize("count", [0, -1, 4])
def test_more_or_fewer_frames_than_there_are_cannot_be_kept(count: int) -> None:
    three = Footage(segments=(Segment(mezzanine="a", first=0, stop=3, fps=16),))
    with pytest.raises(ValueError, match="cannot keep"):
        first_frames(three, count)


@given(st.integers(2, 400), st.data())
def test_frame_k_is_the_last_good_one(n: int, data: st.DataObject) -> None:
    last_good = data.draw(st.integers(0, n - 1))
    kept = last_good_index(last_good / n, n)
    assert kept == (last_good if last_good / n > 0.2 else None)


@pytest.mark.parametrize(
    ("fraction", "frames", "kept"),
    [(0.0, 49, None), (0.2, 50, None), (0.21, 100, 21), (1.0, 49, 48), (0.3, 10, 3), (0.9999, 10, 9)],
)
def test_the_cut_follows_the_stated_rule(fraction: float, frames: int, kept: int | None) -> None:
    assert last_good_index(fraction, frames) == kept


def test_joining_onto_nothing_keeps_everything() -> None:
    one = still("p.png", 16)
    assert join(Footage(), one) == one
    assert one.num_frames == 1


def test_shown_time_adds_up_over_mixed_frame_rates() -> None:
    mixed = Footage(
        segments=(
            Segment(mezzanine="a", first=0, stop=16, fps=16),
            Segment(mezzanine="b", first=0, stop=24, fps=24),
        )
    )
    assert mixed.seconds == pytest.approx(2.0)
