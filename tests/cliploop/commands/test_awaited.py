"""What is away is waited for; what repeats is said now and then."""

from __future__ import annotations

import logging

import pytest

from cliploop.commands.awaited import AGAIN_SECONDS, LONGEST_PAUSE_SECONDS, Repeats, awaited
from orchestrator.errors import BackendMisconfigured, BackendUnavailable


def test_it_is_waited_for_with_longer_and_longer_pauses() -> None:
    pauses: list[float] = []

    def call() -> str:
        if len(pauses) < 8:
            raise BackendUnavailable("the database is away")
        return "there"

    assert awaited(call, pauses.append) == "there"
    assert pauses == sorted(pauses)
    assert pauses[0] < pauses[1]
    assert pauses[-1] == LONGEST_PAUSE_SECONDS


def test_what_is_misconfigured_is_not_waited_for() -> None:
    def call() -> None:
        raise BackendMisconfigured("no such bucket")

    with pytest.raises(BackendMisconfigured):
        awaited(call, lambda _seconds: pytest.fail("it waited"))


def record(message: str, level: int = logging.WARNING) -> logging.LogRecord:
    return logging.LogRecord("cliploop", level, "", 0, "%s", (message,), None)


def test_a_line_is_said_once_and_then_now_and_then_with_a_count() -> None:
    now = 0.0
    repeats = Repeats(lambda: now)
    assert repeats.filter(record("away"))
    assert not repeats.filter(record("away"))
    assert repeats.filter(record("100 % of another"))
    now = AGAIN_SECONDS - 1
    assert not repeats.filter(record("away"))
    now = AGAIN_SECONDS
    again = record("away")
    assert repeats.filter(again)
    assert again.getMessage() == "away (2 more times since)"
    assert not repeats.filter(record("away"))


def test_what_is_no_warning_is_always_said() -> None:
    repeats = Repeats()
    assert all(repeats.filter(record("a clip begins", logging.INFO)) for _ in range(3))
