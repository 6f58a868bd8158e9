"""What remote renders share: waiting, and bounded downloads."""

from __future__ import annotations

import time
from typing import Any

import pytest

from generators.remote import POLLS_FAILED_AT_MOST, Bounded, Look, Patience, Watch
from orchestrator.errors import BackendFailed, BackendUnavailable, JobCancelled


def unheard(_fraction: float) -> None:
    pass


def watch(heard: list[float] | None = None, cancelled: Any = lambda: False) -> Watch:
    return Watch(unheard if heard is None else heard.append, cancelled)


def test_a_fraction_never_falls_and_never_passes_one() -> None:
    heard: list[float] = []
    watching = watch(heard)
    for fraction in (0.5, 0.2, 7.0):
        watching.tell(fraction)
    assert heard == [0.5, 0.5, 1.0]


def test_whoever_waits_is_asked_whether_to_go_on() -> None:
    answers = iter([False, False, True])
    began = time.monotonic()
    with pytest.raises(JobCancelled):
        watch(cancelled=lambda: next(answers)).wait(30)
    assert time.monotonic() - began < 10


def test_what_a_progress_callback_raises_ends_the_waiting() -> None:
    class Ending(BaseException):
        pass

    def end(_fraction: float) -> None:
        raise Ending

    with pytest.raises(Ending):
        Watch(end, lambda: False).wait(30)


def test_looks_that_keep_failing_are_given_up_and_one_that_works_counts_anew() -> None:
    def looks(*said: Any) -> Any:
        rest = iter(said)

        def look() -> Look:
            one = next(rest)
            if isinstance(one, Exception):
                raise one
            return one

        return look

    away = BackendUnavailable("away", retry_after_seconds=0.0)
    seen = Look(again_seconds=0.0)
    few = [away] * POLLS_FAILED_AT_MOST
    assert Patience(watch(), 60).until_done(looks(*few, seen, *few, Look(value="video"))) == "video"
    with pytest.raises(BackendUnavailable):
        Patience(watch(), 60).until_done(looks(*few, away, Look(value="video")))


def test_a_render_that_is_never_done_is_given_up() -> None:
    with pytest.raises(BackendFailed, match="limit_seconds"):
        Patience(watch(), 0.0).until_done(Look)


def test_a_download_is_bounded_and_stops_for_who_cancels() -> None:
    data = Bounded(1 << 20, watch())
    data.take(bytes(1 << 20))
    with pytest.raises(BackendFailed, match="larger than 1 MiB"):
        data.take(b"x")
    with pytest.raises(JobCancelled):
        Bounded(1 << 20, watch(cancelled=lambda: True)).take(b"x")
