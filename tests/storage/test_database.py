"""Opening a database: ours, whole, of this version, with room; and one writer at a time."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from orchestrator.errors import BackendMisconfigured, BackendUnavailable, JobWaiting
from orchestrator.records import Plan
from storage import database as module
from storage.database import Database, remove
from storage.jobs import create_job, load_job, stored_jobs
from storage.journal import SqlJournal
from storage.sql import damaged
from storage.tables import CORE_VERSION, SCHEMA_VERSION
from tests.storage.jobs_for_tests import JOB, POLICY, ROOT, TASK, a_database, child, never, record

OPEN = """
import sys
from pathlib import Path
from orchestrator.errors import CliploopError
from storage.database import Database
LIMIT
try:
    Database(Path(sys.argv[1]) / "journal.sqlite").close()
except CliploopError as error:
    print(type(error).__name__, error)
"""
FILL = """
import sys
from pathlib import Path
from orchestrator.errors import JobWaiting
from tests.storage.jobs_for_tests import *
database = a_database(Path(sys.argv[1]))
LIMIT
journal = SqlJournal(database, JOB)
for number in range(20_000):
    try:
        journal.once(f"fill/{number}", {}, Plan, lambda: plan("x" * 5000))
    except JobWaiting as stop:
        print(stop.reason, number, stop)
        journal.wait(stop)
        break
