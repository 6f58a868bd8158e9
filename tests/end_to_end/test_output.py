"""What a run says, where: on a terminal, into a pipe that closes, onto a full device, with a hostile task."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path

from tests.cliploop.commandline import PICTURE, PROMPT, child_environment

CLIPLOOP = [sys.executable, "-m", "cliploop.cli"]
RUN = [
    *CLIPLOOP,
    "run",
    "--world",
    "maze",
    "--difficulty",
    "easy",
    "--generator",
    "simulated-perfect",
    "-o",
    "job",
]
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def on_a_terminal(words: list[str], cwd: Path, *, stop_at: str = "", **environ: str) -> tuple[int, str]:
    """Run with all three streams on a pseudo-terminal of 100 columns; the exit code and all that it showed.

    `stop_at`: what must be there when SIGINT comes.
    """
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    environment = child_environment(**{"TERM": "xterm-256color", "COLUMNS": "100", **environ})
    process = subprocess.Popen(words, cwd=cwd, env=environment, stdin=follower, stdout=follower, stderr=follower)
    os.close(follower)
    seen = b""
    try:
        while data := os.read(leader, 65536):
            seen += data
            if stop_at and stop_at.encode() in seen:
                process.send_signal(signal.SIGINT)
                stop_at = ""
    except OSError:  # the other end is closed
        pass
    os.close(leader)
    return process.wait(300), seen.decode()


def test_on_a_terminal_the_view_is_live_and_the_story_stays(tmp_path: Path) -> None:
    code, text = on_a_terminal(RUN, tmp_path, NO_COLOR="")
    assert code == 0
    shown = ESCAPE.sub("", text)
    assert shown.startswith("cliploop: starting")
    assert "step 1, attempt 1: rendering" in shown
    assert "━" in shown
    assert "attempt 1, 97 frames: accepted" in shown
    assert "Completed" in shown
    assert "job/video.mp4" in shown
    assert "\x1b[32m" in text
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h") == 1


def test_ctrl_c_while_it_starts_is_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    code, text = on_a_terminal(RUN, tmp_path, stop_at="starting")
    assert code == 130
    assert text.count("\n") == 1
    assert "cliploop: interrupted" in text
    assert list(tmp_path.iterdir()) == []


def test_without_colour_a_terminal_gets_plain_lines(tmp_path: Path) -> None:
    for environ in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        code, text = on_a_terminal(RUN, tmp_path, **environ)
        assert code == 0
        assert "\x1b" not in text
        assert "Completed" in text


def test_a_reader_that_leaves_does_not_stop_the_job(tmp_path: Path) -> None:
    process = subprocess.Popen(
        RUN, cwd=tmp_path, env=child_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline().startswith("Job ")
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait(300) == 0
    assert (tmp_path / "job" / "video.mp4").is_file()


def test_no_standard_output_at_all_does_not_stop_the_job(tmp_path: Path) -> None:
    words = ["sh", "-c", 'exec "$@" >&- 2>&-', "sh", *RUN]
    assert subprocess.run(words, cwd=tmp_path, env=child_environment(), timeout=300, check=False).returncode == 0
    assert (tmp_path / "job" / "video.mp4").is_file()


def test_a_full_output_device_does_not_stop_the_job(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run(
            RUN,
            cwd=tmp_path,
            env=child_environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=300,
            check=False,
        )
    assert ran.returncode == 0
    assert ran.stderr == b""
    assert (tmp_path / "job" / "video.mp4").is_file()


def test_a_hostile_task_is_shown_escaped(tmp_path: Path) -> None:
    prompt = Path(PROMPT).read_text() + "\n\x1b]0;owned\x07 \x1b[2J[bold red]x[/bold red]"
    words = [*CLIPLOOP, "run", "--image", PICTURE, "--prompt", prompt, "--dry-run"]
    code, text = on_a_terminal(words, tmp_path)
    assert code == 0
    assert "\x1b]0;" not in text
    assert "\x1b[2J" not in text
    words = [*words[:-1], "-o", "\x1b[2Jjob", "--generator", "simulated-perfect"]
    code, text = on_a_terminal(words, tmp_path)
    assert code == 0
    assert "\x1b[2J" not in text
    assert "\\x1b[2Jjob/video.mp4" in text


def test_ascii_output_is_no_error(tmp_path: Path) -> None:
    environment = child_environment(PYTHONIOENCODING="ascii", LC_ALL="C")
    ran = subprocess.run(
        [*CLIPLOOP, "worlds", "list"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0
    assert ran.stdout.isascii()
