"""Ctrl-C and its like: state saved, exit 130, and the same command goes on."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cliploop.commands.run import interruptible
from tests.cliploop.commandline import TASK, Said, child_environment
from tests.end_to_end.children import Child, command

RUN = ("run", *TASK, "-o", "job")
SHORT = "[defaults]\nfirst_step_seconds = 2\nstep_seconds = 2\n"


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    folder = tmp_path / "said"
    folder.mkdir()
    (tmp_path / "cliploop.toml").write_text(SHORT)
    return folder


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that nobody stopped."""
    cwd = tmp_path_factory.mktemp("undisturbed")
    (cwd / "cliploop.toml").write_text(SHORT)
    scratch = tmp_path_factory.mktemp("said")
    assert command(*RUN, cwd=cwd, scratch=scratch).code in (0, 3)
    return cwd / "job"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_saves_the_job_and_the_same_command_goes_on(
    tmp_path: Path, scratch: Path, undisturbed: Path, number: signal.Signals
) -> None:
    child = Child.start(*RUN, cwd=tmp_path, scratch=scratch)
    child.wait_for("attempt 1")
    child.send(number)
    said = child.end()
    assert said.code == 130
    assert "Interrupted: stopped, everything so far is saved" in said.out
    assert f"To go on: {shlex.join(['cliploop', *RUN])}" in said.out
    assert "Traceback" not in said.err + said.out
    assert not (tmp_path / "job" / "video.mp4").exists()

    again = command(*RUN, cwd=tmp_path, scratch=scratch)
    assert again.code in (0, 3)
    assert (tmp_path / "job" / "video.mp4").exists()
    for name in ("video.mp4", "contact-sheet.png"):
        assert (tmp_path / "job" / name).read_bytes() == (undisturbed / name).read_bytes()


def test_with_json_an_interrupt_is_one_object(tmp_path: Path, scratch: Path) -> None:
    child = Child.start(*RUN, "--json", cwd=tmp_path, scratch=scratch)
    child.wait_for("attempt 1")
    child.send(signal.SIGINT)
    said = child.end()
    assert said.code == said.json["exit_code"] == 130
    assert said.json["state"] == "interrupted"
    assert said.json["resume"].startswith("cliploop run ")


def disturbed(cwd: Path, sign: str, number: signal.Signals) -> Said:
    """The job as a process of its own; from the `sign` on it gets that signal every few milliseconds."""
    out, err = cwd / "out", cwd / "err"
    words = [sys.executable, "-m", "cliploop.cli", *RUN, "--json"]
    with out.open("w") as stdout, err.open("w") as stderr:
        process = subprocess.Popen(words, cwd=cwd, env=child_environment(), stdout=stdout, stderr=stderr)
        while process.poll() is None:
            if sign in out.read_text() + err.read_text():
                process.send_signal(number)
            time.sleep(0.005)
    return Said(process.returncode, out.read_text(), err.read_text())


def test_signals_on_the_heels_of_the_first_change_nothing(tmp_path: Path) -> None:
    (tmp_path / "cliploop.toml").write_text(SHORT)
    said = disturbed(tmp_path, "attempt 1", signal.SIGINT)
    assert said.code == said.json["exit_code"] == 130
    assert said.json["state"] == "interrupted"
    assert "Traceback" not in said.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_after_the_result_changes_neither_words_nor_code(
    undisturbed: Path, number: signal.Signals
) -> None:
    said = disturbed(undisturbed.parent, "\n}\n", number)
    assert said.json["exit_code"] == said.code
    assert said.code in (0, 3)
    assert "Traceback" not in said.err
    assert "nterrupted" not in said.err


def test_a_hangup_that_nohup_ignores_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interruptible():
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_second_run_of_the_same_folder_is_told_to_wait(tmp_path: Path, scratch: Path) -> None:
    child = Child.start(*RUN, cwd=tmp_path, scratch=scratch)
    child.wait_for("attempt 1")
    second = command(*RUN, cwd=tmp_path, scratch=scratch)
    child.send(signal.SIGTERM)
    assert child.end().code == 130
    assert second.code == 2
    assert "another cliploop is running this folder" in second.err
    assert len(second.err.splitlines()) == 1


SWALLOWED = """
import os, signal, sys
import cliploop.cli

class Swallows:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            try:
                os.kill(os.getpid(), signal.SIGINT)
                for _ in range(10_000):
                    pass
            except KeyboardInterrupt:
                pass

finder = Swallows()
sys.meta_path.insert(0, finder)
name, sys.argv[1:] = sys.argv[1], sys.argv[2:]
Swallows.find_spec.__globals__["sys"] = type("Names", (), {"argv": ["", name]})
cliploop.cli.main()
"""


@pytest.mark.parametrize("module", ["cliploop.app", "cliploop.commands.run", "media.frames"])
def test_ctrl_c_that_a_module_swallows_while_it_loads_is_not_lost(tmp_path: Path, module: str) -> None:
    words = ["run", "--world", "maze", "--difficulty", "easy", "-o", "job"]
    ran = subprocess.run(
        [sys.executable, "-c", SWALLOWED, module, *words],
        cwd=tmp_path, env=child_environment(), capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert ran.returncode == 130, ran.stderr
    assert ran.stderr.count("\n") == 1
    assert "interrupted" in ran.stderr
    assert list(tmp_path.iterdir()) == []