"""


def limit(num_bytes: int) -> str:
    return f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({num_bytes}, {num_bytes}))"


def raw(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None)


def one_line(error: BaseException) -> str:
    assert "\n" not in str(error)
    return str(error)


def refused(path: Path) -> str:
    with pytest.raises(BackendMisconfigured) as error:
        Database(path)
    return one_line(error.value)


def test_a_new_database_uses_a_write_ahead_log_and_knows_its_version(tmp_path: Path) -> None:
    with a_database(tmp_path) as database, database.read() as connection:
        pragmas = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()
            for name in ("journal_mode", "synchronous", "foreign_keys", "user_version")
        }
    assert pragmas == {"journal_mode": "wal", "synchronous": 1, "foreign_keys": 1, "user_version": CORE_VERSION}


def test_synchronous_full_can_be_chosen(tmp_path: Path) -> None:
    with Database(tmp_path / "a", synchronous="FULL") as database, database.read() as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar_one() == 2


def test_a_database_is_opened_again_with_what_it_holds(tmp_path: Path) -> None:
    a_database(tmp_path).close()
    with Database(tmp_path / "journal.sqlite") as database:
        assert [job.id for job in stored_jobs(database)] == [JOB]


def test_several_processes_may_make_the_same_database_at_once(tmp_path: Path) -> None:
    command = [sys.executable, "-c", OPEN.replace("LIMIT", ""), str(tmp_path)]
    makers = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) for _ in range(3)]
    assert [maker.communicate(timeout=60)[0] for maker in makers] == [b""] * 3


def test_a_file_that_is_no_database_is_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    path.write_bytes(b"this was never a database, only text that is long enough to look like a page" * 50)
    message = refused(path)
    assert f"{path} is damaged (file is not a database)" in message
    assert "--fresh" in message
    assert path.read_bytes().startswith(b"this was never")


@pytest.mark.parametrize("kept_bytes", [4096, 6000])
def test_a_truncated_database_is_refused_in_one_line(tmp_path: Path, kept_bytes: int) -> None:
    a_database(tmp_path).close()
    path = tmp_path / "journal.sqlite"
    path.write_bytes(path.read_bytes()[:kept_bytes])
    with pytest.raises(BackendMisconfigured, match="is damaged") as error, Database(path) as database:
        SqlJournal(database, JOB)
    one_line(error.value)


def test_pages_of_noise_are_reported_as_damage_when_read(tmp_path: Path) -> None:
    a_database(tmp_path).close()
    path = tmp_path / "journal.sqlite"
    content = bytearray(path.read_bytes())
    content[4096:] = os.urandom(len(content) - 4096)
    path.write_bytes(content)
    with pytest.raises(BackendMisconfigured, match=r"is damaged.*--fresh"), Database(path) as database:
        stored_jobs(database)


def test_a_newer_schema_says_upgrade_and_an_older_one_start_over(tmp_path: Path) -> None:
    a_database(tmp_path).close()
    path = tmp_path / "journal.sqlite"
    for version, remedy in ((SCHEMA_VERSION + 1, "upgrade cliploop"), (-1, "start over with --fresh")):
        with raw(path) as connection:
            connection.execute(f"PRAGMA user_version = {version}")
        connection.close()
        message = refused(path)
        assert f"schema version {version}" in message
        assert remedy in message


def test_the_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    with raw(path) as connection:
        connection.execute("CREATE TABLE bookmarks (url TEXT)")
    connection.close()
    before = path.read_bytes()
    assert "is a database of another program" in refused(path)
    assert path.read_bytes() == before


def test_an_empty_file_becomes_a_database(tmp_path: Path) -> None:
    (tmp_path / "journal.sqlite").touch()
    with a_database(tmp_path) as database:
        assert load_job(database, JOB).id == JOB


def test_a_folder_in_place_of_the_file_and_a_file_in_place_of_the_folder_are_named(tmp_path: Path) -> None:
    (tmp_path / "journal.sqlite").mkdir()
    assert f"cannot write to {tmp_path}/journal.sqlite" in refused(tmp_path / "journal.sqlite")
    (tmp_path / "out").write_text("a file")
    assert f"cannot make the folder {tmp_path}/out" in refused(tmp_path / "out" / "journal.sqlite")


def test_its_version_changes_with_every_commit_of_anybody_and_with_nothing_else(tmp_path: Path) -> None:
    with a_database(tmp_path) as ours, Database(ours.path) as theirs:
        before = ours.version()
        with ours.read() as connection:
            connection.exec_driver_sql("SELECT count(*) FROM jobs")
        assert ours.version() == before
        seen = {before}
        for number, writer in enumerate((ours, theirs, ours, theirs)):
            with writer.write() as connection:
                connection.exec_driver_sql(f"UPDATE jobs SET message = '{number}'")
                coming = writer.version(connection)
            assert writer.version() == coming
            assert ours.version() not in seen
            seen.add(ours.version())


def test_its_changes_are_those_of_anybody_and_of_this_process_too(tmp_path: Path) -> None:
    with a_database(tmp_path) as database, Database(database.path) as other:
        quiet = database.changes()
        load_job(database, JOB)
        assert database.changes() == quiet
        for writer in (database, other):
            record(SqlJournal(writer, JOB), f"key-of-{id(writer)}")
            assert database.changes() != quiet
            quiet = database.changes()
        with database.write() as connection:
            connection.exec_driver_sql("UPDATE jobs SET message = 'undone'")
            connection.rollback()
        assert database.changes() == quiet


def test_a_writer_holds_the_lock_from_its_first_moment(tmp_path: Path) -> None:
    with a_database(tmp_path) as database, database.write():
        other = sqlite3.connect(database.path, isolation_level=None, timeout=0)
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("BEGIN IMMEDIATE")
        other.close()


def test_a_database_that_stays_locked_is_an_error_to_try_again_later(tmp_path: Path) -> None:
    a_database(tmp_path).close()
    other = raw(tmp_path / "journal.sqlite")
    with Database(tmp_path / "journal.sqlite", busy_seconds=0.05) as database:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(BackendUnavailable, match=r"stayed locked.*again later"), database.write():
            pass
        other.execute("ROLLBACK")
        with database.write():
            pass
    other.close()


def test_an_error_inside_a_transaction_undoes_it(tmp_path: Path) -> None:
    with a_database(tmp_path) as database:
        with contextlib.suppress(ZeroDivisionError), database.write() as connection:
            connection.exec_driver_sql("DELETE FROM entries")
            raise ZeroDivisionError
        assert len(SqlJournal(database, JOB).entries()) == 1


def test_no_room_for_a_new_database_is_the_callers_to_fix(tmp_path: Path) -> None:
    done = child(OPEN.replace("LIMIT", limit(8192)), tmp_path)
    assert done.stdout.startswith("BackendMisconfigured the disk takes no more into"), done
    Database(tmp_path / "journal.sqlite").close()  # with room again, the leftover does not stand in the way


def test_no_room_in_an_existing_database_is_waited_for_and_nothing_is_lost(tmp_path: Path) -> None:
    a_database(tmp_path).close()
    done = child(OPEN.replace("LIMIT", limit(0)), tmp_path)
    assert done.stdout.startswith("JobWaiting the disk takes no more into"), done
    with Database(tmp_path / "journal.sqlite") as database:
        assert load_job(database, JOB).state.state == "queued"


def test_a_file_size_limit_during_the_run_waits_for_the_disk_and_loses_nothing(tmp_path: Path) -> None:
    fill_up_and_go_on(tmp_path, limit(300_000))


def test_a_full_file_system_during_the_run_waits_for_the_disk_and_loses_nothing(small_file_system: Path) -> None:
    fill_up_and_go_on(small_file_system, "" if os.path.ismount(small_file_system) else limit(300_000))


def test_a_file_system_filled_to_the_last_byte_waits_for_the_disk_and_loses_nothing(
    small_file_system: Path,
) -> None:
    to_the_last_byte = "import storage.database; storage.database._LEAST_FREE_BYTES = 0"
    fill_up_and_go_on(
        small_file_system, to_the_last_byte if os.path.ismount(small_file_system) else limit(300_000)
    )


def fill_up_and_go_on(folder: Path, limit: str) -> None:
    done = child(FILL.replace("LIMIT", limit), folder)
    assert done.returncode == 0, done.stderr
    reason, count, message = done.stdout.split(" ", 2)
    assert reason == "disk"
    assert "free some space, then run the same command again" in message
    if os.path.ismount(folder):
        subprocess.run(["mount", "-o", "remount,size=8m", str(folder)], check=True)
    with Database(folder / "journal.sqlite") as database:
        journal = SqlJournal(database, JOB)
        assert [entry.key for entry in journal.entries() if entry.kind == "record"] == [
            f"fill/{number}" for number in range(int(count))
        ]
        assert record(journal, f"fill/{count}").instruction == f"fill/{count}"


def test_nothing_is_begun_that_could_not_be_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with a_database(tmp_path) as database:
        monkeypatch.setattr(module, "_LEAST_FREE_BYTES", 2**62)
        with pytest.raises(JobWaiting, match="no space left") as stop:
            SqlJournal(database, JOB).once("step/1/plan", {}, Plan, never)
        assert stop.value.reason == "disk"


def test_removing_a_database_removes_what_lies_beside_it(tmp_path: Path) -> None:
    with a_database(tmp_path):
        assert len(list(tmp_path.iterdir())) == 3  # file, log and index
    a_database(tmp_path).close()
    (tmp_path / "journal.sqlite-wal").touch()
    (tmp_path / "other").touch()
    remove(tmp_path / "journal.sqlite")
    remove(tmp_path / "journal.sqlite")
    assert [path.name for path in tmp_path.iterdir()] == ["other"]


def test_a_database_can_be_read_where_nothing_can_be_written(tmp_path: Path) -> None:
    a_database(tmp_path).close()
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with Database(tmp_path / "journal.sqlite", read_only=True) as database:
        assert [job.id for job in stored_jobs(database)] == [JOB]
        with pytest.raises(BackendMisconfigured, match="cannot write"), database.write() as connection:
            connection.exec_driver_sql("DELETE FROM jobs")
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_what_another_process_is_writing_is_read_too(tmp_path: Path) -> None:
    writing = a_database(tmp_path)
    with Database(tmp_path / "journal.sqlite", read_only=True) as database:
        assert [job.id for job in stored_jobs(database)] == [JOB]
    writing.close()


def test_a_database_that_is_not_there_is_not_made_for_reading(tmp_path: Path) -> None:
    with pytest.raises(BackendMisconfigured):
        Database(tmp_path / "x" / "journal.sqlite", read_only=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        ("UPDATE entries SET value = '{'", "no JSON"),
        ("UPDATE entries SET value = '[]'", "entry 1"),
        ("DELETE FROM entries", "no state"),
        ("DELETE FROM jobs", "its job is gone"),
        ("UPDATE jobs SET state = 'dreaming'", "dreaming"),
        ("UPDATE jobs SET policy = '[]'", "no job"),
    ],
)
def test_rows_that_cliploop_never_writes_are_damage_in_one_line(tmp_path: Path, damage: str, why: str) -> None:
    a_database(tmp_path).close()
    connection = sqlite3.connect(tmp_path / "journal.sqlite")
    connection.execute(damage)
    connection.commit()
    connection.close()

    def reopen() -> None:
        with Database(tmp_path / "journal.sqlite") as database:
            create_job(database, JOB, TASK, POLICY)
            SqlJournal(database, JOB)

    with pytest.raises(BackendMisconfigured, match=r"journal\.sqlite is damaged .*--fresh") as error:
        reopen()
    assert why in str(error.value)
    assert "\n" not in str(error.value)


def test_many_that_wait_for_a_lock_are_all_told_and_keep_no_reader_waiting(tmp_path: Path) -> None:
    told: list[str] = []
    a_database(tmp_path).close()
    other = raw(tmp_path / "journal.sqlite")
    with Database(tmp_path / "journal.sqlite", service=True, busy_seconds=1.0) as database:

        def write() -> None:
            try:
                with database.write():
                    pass
            except BackendUnavailable as error:
                told.append(str(error))

        other.execute("BEGIN IMMEDIATE")
        writers = [threading.Thread(target=write) for _ in range(30)]
        for writer in writers:
            writer.start()
        with database.read() as connection:
            assert connection.exec_driver_sql("SELECT 1").scalar_one() == 1
        for writer in writers:
            writer.join()
        other.execute("ROLLBACK")
    other.close()
    assert len(told) == 30
    assert all("end that process" in words and "same command" not in words for words in told)


def test_a_local_run_is_told_its_own_remedies_and_a_service_none_of_them(tmp_path: Path) -> None:
    with Database(tmp_path / "a.sqlite") as local, Database(tmp_path / "b.sqlite", service=True) as service:
        assert local.afresh == "start over with --fresh"
        assert service.afresh == "submit it anew"
        assert "--fresh" in str(damaged(local.where, "why", service=local.serves))
        assert "--fresh" not in str(damaged(service.where, "why", service=service.serves))
