"""Ctrl-C and its like: state saved, exit 130, and the same command goes on."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.end_to_end.children import Child, command

RUN = ("run", "--world", "maze", "--difficulty", "easy", "--seed", "5", "-o", "job")


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    folder = tmp_path / "said"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_saves_the_job_and_the_same_command_goes_on(
    tmp_path: Path, scratch: Path, number: signal.Signals
) -> None:
    child = Child.start(*RUN, cwd=tmp_path, scratch=scratch)
    child.wait_for("attempt 1")
    child.send(number)
    said = child.end()
    assert said.code == 130
    assert "Interrupted: stopped, everything so far is saved" in said.out
    assert "To go on: cliploop run --world maze --difficulty easy -o job --seed 5" in said.out
    assert "Traceback" not in said.err + said.out
    assert not (tmp_path / "job" / "video.mp4").exists()

    again = command(*RUN, cwd=tmp_path, scratch=scratch)
    assert again.code in (0, 3)
    assert (tmp_path / "job" / "video.mp4").exists()
    undisturbed = command(*RUN[:-1], "other", cwd=tmp_path, scratch=scratch)
    assert undisturbed.code == again.code
    for name in ("video.mp4", "contact-sheet.png"):
        assert (tmp_path / "job" / name).read_bytes() == (tmp_path / "other" / name).read_bytes()


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
