"""Turns in a sliding window: never more than it may hold, none later than needed, whoever asks."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.pacing import InProcess, Rate, Turn

EVER = 1e9


@dataclass
class Now:
    """A clock that somebody else moves."""

    at: float = 1000.0

    def __call__(self) -> float:
        return self.at


ASKS = st.lists(st.tuples(st.floats(0, 40), st.integers(0, 300)), min_size=1, max_size=40)


@given(ASKS, st.integers(0, 5), st.integers(0, 500))
def test_no_window_ever_holds_more_than_the_limits(
    asks: list[tuple[float, int]], requests: int, tokens: int
) -> None:
    now, rate, turns = Now(), Rate(requests, tokens), list[tuple[float, int]]()
    limiter = InProcess(now)
    for pause, size in asks:
        now.at += pause
        turns.append((now.at + limiter.book("vlm", rate, size, EVER).wait_seconds, size))
    assert turns == sorted(turns, key=lambda turn: turn[0])  # who came first goes first
    for number, (at, _) in enumerate(turns):
        window = [size for when, size in turns[: number + 1] if when > at - rate.seconds]
        assert not requests or len(window) <= requests
        assert not tokens or sum(window) <= tokens or len([size for size in window if size]) == 1


@given(ASKS, st.integers(1, 5), st.integers(1, 500))
def test_nobody_waits_without_a_reason(asks: list[tuple[float, int]], requests: int, tokens: int) -> None:
    now, rate, turns = Now(), Rate(requests, tokens), list[tuple[float, int]]()
    limiter = InProcess(now)
    for pause, size in asks:
        now.at += pause
        wait = limiter.book("vlm", rate, size, EVER).wait_seconds
        earlier = max([now.at, *(at for at, _ in turns)])
        held = [other for at, other in turns if at > earlier - rate.window_seconds]
        full = len(held) >= requests or sum(held) + min(size, tokens) > tokens
        assert full or now.at + wait == pytest.approx(earlier)
        turns.append((now.at + wait, size))


def test_a_turn_that_is_too_far_away_is_not_booked() -> None:
    now = Now()
    limiter, rate = InProcess(now), Rate(requests=1, seconds=60)
    assert limiter.book("vlm", rate, 0, 20) == Turn(0.0, "1")
    far = limiter.book("vlm", rate, 0, 20)
    assert (far.id, far.wait_seconds) == ("", pytest.approx(60.6))
    now.at += 45
    near = limiter.book("vlm", rate, 0, 20)
    assert (near.id, near.wait_seconds) == ("2", pytest.approx(15.6))


def test_what_a_request_did_use_counts_from_then_on() -> None:
    now = Now()
    limiter, rate = InProcess(now), Rate(tokens=1000)
    first = limiter.book("vlm", rate, 900, EVER)
    assert limiter.book("vlm", rate, 500, 0).id == ""
    limiter.correct("vlm", first.id, 100)
    second = limiter.book("vlm", rate, 500, 0)
    assert second.wait_seconds == 0
    limiter.correct("vlm", second.id, 950)
    assert limiter.book("vlm", rate, 10, 0).id == ""
    limiter.correct("vlm", "nobody's", 10**6)
    limiter.correct("unknown", "1", 10**6)


def test_a_request_of_more_tokens_than_a_minute_has_goes_alone() -> None:
    now = Now()
    limiter, rate = InProcess(now), Rate(tokens=1000)
    limiter.book("vlm", rate, 10, EVER)
    assert limiter.book("vlm", rate, 5000, EVER).wait_seconds == pytest.approx(60.6)
    assert limiter.book("vlm", rate, 10, EVER).wait_seconds == pytest.approx(121.2)


def test_each_vlm_has_its_own_limit() -> None:
    limiter, rate = InProcess(Now()), Rate(requests=1)
    assert [limiter.book(name, rate, 0, 0).id for name in ("one", "other")] == ["1", "2"]


def test_threads_share_a_limit() -> None:
    limiter, rate, turns = InProcess(time.monotonic), Rate(requests=5), list[Turn]()
    threads = [
        threading.Thread(target=lambda: turns.append(limiter.book("vlm", rate, 0, 1.0))) for _ in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(bool(turn.id) for turn in turns) == 5
