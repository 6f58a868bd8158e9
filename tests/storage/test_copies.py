"""Local copies: bounded, the longest unused go first, none is lost to who was just given it."""

from __future__ import annotations

import fcntl
import os
import shutil
import threading
import time
from pathlib import Path

from storage.artifacts import key_of
from storage.copies import IN_USE_SECONDS, Copies


def unused(path: Path, seconds: float) -> None:
    """It was used last so long ago."""
    changed_at = path.stat().st_mtime
    os.utime(path, (time.time() - seconds, changed_at))


def test_the_longest_unused_copies_go_when_there_are_too_many_bytes(tmp_path: Path) -> None:
    copies = Copies(tmp_path, most_bytes=3000)
    paths = [copies.keep(bytes([number]) * 1000, ".png") for number in range(3)]
    for path, hours in zip(paths, (2, 4, 3), strict=True):
        unused(path, hours * 3600)
    new = copies.keep(b"n" * 1500, ".png")
    assert {path.name for path in tmp_path.glob("*.png")} == {paths[0].name, new.name}


def test_asking_for_a_copy_keeps_it_and_finding_it_changes_nothing_else(tmp_path: Path) -> None:
    copies = Copies(tmp_path, most_bytes=2000)
    old, other = (copies.keep(bytes([number]) * 1000, ".png") for number in range(2))
    for path in (old, other):
        unused(path, 7200)
    before = old.stat().st_mtime_ns
    assert copies.find(old.name) == old
    assert old.stat().st_mtime_ns == before
    copies.keep(b"n" * 1000, ".png")
    assert old.exists()
    assert not other.exists()


def test_what_was_handed_out_a_moment_ago_stays_even_beyond_the_limit(tmp_path: Path) -> None:
    copies = Copies(tmp_path, most_bytes=1)
    paths = [copies.keep(bytes([number]) * 1000, ".png") for number in range(3)]
    assert all(path.exists() for path in paths)
    for path in paths:
        unused(path, IN_USE_SECONDS + 60)
    with paths[0].open("rb") as reader:
        copies.shrink(0)
        assert copies.keys() == []
        assert reader.read() == b"\0" * 1000


def test_a_damaged_copy_is_none(tmp_path: Path) -> None:
    copies = Copies(tmp_path)
    path = copies.keep(b"frame", ".png")
    path.write_bytes(b"fxame")
    assert copies.find(path.name) is None
    assert copies.keep(b"frame", ".png").read_bytes() == b"frame"


def test_dropping_is_for_good_and_of_what_is_not_there_no_error(tmp_path: Path) -> None:
    copies = Copies(tmp_path)
    path = copies.keep(b"frame", ".png")
    copies.drop([path.name, key_of(b"another", ".png")])
    assert copies.find(path.name) is None


def test_nothing_is_removed_while_another_process_is_handing_out(tmp_path: Path) -> None:
    copies = Copies(tmp_path)
    path = copies.keep(b"frame", ".png")
    unused(path, IN_USE_SECONDS + 60)
    with (tmp_path / ".lock").open("rb") as other:
        fcntl.flock(other.fileno(), fcntl.LOCK_SH)
        shrinking = threading.Thread(target=copies.shrink, args=(0,))
        shrinking.start()
        shrinking.join(0.3)
        assert shrinking.is_alive()
        assert copies.find(path.name) == path  # in use from now on
    shrinking.join()
    assert path.exists()


def test_a_folder_that_somebody_removed_is_made_again(tmp_path: Path) -> None:
    root = tmp_path / "copies"
    copies = Copies(root)
    path = copies.keep(b"frame", ".png")
    shutil.rmtree(root)
    assert copies.keys() == []
    assert copies.find(path.name) is None
    shutil.rmtree(root)
    copies.shrink(0)
    shutil.rmtree(root)
    copies.drop([path.name])
    shutil.rmtree(root)
    assert copies.keep(b"frame", ".png").read_bytes() == b"frame"
