"""Limits on calls: an exception at the limit, the end of the process where that does not help."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time

import pytest

from tests.storage.jobs_for_tests import ROOT
from workers.limits import TookTooLong, is_out_of_memory, within

STUCK = (
    "import time; from workers.limits import within\n"
    "def stuck():\n"
    "    while True:\n"
    "        try: time.sleep(10)\n"
    "        except BaseException: pass\n"
    "within(0.2, 0.3, stuck)\n"
)


def sleep(seconds: float) -> str:
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        time.sleep(0.01)
    return "done"


def test_a_call_within_its_limit_gives_its_value_and_leaves_no_alarm() -> None:
    before = signal.getsignal(signal.SIGALRM)
    assert within(5.0, 5.0, lambda: sleep(0.02)) == "done"
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert signal.getsignal(signal.SIGALRM) is before


def test_a_call_past_its_limit_is_stopped() -> None:
    began = time.monotonic()
    with pytest.raises(TookTooLong):
        within(0.1, 5.0, lambda: sleep(3.0))
    assert time.monotonic() - began < 1.0


def test_an_error_of_the_call_comes_through() -> None:
    with pytest.raises(ZeroDivisionError):
        within(5.0, 5.0, lambda: 1 / 0)
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_a_call_that_cannot_be_stopped_ends_its_process_and_shows_where_it_hung() -> None:
    began = time.monotonic()
    ended = subprocess.run(
        [sys.executable, "-c", STUCK], cwd=ROOT, capture_output=True, text=True, timeout=30, check=False
    )
    assert ended.returncode != 0
    assert time.monotonic() - began < 10.0
    assert "in stuck" in ended.stderr


def test_outside_the_main_thread_there_is_no_limit() -> None:
    said: list[str] = []
    thread = threading.Thread(target=lambda: said.append(within(0.01, 5.0, lambda: sleep(0.1))))
    thread.start()
    thread.join()
    assert said == ["done"]


def test_running_out_of_memory_is_known_by_the_names_of_errors() -> None:
    class OutOfMemoryError(RuntimeError):
        pass

    class Narrower(OutOfMemoryError):
        pass

    assert all(is_out_of_memory(error) for error in (MemoryError(), OutOfMemoryError(), Narrower()))
    assert not is_out_of_memory(RuntimeError("memory"))
