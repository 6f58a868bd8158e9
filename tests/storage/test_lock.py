"""One process at a time."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from orchestrator.errors import BackendMisconfigured
from storage.lock import FolderBusy, locked
from tests.storage.jobs_for_tests import ROOT

HOLDER = """
import sys, time
from pathlib import Path
from storage.lock import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


@contextlib.contextmanager
def held_by_a_child(database: Path) -> Generator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(database)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        try:
            yield holder
        finally:
            holder.send_signal(signal.SIGKILL)


def test_a_second_process_is_refused_and_told_who_works_here(tmp_path: Path) -> None:
    database = tmp_path / "journal.sqlite"
    with (
        held_by_a_child(database) as holder,
        pytest.raises(FolderBusy, match=f"another cliploop is running this folder.*pid {holder.pid}") as refused,
        locked(database),
    ):
        pass
    assert refused.value.pid == holder.pid


def test_the_death_of_the_holder_frees_the_lock(tmp_path: Path) -> None:
    with held_by_a_child(tmp_path / "journal.sqlite"):
        pass
    with locked(tmp_path / "journal.sqlite"):
        assert (tmp_path / "journal.sqlite.lock").read_text() == str(os.getpid())


def test_the_lock_is_free_again_after_the_block_and_after_an_error_in_it(tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), locked(tmp_path / "journal.sqlite"):
            raise ZeroDivisionError
    with locked(tmp_path / "journal.sqlite"):
        pass


def test_the_same_process_cannot_hold_it_twice(tmp_path: Path) -> None:
    with locked(tmp_path / "a"), pytest.raises(FolderBusy), locked(tmp_path / "a"):
        pass


def test_a_holder_whose_name_cannot_be_read_is_unknown_and_holds_all_the_same(tmp_path: Path) -> None:
    with locked(tmp_path / "a"):
        (tmp_path / "a.lock").write_text("")
        with pytest.raises(FolderBusy, match="pid unknown") as refused, locked(tmp_path / "a"):
            pass
    assert refused.value.pid is None


def test_other_folders_are_free(tmp_path: Path) -> None:
    with locked(tmp_path / "one" / "journal.sqlite"), locked(tmp_path / "two" / "journal.sqlite"):
        pass


def test_a_folder_in_place_of_the_lock_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.lock").mkdir()
    with pytest.raises(BackendMisconfigured, match=f"cannot write to {tmp_path}"), locked(tmp_path / "a"):
        pass
