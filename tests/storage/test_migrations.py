"""Old databases are brought to this version; new ones look the same. On SQLite and on PostgreSQL."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect

from orchestrator.errors import BackendMisconfigured
from orchestrator.records import Plan
from storage import migrations
from storage.database import APPLICATION_ID, Database
from storage.jobs import create_job
from storage.journal import SqlJournal
from storage.migrations import REVISIONS, name_of, stamp, version_of
from storage.postgres import PostgresDatabase
from storage.sql import SqlDatabase
from storage.tables import SCHEMA_VERSION, Table
from tests.storage.conftest import OpenDatabase
from tests.storage.jobs_for_tests import JOB, POLICY, ROOT, TASK, never, plan, record


def go_back_to_the_first_version(connection: Connection) -> None:
    """The tables as version 1 made them, with nothing of what came later."""
    connection.exec_driver_sql("DROP TABLE IF EXISTS alembic_version")
    Table.metadata.drop_all(connection)
    with Operations.context(MigrationContext.configure(connection)):
        ScriptDirectory(str(REVISIONS)).get_revision("0001").module.upgrade()


def differences(database: SqlDatabase) -> list[object]:
    with database.read() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        return list(compare_metadata(context, Table.metadata))


def test_a_new_database_is_of_this_version_and_has_all_tables(opened: OpenDatabase) -> None:
    database = opened()
    with database.read() as connection:
        assert version_of(connection) == SCHEMA_VERSION
    assert differences(database) == []


def test_every_version_has_its_revision() -> None:
    found = [revision.revision for revision in ScriptDirectory(str(REVISIONS)).walk_revisions()]
    assert found == [name_of(version) for version in range(SCHEMA_VERSION, 0, -1)]


def test_a_database_of_the_first_version_is_brought_to_this_one_with_its_jobs(opened: OpenDatabase) -> None:
    old = opened()
    with old.write() as connection:
        go_back_to_the_first_version(connection)
        if isinstance(old, Database):
            connection.exec_driver_sql("PRAGMA user_version = 1")
        else:
            stamp(connection, 1)
    create_job(old, JOB, TASK, POLICY)
    record(SqlJournal(old, JOB), "step/1/plan")

    new = opened()
    assert differences(new) == []
    with new.read() as connection:
        assert version_of(connection) == SCHEMA_VERSION
    assert SqlJournal(new, JOB).once("step/1/plan", {}, Plan, never) == plan("step/1/plan")


def test_an_upgrade_that_fails_changes_nothing(opened: OpenDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    old = opened()
    with old.write() as connection:
        go_back_to_the_first_version(connection)
        if isinstance(old, Database):
            connection.exec_driver_sql("PRAGMA user_version = 1")
        else:
            stamp(connection, 1)
    real = migrations.upgrade

    def fails(connection: Connection) -> None:
        real(connection)
        raise RuntimeError("the power goes out before the commit")

    monkeypatch.setattr(migrations, "upgrade", fails)
    with pytest.raises(RuntimeError):
        opened()
    monkeypatch.undo()
    assert differences(opened()) == []


def test_a_postgres_of_a_newer_version_says_upgrade(postgres: Callable[[], str]) -> None:
    url = postgres()
    with PostgresDatabase(url) as database, database.write() as connection:
        stamp(connection, SCHEMA_VERSION + 1)
    with pytest.raises(BackendMisconfigured, match=r"upgrade cliploop"):
        PostgresDatabase(url)


def test_a_file_without_tables_but_with_our_mark_gets_them(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    with Database(path, service=True) as database, database.write() as connection:
        connection.exec_driver_sql("DROP TABLE alembic_version")
        Table.metadata.drop_all(connection)
        connection.exec_driver_sql("PRAGMA user_version = 0")
        connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")
    with Database(path, service=True) as database:
        assert differences(database) == []


def test_a_current_database_is_opened_without_the_migration_library(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from storage.database import Database\n"
        "for _ in range(2): Database(Path(sys.argv[1]), service=True).close()\n"
        "assert not [name for name in sys.modules if name.startswith('alembic')]\n"
    )
    path = tmp_path / "journal.sqlite"
    subprocess.run([sys.executable, "-c", code, str(path)], cwd=ROOT, check=True, timeout=60)


def test_a_local_journal_has_only_what_one_process_needs_and_a_service_adds_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    with Database(path) as local:
        create_job(local, JOB, TASK, POLICY)
        record(SqlJournal(local, JOB), "step/1/plan")
        with local.read() as connection:
            assert set(inspect(connection).get_table_names()) == {"jobs", "entries"}
    with Database(path, service=True) as service:
        assert differences(service) == []
    with Database(path) as local:
        assert SqlJournal(local, JOB).once("step/1/plan", {}, Plan, never) == plan("step/1/plan")
