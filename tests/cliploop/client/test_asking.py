"""How long a server is asked again: longer and longer, as it says itself, until patience is over."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from email.utils import formatdate

import pytest

from cliploop.client import ServerUnreachable, TryLater
from cliploop.client.asking import LONGEST_PAUSE_SECONDS, Tries, retry_after
from cliploop.client.wire import Patience


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def test_pauses_grow_to_a_limit_and_end_with_patience() -> None:
    clock, error = Clock(), ServerUnreachable("away")
    tries = Tries(Patience(60.0, clock, lambda: 1.0))
    pauses: list[float] = []
    with contextlib.suppress(ServerUnreachable):
        while clock.now < 1000:
            pauses.append(tries.pause(error))
            clock.now += pauses[-1]
    assert pauses[:5] == [0.25, 0.5, 1.0, 2.0, 4.0]
    assert max(pauses) == LONGEST_PAUSE_SECONDS
    assert 60 - LONGEST_PAUSE_SECONDS < clock.now <= 60


def test_a_sign_of_life_begins_patience_anew() -> None:
    clock, error = Clock(), ServerUnreachable("away")
    tries = Tries(Patience(1.0, clock, lambda: 0.0))
    for _ in range(50):
        clock.now += tries.pause(error) + 10
        tries.heard()
    assert tries.pause(error) == 0.125


def test_a_pause_is_never_shorter_than_the_server_says() -> None:
    tries = Tries(Patience(10.0, Clock(), lambda: 0.0))
    assert tries.pause(TryLater("busy", retry_after_seconds=7)) == 7
    with pytest.raises(TryLater):
        tries.pause(TryLater("busy", retry_after_seconds=11))


def test_retry_after_is_seconds_or_a_date() -> None:
    assert retry_after({"retry-after": "12"}) == 12
    assert retry_after({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0
    soon = retry_after({"retry-after": formatdate(time.time() + 100, usegmt=True)})
    assert soon is not None
    assert 0 < soon <= 100
    for nothing in ({}, {"retry-after": ""}, {"retry-after": "soon"}, {"retry-after": "-3"}):
        assert retry_after(nothing) is None
