"""Threads that go on whatever happens, and say it once."""

from __future__ import annotations

import threading

import pytest

from orchestrator.errors import BackendUnavailable
from storage.rounds import Trouble, rounds


def test_whatever_goes_wrong_in_a_round_the_next_one_comes_and_it_is_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    done, count = threading.Event(), 0

    def go() -> None:
        nonlocal count
        count += 1
        if count > 5:
            done.set()
        else:
            raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")

    with rounds("tester", go, 0.001):
        assert done.wait(30)
    assert caplog.text.count("a fault in the tester") == 1
    assert caplog.text.count("Traceback") == 1


def test_what_comes_again_after_it_went_well_is_said_again(caplog: pytest.LogCaptureFixture) -> None:
    trouble = Trouble("tester")
    for _ in range(2):
        trouble.note(BackendUnavailable("the broker is away"))
        trouble.note(BackendUnavailable("the broker is away"))
        trouble.over()
    assert caplog.text.count("the broker is away") == 2
    assert "Traceback" not in caplog.text


def test_a_round_may_say_when_the_next_one_comes() -> None:
    done, count = threading.Event(), 0

    def go() -> float:
        nonlocal count
        count += 1
        if count > 2:
            done.set()
        return 0.001

    with rounds("tester", go, 3600.0):
        assert done.wait(30)
