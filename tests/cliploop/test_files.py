"""Files as the user names them: a limit, no pipe, no device; and what cannot become a folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cliploop.files import FileUnusable, folder_fault, read_regular


def fault(path: Path) -> tuple[str, str]:
    with pytest.raises(FileUnusable) as caught:
        read_regular(path, 10)
    return caught.value.fault, str(caught.value)


def test_a_regular_file_is_read_up_to_the_limit(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * 10)
    assert read_regular(file, 10) == b"x" * 10
    file.write_bytes(b"x" * 11)
    assert fault(file)[0] == "too_large"


def test_what_is_no_regular_file_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert fault(tmp_path / "pipe") == ("not_a_file", "not a regular file")
    assert fault(Path("/dev/zero")) == ("not_a_file", "not a regular file")
    assert fault(tmp_path) == ("not_a_file", "a folder")
    assert fault(tmp_path / "none") == ("missing_file", "no such file")
    assert fault(tmp_path / ("x" * 5000))[0] == "unreadable_file"
    assert fault(Path("a\0b"))[0] == "unreadable_file"


def test_a_file_that_tells_no_size_is_read_no_further_than_the_limit() -> None:
    endless = Path("/proc/self/smaps")
    if endless.exists():
        assert endless.stat().st_size == 0
        assert fault(endless)[0] == "too_large"


def test_what_cannot_become_a_folder_is_said(tmp_path: Path) -> None:
    file, link = tmp_path / "file", tmp_path / "link"
    file.touch()
    link.symlink_to(tmp_path / "nowhere")
    assert folder_fault(tmp_path) is None
    assert folder_fault(tmp_path / "a" / "b") is None
    assert folder_fault(file / "below") == f"{file} is a file, not a folder"
    assert folder_fault(link) == f"{link} is a link to nothing"
