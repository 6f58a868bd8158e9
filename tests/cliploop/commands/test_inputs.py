"""Pictures and prompts as named on the command line: what is no file is said, with the remedy."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cliploop.commands.inputs import MAX_PROMPT_BYTES, read_picture, read_prompt
from orchestrator.errors import TaskRejected


def refused(text: str, *, picture: bool = False) -> TaskRejected:
    with pytest.raises(TaskRejected) as caught:
        (read_picture if picture else read_prompt)(text)
    assert "\n" not in str(caught.value)
    return caught.value


def test_a_prompt_is_a_sentence_or_a_file(tmp_path: Path) -> None:
    file = tmp_path / "prompt.txt"
    file.write_text("\ufeffMove the circle.\n", encoding="utf-8")
    assert read_prompt(str(file)) == "Move the circle."
    assert read_prompt("  Move the circle. ") == "Move the circle."
    assert read_prompt("Move left and/or right, then stop") == "Move left and/or right, then stop"
    assert read_prompt("word " * 2000).startswith("word word")


@pytest.mark.parametrize("text", ["prompt.txt", "no/such/file", "/tmp/nowhere/prompt", "my task.TXT", "./x"])
def test_a_missing_prompt_file_is_not_taken_for_a_task(text: str) -> None:
    error = refused(text)
    assert error.reason == "missing_file"
    assert text in str(error)


@pytest.mark.parametrize("text", ["", "   ", "\n\t"])
def test_an_empty_prompt_is_refused(tmp_path: Path, text: str) -> None:
    assert refused(text).reason == "empty_prompt"
    file = tmp_path / "prompt.txt"
    file.write_text(text)
    assert refused(str(file)).reason == "empty_prompt"


def test_a_prompt_that_is_no_text_file_is_refused(tmp_path: Path) -> None:
    assert refused(str(tmp_path)).reason == "not_a_file"
    binary = tmp_path / "prompt.bin"
    binary.write_bytes(b"\xff\xfe\x00")
    assert refused(str(binary)).reason == "not_text"
    binary.write_bytes(b"Move\0the circle.")
    assert refused(str(binary)).reason == "not_text"
    assert refused("Move\0the circle.").reason == "not_text"
    huge = tmp_path / "huge.txt"
    huge.write_text("x" * (MAX_PROMPT_BYTES + 1))
    assert refused(str(huge)).reason == "prompt_too_long"


def test_a_picture_is_a_regular_file(tmp_path: Path) -> None:
    file = tmp_path / "picture.png"
    file.write_bytes(b"anything")
    assert read_picture(str(file)) == b"anything"
    assert refused(str(tmp_path / "missing.png"), picture=True).reason == "missing_file"
    assert refused(str(tmp_path), picture=True).reason == "not_a_file"
    assert refused(str(file / "below"), picture=True).reason == "unreadable_file"
    assert refused("x" * 5000, picture=True).reason == "unreadable_file"
    assert refused("/dev/zero", picture=True).reason == "not_a_file"
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert refused(str(pipe), picture=True).reason == "not_a_file"


def test_a_huge_file_is_refused_unread(tmp_path: Path) -> None:
    file = tmp_path / "huge.png"
    with file.open("wb") as hole:
        hole.truncate(10**12)
    assert refused(str(file), picture=True).reason == "too_large"


def test_a_hostile_name_is_shown_escaped(tmp_path: Path) -> None:
    error = refused(str(tmp_path / "\x1b[31mred"), picture=True)
    assert "\x1b" not in str(error)


def test_a_prompt_with_bytes_that_are_no_text_is_refused() -> None:
    error = refused("Move the circle.\udcff")
    assert error.reason == "not_text"
    assert "not UTF-8 text" in str(error)
