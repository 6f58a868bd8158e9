"""The view of a run: bar and colours on a real terminal, plain lines elsewhere, nobody else's escapes."""

from __future__ import annotations

import fcntl
import io
import os
import re
import struct
import termios
import threading
from collections.abc import Callable
from typing import Any

import pytest

from cliploop.live import RunView, surface
from cliploop.terminal import Stream, Terminal
from orchestrator.records import Answer, Verdict
from tests.cliploop import records

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
HOSTILE = "\x1b]0;owned\x07 [blink]x[/blink] \x1b[2J"


def story(view: RunView) -> None:
    """One step: planned, rendered in two strokes, rejected; rendered again, accepted."""
    shown = {"shot": records.shot()}
    view.began("step/1/plan", {})
    view.recorded("step/1/plan", {}, records.plan(f"The circle moves right. {HOSTILE}"), remembered=False)
    for attempt, verdict in ((1, records.reject(HOSTILE)), (2, records.accept())):
        key = f"step/1/attempt/{attempt}"
        view.began(f"{key}/clip", shown)
        for fraction in (0.25, 0.75):
            view.progress(f"{key}/clip", fraction)
        view.recorded(f"{key}/clip", shown, records.rendered(), remembered=False)
        view.began(f"{key}/verdict", {})
        view.recorded(f"{key}/verdict", {}, Answer[Verdict](value=verdict), remembered=False)


class Screen:
    """A pseudo-terminal, read all the time as a terminal would."""

    def __init__(self, columns: int) -> None:
        self._leader, follower = os.openpty()
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        self.file = os.fdopen(follower, "w")
        self._seen = bytearray()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        try:
            while data := os.read(self._leader, 65536):
                self._seen += data
        except OSError:
            return

    def text(self) -> str:
        """All that was written, after the end."""
        self.file.close()
        self._reader.join(5)
        return self._seen.decode()


@pytest.fixture
def screen() -> Callable[[int], Screen]:
    return Screen


def test_a_terminal_shows_a_bar_that_redraws_and_a_coloured_story(screen: Callable[[int], Screen]) -> None:
    tty = screen(110)
    terminal = Terminal(json=False, out=Stream(tty.file), err=Stream(None), environ={"TERM": "xterm-256color"})
    shown = surface(terminal)
    view = RunView(shown, records.policy())
    key = "step/1/attempt/1/clip"
    view.began(key, {"shot": records.shot()})
    view.progress(key, 0.5)
    live: Any = shown
    live.refresh()
    story(view)
    shown.close()
    text = tty.text()
    plain = ESCAPE.sub("", text)
    assert "step 1, attempt 1: rendering" in plain
    assert "50 %" in plain
    assert "━" in plain
    assert "rejected, wrong_direction" in plain
    assert "accepted, complete" in plain
    assert "\x1b[31m" in text  # a reject is red
    assert "\x1b[?25h" in text  # the cursor is given back
    assert "]0;owned" in plain
    assert "\x1b]0;" not in text
    assert "\x1b[2J" not in text
    assert "[blink]x[/blink]" in plain


def test_elsewhere_the_story_is_plain_lines() -> None:
    paper = io.StringIO()
    terminal = Terminal(json=False, out=Stream(paper), err=Stream(None), environ={"TERM": "xterm"})
    shown = surface(terminal)
    story(RunView(shown, records.policy()))
    shown.close()
    lines = paper.getvalue().splitlines()
    assert lines[0].startswith("Step 1 (at most 3): The circle moves right.")
    assert lines[1].startswith("  attempt 1, 49 frames: rejected")
    assert lines[2] == "  attempt 2, 49 frames: accepted, complete"
    assert len(lines) == 3
    assert "\x1b" not in paper.getvalue()


def test_a_terminal_that_goes_away_does_not_stop_the_job(screen: Callable[[int], Screen]) -> None:
    tty = screen(110)
    terminal = Terminal(json=False, out=Stream(tty.file), err=Stream(None), environ={"TERM": "xterm"})
    shown = surface(terminal)
    tty.text()
    story(RunView(shown, records.policy()))
    shown.close()
