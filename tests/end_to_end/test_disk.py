"""Full disks and folders that cannot be written, made real: kernel limits, a file in the way, another user."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.cliploop.commandline import TASK
from tests.end_to_end.children import Limits, command

RUN = ("run", *TASK, "-o", "job")


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    folder = tmp_path / "said"
    folder.mkdir()
    return folder


@pytest.fixture
def cwd(tmp_path: Path) -> Path:
    folder = tmp_path / "cwd"
    folder.mkdir()
    return folder


@contextlib.contextmanager
def small_disk(folder: Path, size: str) -> Generator[bool]:
    """A tmpfs of that size at the folder, where mounting is permitted."""
    folder.mkdir(exist_ok=True)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], check=False)
    try:
        yield mounted.returncode == 0
    finally:
        if mounted.returncode == 0:
            subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_file_size_limit_before_the_first_effect_leaves_nothing(cwd: Path, scratch: Path) -> None:
    said = command(*RUN, cwd=cwd, scratch=scratch, limits=Limits(file_bytes=4096))
    assert said.code == 2, said
    assert len(said.err.splitlines()) == 1
    assert "free some space" in said.err
    assert list(cwd.iterdir()) == []


def test_a_disk_that_fills_up_during_the_run_waits_and_the_same_command_goes_on(cwd: Path, scratch: Path) -> None:
    said = command(*RUN, cwd=cwd, scratch=scratch, limits=Limits(file_bytes=100_000))
    assert said.code == 4, said
    assert "Waiting (disk)" in said.out
    assert "To go on: cliploop run --image" in said.out
    assert "Traceback" not in said.err
    again = command(*RUN, cwd=cwd, scratch=scratch)
    assert again.code in (0, 3)
    other = command(*RUN[:-1], "other", cwd=cwd, scratch=scratch)
    assert other.code == again.code
    assert (cwd / "job" / "video.mp4").read_bytes() == (cwd / "other" / "video.mp4").read_bytes()


def test_fresh_without_room_for_a_new_job_removes_nothing_of_the_old_one(cwd: Path, scratch: Path) -> None:
    assert command(*RUN, cwd=cwd, scratch=scratch).code in (0, 3)

    def contents() -> dict[str, bytes]:
        files = [path for path in (cwd / "job").rglob("*") if path.is_file() and path.suffix != ".lock"]
        return {str(path): path.read_bytes() for path in files}

    before = contents()
    words = (*RUN, "--fresh", "--seed", "5")
    said = command(*words, cwd=cwd, scratch=scratch, limits=Limits(file_bytes=4096))
    assert said.code == 2, said
    assert len(said.err.splitlines()) == 1
    assert "free some space" in said.err
    assert "--fresh has removed nothing" in said.err
    assert contents() == before
    (cwd / "job" / ".cliploop" / "journal.sqlite").unlink()
    before = contents()
    assert command(*words, cwd=cwd, scratch=scratch, limits=Limits(file_bytes=4096)).code == 2
    assert contents() == before
    assert command(*words, cwd=cwd, scratch=scratch).code in (0, 3)
    assert not (cwd / "job" / ".cliploop" / "fresh").exists()
    assert contents() != before


def test_a_small_file_system_that_fills_up_and_gets_room_again(tmp_path: Path, scratch: Path) -> None:
    disk = tmp_path / "disk"
    with small_disk(disk, "4m") as mounted:
        if not mounted:  # the limit tests above make the same fault without a mount
            return
        filler = disk / "filler"
        room = os.statvfs(disk)
        filler.write_bytes(b"x" * (room.f_bavail * room.f_frsize - 600_000))
        said = command(*RUN, cwd=disk, scratch=scratch)
        assert said.code == 4, said
        assert "Waiting (disk)" in said.out
        filler.unlink()
        again = command(*RUN, cwd=disk, scratch=scratch)
        assert again.code in (0, 3), again
        filler.write_bytes(b"x" * 1000)


def test_a_full_file_system_before_the_first_effect_leaves_nothing(tmp_path: Path, scratch: Path) -> None:
    disk = tmp_path / "disk"
    with small_disk(disk, "1m") as mounted:
        if not mounted:
            return
        with contextlib.suppress(OSError), (disk / "filler").open("wb", buffering=0) as filler:
            while True:
                filler.write(b"x" * 4096)
        said = command(*RUN, cwd=disk, scratch=scratch)
        assert said.code == 2, said
        assert len(said.err.splitlines()) == 1
        assert [path.name for path in disk.iterdir()] == ["filler"]


def test_a_file_where_the_folder_should_be_is_refused(cwd: Path, scratch: Path) -> None:
    (cwd / "job").write_text("mine")
    said = command(*RUN, cwd=cwd, scratch=scratch)
    assert said.code == 2
    assert "job is a file, not a folder" in said.err
    below = command(*RUN[:-1], "job/below/it", cwd=cwd, scratch=scratch)
    assert below.code == 2
    assert "choose another -o" in below.err
    assert (cwd / "job").read_text() == "mine"
    assert [path.name for path in cwd.iterdir()] == ["job"]


def test_a_folder_that_cannot_be_written_is_refused(cwd: Path, scratch: Path) -> None:
    for folder in (cwd, *cwd.parents[:3]):  # a test's folders are private; the child is somebody else
        folder.chmod(0o755)
    cwd.chmod(0o555)
    said = command(*RUN, cwd=cwd, scratch=scratch, limits=Limits(unprivileged=True))
    cwd.chmod(0o755)
    assert said.code == 2, said
    assert len(said.err.splitlines()) == 1
    assert "Permission denied" in said.err
    assert list(cwd.iterdir()) == []


def test_a_picture_that_may_not_be_read_is_refused(cwd: Path, scratch: Path) -> None:
    for folder in (cwd, *cwd.parents[:3]):
        folder.chmod(0o755)
    secret = cwd / "secret.png"
    secret.write_bytes(b"x")
    secret.chmod(0)
    words = ("run", "--image", "secret.png", "--prompt", "Move.")
    said = command(*words, cwd=cwd, scratch=scratch, limits=Limits(unprivileged=True))
    assert said.code == 2
    assert "secret.png: cannot be read" in said.err
