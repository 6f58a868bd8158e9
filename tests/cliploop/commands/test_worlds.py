"""`cliploop worlds` and `doctor`: tasks as files, worlds that agree with themselves, a machine that can."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cliploop.commandline import command
from worlds.catalog import WORLDS


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.chdir(tmp_path)


def test_every_world_is_listed_with_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    said = command(capsys, "worlds", "list", "--json")
    assert [each["name"] for each in said.json["worlds"]] == list(WORLDS)
    assert all(each["example"] for each in said.json["worlds"])


def test_samples_are_files_that_run_takes_and_the_same_again(capsys: pytest.CaptureFixture[str]) -> None:
    for folder in ("one", "two"):
        words = ("worlds", "sample", "maze", "--difficulty", "easy", "--seed", "3", "--count", "2", "-o", folder)
        assert command(capsys, *words).code == 0
    names = sorted(str(path.relative_to("one")) for path in Path("one").rglob("*") if path.is_file())
    assert names == [f"maze-easy-{seed}/{name}" for seed in (3, 4) for name in ("first_frame.png", "prompt.txt")]
    assert all(Path("one", name).read_bytes() == Path("two", name).read_bytes() for name in names)
    task = ("--image", "one/maze-easy-3/first_frame.png", "--prompt", "one/maze-easy-3/prompt.txt")
    by_files = command(capsys, "run", *task, "--dry-run", "--json")
    by_name = command(
        capsys, "run", "--world", "maze", "--difficulty", "easy", "--seed", "3", "--dry-run", "--json"
    )
    assert by_files.json["policy"]["canvas"] == by_name.json["policy"]["canvas"]


def test_a_folder_that_cannot_be_written_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    Path("taken").write_text("mine")
    said = command(capsys, "worlds", "sample", "maze", "-o", "taken")
    assert said.code == 2
    assert "taken" in said.err


def test_a_world_is_verified(capsys: pytest.CaptureFixture[str]) -> None:
    said = command(capsys, "worlds", "verify", "hanoi", "--seeds", "1", "--json")
    assert (said.code, said.json["ok"], said.json["faults"]) == (0, True, [])


def test_the_doctor_finds_this_machine_able(capsys: pytest.CaptureFixture[str]) -> None:
    said = command(capsys, "doctor", "--json")
    assert said.code == 0, said.json
    assert {each["name"] for each in said.json["checks"]} >= {"python", "packages", "sqlite", "encoder", "disk"}


def test_the_doctor_names_what_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    Path("cliploop.toml").write_text("[defaults]\ngenerator = 'nobody'\n")
    said = command(capsys, "doctor")
    assert said.code == command(capsys, "run", "--world", "maze").code == 2
    assert "FAIL settings" in said.out
    assert "nobody" in said.out


def test_the_doctor_and_version_say_which_cliploop_this_is(capsys: pytest.CaptureFixture[str]) -> None:
    said = command(capsys, "--version")
    assert (said.code, said.err) == (0, "")
    assert re.fullmatch(r"cliploop \d+\.\d+\.\d+\n", said.out)
    assert f"ok   {said.out.split()[0]:12} {said.out.split()[1]}\n" in command(capsys, "doctor").out
