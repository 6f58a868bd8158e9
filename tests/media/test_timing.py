"""Rates are exact fractions, and times add up."""

from __future__ import annotations

from fractions import Fraction

import pytest

from media.timing import rate, timeline
from orchestrator.records import Footage, Segment


def footage(*runs: tuple[int, float]) -> Footage:
    return Footage(segments=tuple(Segment(mezzanine="m", first=0, stop=n, fps=fps) for n, fps in runs))


@pytest.mark.parametrize(
    ("fps", "exact"),
    [
        (16.0, Fraction(16)),
        (12.5, Fraction(25, 2)),
        (23.976023976023978, Fraction(24000, 1001)),
        (29.97002997002997, Fraction(30000, 1001)),
        (0.5, Fraction(1, 2)),
        (1e-9, Fraction(1, 1001)),
    ],
)
def test_a_rate_is_the_fraction_that_was_meant(fps: float, exact: Fraction) -> None:
    assert rate(fps) == exact


def test_neighbours_at_one_rate_are_one_run() -> None:
    times = timeline(footage((10, 16), (5, 16), (3, 24), (2, 16)))
    assert [(run.first, run.stop) for run in times.runs] == [(0, 15), (15, 18), (18, 20)]
    assert (times.num_frames, times.seconds) == (20, Fraction(17, 16) + Fraction(1, 8))
    assert timeline(footage((10, 16), (5, 16))).expression() is None


@pytest.mark.parametrize(
    "runs", [[(3, 16)], [(3, 24000 / 1001), (2, 25)], [(1, 16), (1, 24), (1, 30), (1, 12.5)]]
)
def test_every_frame_lasts_whole_ticks(runs: list[tuple[int, float]]) -> None:
    times = timeline(footage(*runs))
    assert times.timescale >= 10_000
    assert all((times.timescale / run.fps).denominator == 1 for run in times.runs)


def test_rates_without_a_common_tick_are_rounded_not_refused() -> None:
    times = timeline(footage(*((1, 1000 / prime) for prime in (7, 11, 13, 997, 991, 983))))
    assert times.timescale <= 10_000_000
