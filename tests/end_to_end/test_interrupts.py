"""Ctrl-C and its like: state saved, exit 130, and the same command goes on."""

from __future__ import annotations

import shlex
import signal
from pathlib import Path

import pytest

from tests.cliploop.commandline import TASK
from tests.end_to_end.children import Child, command

RUN = ("run", *TASK, "-o", "job")
SHORT = "[defaults]\nfirst_step_seconds = 1\nstep_seconds = 1\n"


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


def test_a_second_run_of_the_same_folder_is_told_to_wait(tmp_path: Path, scratch: Path) -> None:
    child = Child.start(*RUN, cwd=tmp_path, scratch=scratch)
    child.wait_for("attempt 1")
    second = command(*RUN, cwd=tmp_path, scratch=scratch)
    child.send(signal.SIGTERM)
    assert child.end().code == 130
    assert second.code == 2
    assert "another cliploop is running this folder" in second.err
    assert len(second.err.splitlines()) == 1
