"""Words reach a terminal escaped, survive a closed pipe, and with --json one object is all of stdout."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from cliploop.terminal import Stream, Terminal, called_as, folded, one_line, plain


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("bell\x07", "bell\\x07"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("\x9b2J", "\\x9b2J"),
        ("[bold]markup[/bold]", "[bold]markup[/bold]"),
        ("naïve → 日本", "naïve → 日本"),
        ("a\r\nb\tc", "a b c"),
        ("half \ud800 pair", "half \\ud800 pair"),
    ],
)
def test_text_cannot_steer_the_terminal(hostile: str, shown: str) -> None:
    assert one_line(hostile) == shown


def test_line_breaks_stay_where_they_are_wanted() -> None:
    assert plain("a\nb\x1b", lines=True) == "a\nb\\x1b"
    assert plain("a\nb") == "a\\nb"


class _Gone(io.StringIO):
    def write(self, _text: str) -> int:
        raise BrokenPipeError


def test_a_stream_that_nobody_reads_goes_quiet() -> None:
    stream = Stream(_Gone())
    stream.write("x")
    assert not stream.open
    stream.write("y")
    Stream(None).write("closed from the start")


def test_an_abandoned_pipe_does_not_fail_at_exit_either() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as pipe:
        stream = Stream(pipe)
        stream.write("lost")
        assert not stream.open
        pipe.write("what the interpreter flushes at exit")


def _terminal(**environ: str) -> Terminal:
    return Terminal(json=True, out=Stream(io.StringIO()), err=Stream(io.StringIO()), environ=environ)


def _written(stream: Stream) -> str:
    held: Any = stream.stream
    return held.getvalue()


def test_with_json_stdout_is_one_object_and_lines_go_to_stderr() -> None:
    terminal = _terminal()
    terminal.say("a line")
    terminal.result({"ok": True, "text": "\x1b[31m"})
    terminal.result({"ok": False})
    assert json.loads(_written(terminal.out)) == {"ok": True, "text": "\x1b[31m"}
    assert "\x1b" not in _written(terminal.out)
    assert _written(terminal.err) == "a line\n"


def test_an_error_is_one_line_and_one_object() -> None:
    terminal = _terminal()
    assert terminal.error("bad\nthing", reason="usage", code=2) == 2
    assert _written(terminal.err) == "cliploop: bad thing\n"
    said = json.loads(_written(terminal.out))
    assert said["ok"] is False
    assert said["exit_code"] == 2
    assert said["error"] == {"reason": "usage", "message": "bad\nthing"}


def test_without_json_results_are_not_printed() -> None:
    terminal = Terminal(json=False, out=Stream(io.StringIO()), err=Stream(io.StringIO()))
    terminal.result({"ok": True})
    assert _written(terminal.out) == ""


def test_only_a_real_terminal_is_live() -> None:
    assert not _terminal(TERM="xterm").live
    leader, follower = os.openpty()
    with os.fdopen(follower, "w") as screen:
        import fcntl
        import struct
        import termios

        def live(columns: int, **environ: str) -> bool:
            fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))
            return Terminal(json=False, out=Stream(screen), err=Stream(None), environ=environ).live

        assert live(100, TERM="xterm")
        assert not live(40, TERM="xterm")
        assert not live(100, TERM="dumb")
        assert not live(100)
        assert not live(100, TERM="xterm", NO_COLOR="1")
    os.close(leader)


def test_a_line_is_folded_between_words_and_stands_in() -> None:
    assert folded("  attempt 1: it went left of the wall", 24) == ["  attempt 1: it went", "    left of the wall"]
    assert folded("label one two three", 12, hang=6) == ["label one", "      two", "      three"]
    assert folded("short", 40) == ["short"]
    assert folded("a " + "x" * 50, 10)[-1].strip() == "x" * 50


def test_a_narrow_terminal_breaks_no_word_and_a_hint_leaves_its_line() -> None:
    leader, follower = os.openpty()
    with os.fdopen(follower, "w") as screen:
        import fcntl
        import struct
        import termios

        fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 40, 0, 0))
        terminal = Terminal(json=False, out=Stream(screen), err=Stream(None), environ={})
        terminal.hint("starting")
        terminal.say("Step 1 (at most 3): The red circle slides along the white squares.")
        terminal.say("To go on: cliploop run --image maze.png --prompt prompt.txt", whole=True)
        terminal.hint("x" * 60)
        shown = os.read(leader, 4096).decode()
    os.close(leader)
    assert shown.split("\r\n") == [
        "starting\r        \rStep 1 (at most 3): The red circle",
        "  slides along the white squares.",
        "To go on: cliploop run --image maze.png --prompt prompt.txt",
        "",
    ]


def test_the_program_is_named_as_it_was_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bin" / "cliploop"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", "/nowhere")
    assert called_as("bin/cliploop", tmp_path) == ["bin/cliploop"]
    assert called_as(str(program), tmp_path) == ["bin/cliploop"]
    assert called_as(str(program), tmp_path / "elsewhere") == [str(program)]
    assert called_as("/usr/bin/pytest", tmp_path) == ["cliploop"]
    assert called_as("cliploop/cli.py", tmp_path) == [sys.executable, "-m", "cliploop.cli"]
    monkeypatch.setenv("PATH", str(program.parent))
    assert called_as(str(program), tmp_path) == ["cliploop"]
