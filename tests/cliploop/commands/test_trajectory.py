"""A job's story is shown from its folder alone, also where nothing can be written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cliploop.commands.trajectory import find, read_trajectory
from cliploop.folder import JobFolder
from orchestrator.errors import JobNotFound
from storage.database import Database
from storage.jobs import create_job
from storage.journal import SqlJournal
from storage.lock import locked
from tests.cliploop.commandline import command
from tests.storage.jobs_for_tests import JOB, POLICY, TASK


def nothing_can_be_written(_path: object, mode: int) -> bool:
    """What `os.access` says to anybody but root."""
    return mode != os.W_OK


def test_a_job_is_shown_from_a_folder_that_can_only_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = JobFolder(tmp_path / "job")
    with Database(folder.database) as database:
        create_job(database, JOB, TASK, POLICY)
    before = sorted(tmp_path.rglob("*"))
    monkeypatch.setattr(os, "access", nothing_can_be_written)
    monkeypatch.setattr(Database, "write", None)
    trajectory, state = read_trajectory(find(str(tmp_path / "job")))
    assert (trajectory.id, state.state) == (JOB, "queued")
    assert sorted(tmp_path.rglob("*")) == before


def test_a_job_that_nobody_runs_is_stopped_and_one_whose_lock_is_held_is_running(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = JobFolder(tmp_path / "job")
    with locked(folder.database):
        with Database(folder.database) as database:
            create_job(database, JOB, TASK, POLICY)
            SqlJournal(database, JOB).set_state("running")
        assert folder.in_use
        said = command(capsys, "trajectory", "show", str(folder.path))
        assert said.out.splitlines()[0].endswith(": running")
        assert command(capsys, "trajectory", "show", str(folder.path), "--json").json["under_way"] is True
    assert not folder.in_use
    said = command(capsys, "trajectory", "show", str(folder.path))
    assert said.out.splitlines()[0].endswith(": stopped; the same command goes on")
    assert command(capsys, "trajectory", "show", str(folder.path), "--json").json["under_way"] is False


def test_a_job_is_found_by_its_id_whatever_its_folder_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    named, other = JobFolder(Path("out/level")), JobFolder(Path("out/none"))
    with Database(named.database) as database:
        create_job(database, "beefbeefbeef", TASK, POLICY)
    other.memory.mkdir(parents=True)
    assert find("beefbee").path == named.path
    other.database.touch()
    other.finished.write_text('{"id": "0123456789ab", "files": {}}')
    assert find("0123456789ab").path == other.path
    other.finished.unlink()
    (other.path / "trajectory.json").write_text('{\n  "schema_version": 1,\n  "id": "beefbeef0000"')
    assert find("beefbeef0").path == other.path
    with pytest.raises(JobNotFound, match="several ids"):
        find("beefbeef")
