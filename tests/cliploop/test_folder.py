"""Whose folder it is, and what --fresh removes there: what cliploop made, and nothing else."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from cliploop.folder import (
    REHEARSAL,
    JobFolder,
    clear_rehearsal,
    finished_files,
    forget,
    list_files,
    refuse_foreign,
    tidy_if_refused,
    written_files,
)
from orchestrator.errors import BackendMisconfigured, CliploopError, TaskRejected
from storage.artifacts import LocalArtifacts
from storage.database import Database
from storage.lock import locked


@pytest.fixture
def ours(tmp_path: Path) -> JobFolder:
    """A job's folder with its lock, its journal, an artifact and two exported files."""
    folder = JobFolder(tmp_path / "job")
    with locked(folder.database):
        Database(folder.database).close()
        LocalArtifacts(folder.artifacts).put(b"frame", ".png")
    list_files(folder, ["video.mp4", "steps/1/attempt-1.mp4"])
    for name in ("video.mp4", "steps/1/attempt-1.mp4"):
        write(folder.path / name, "ours")
    return folder


def write(path: Path, text: str = "mine") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def foreign_database(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path)
    connection.execute("create table precious(x)")
    connection.commit()
    connection.close()


def tables(path: Path) -> list[str]:
    connection = sqlite3.connect(path)
    names = [row[0] for row in connection.execute("select name from sqlite_master")]
    connection.close()
    return names


def test_a_memory_folder_that_cliploop_did_not_make_does_not_make_the_files_beside_it_ours(
    tmp_path: Path,
) -> None:
    (tmp_path / ".cliploop").mkdir()
    refuse_foreign(JobFolder(tmp_path))
    write(tmp_path / "video.mp4")
    with pytest.raises(TaskRejected, match=r"holds video\.mp4 that cliploop did not make"):
        refuse_foreign(JobFolder(tmp_path))


@pytest.mark.parametrize("name", ["artifacts/thesis.pdf", "journal.sqlite", "mine"])
def test_a_memory_folder_with_somebody_elses_files_is_refused(tmp_path: Path, name: str) -> None:
    write(tmp_path / ".cliploop" / name)
    with pytest.raises(TaskRejected, match=r"holds \.cliploop that cliploop did not make"):
        refuse_foreign(JobFolder(tmp_path))


def test_a_database_of_another_program_is_refused_and_kept(tmp_path: Path, ours: JobFolder) -> None:
    foreign = JobFolder(tmp_path / "foreign")
    foreign_database(foreign.database)
    with pytest.raises(TaskRejected, match="did not make"):
        refuse_foreign(foreign)
    ours.database.unlink()
    foreign_database(ours.database)
    with pytest.raises(BackendMisconfigured, match="database of another program"):
        forget(ours)
    assert tables(ours.database) == tables(foreign.database) == ["precious"]
    assert (ours.path / "video.mp4").read_text() == "ours"


@pytest.mark.parametrize("journal", ["gone", "garbage", "no lock"])
def test_a_folder_of_ours_stays_ours_when_its_journal_is_damaged_or_copied(ours: JobFolder, journal: str) -> None:
    if journal == "gone":
        ours.database.unlink()
    elif journal == "garbage":
        ours.database.write_bytes(b"garbage" * 2000)
    else:
        (ours.memory / "journal.sqlite.lock").unlink()
    refuse_foreign(ours)
    forget(ours)
    assert not ours.database.exists()


def test_the_mark_is_in_the_journal_itself_before_anything_else_is(tmp_path: Path) -> None:
    folder = JobFolder(tmp_path)
    database = Database(folder.database)
    try:
        assert folder.is_ours  # though all else is still in the write-ahead log
    finally:
        database.close()


def test_fresh_removes_what_a_job_made_and_keeps_everything_else(ours: JobFolder) -> None:
    mine = [
        write(ours.path / "steps" / "9" / "attempt-9.mp4"),
        write(ours.path / "steps" / "1" / "notes.txt"),
        write(ours.artifacts / "thesis.pdf"),
        write(ours.scratch / "notes.txt"),
        write(ours.memory / "mine"),
    ]
    write(ours.scratch / "part", "ours")
    forget(ours)
    left = {path for path in ours.path.rglob("*") if path.is_file()}
    assert left == {*mine, ours.memory / "journal.sqlite.lock"}


def test_a_list_that_was_tampered_with_removes_nothing_outside(tmp_path: Path, ours: JobFolder) -> None:
    outside = write(tmp_path / "outside.mp4")
    names = ["../outside.mp4", "steps/1/../../../outside.mp4", str(outside), 7]
    ours.listed.write_text(json.dumps(names))
    ours.finished.write_text(json.dumps({"id": "x", "files": dict.fromkeys(map(str, names), "0")}))
    assert written_files(ours) == {"video.mp4", "trajectory.json", "contact-sheet.png"}
    forget(ours)
    assert outside.read_text() == "mine"
    ours.finished.write_text(json.dumps({"id": "x", "files": {"../outside.mp4": "0"}}))
    assert finished_files(ours, "x") is None


def test_what_stands_in_the_way_of_the_files_is_named(ours: JobFolder) -> None:
    ours.finished.mkdir()
    with pytest.raises(BackendMisconfigured, match=r"cannot remove .*finished\.json.*move it away"):
        forget(ours)
    ours.listed.unlink()
    ours.listed.mkdir()
    with pytest.raises(CliploopError, match=r"files\.json is a folder.*move it away"):
        list_files(ours, ["steps/2/attempt-1.mp4"])


@pytest.mark.parametrize("name", ["a\0b", "file/x/y"])
def test_a_path_that_cannot_be_a_folder_is_refused(tmp_path: Path, name: str) -> None:
    write(tmp_path / "file")
    with pytest.raises(TaskRejected, match="choose another -o"):
        refuse_foreign(JobFolder(tmp_path / name))


@pytest.mark.parametrize("name", ["x" * 300, "/".join(["y" * 200] * 30)])
def test_a_name_that_is_too_long_is_refused_in_words(tmp_path: Path, name: str) -> None:
    folder = JobFolder(tmp_path / name)
    refuse_foreign(folder)
    too_long = pytest.raises(BackendMisconfigured, match="File name too long")
    with too_long, tidy_if_refused(folder), locked(folder.database):
        pass
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_rehearsal_left_is_removed_and_nothing_else(ours: JobFolder, tmp_path: Path) -> None:
    def left() -> JobFolder:
        trial = JobFolder(ours.memory / REHEARSAL)
        Database(trial.database).close()
        LocalArtifacts(trial.artifacts).put(b"frame", ".png")
        return trial

    trial = left()
    clear_rehearsal(ours)
    assert not trial.path.exists()
    assert ours.database.exists()
    mine = write(left().path / "notes.txt")
    clear_rehearsal(ours)
    assert [path for path in trial.path.rglob("*") if path.is_file()] == [mine]
    mine.unlink()
    trial.path.rmdir()
    trial.path.symlink_to(ours.path)
    clear_rehearsal(ours)
    assert (ours.path / "video.mp4").exists()


def test_a_link_to_nothing_is_no_folder(tmp_path: Path) -> None:
    link = tmp_path / "job"
    link.symlink_to(tmp_path / "nowhere")
    with pytest.raises(TaskRejected, match="job is a link to nothing; choose another -o"):
        refuse_foreign(JobFolder(link))
