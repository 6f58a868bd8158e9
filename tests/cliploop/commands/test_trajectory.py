"""A job's story is shown from its folder alone, also where nothing can be written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cliploop.commands.trajectory import find, read_trajectory
from cliploop.folder import JobFolder
from storage.database import Database
from storage.jobs import create_job
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
