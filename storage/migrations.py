"""From the tables of an older version to those of this one. Each revision is a file in `revisions/versions/`.

A new database gets the tables as they are now; Alembic is imported only where there is something to change.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy import Column, Connection, MetaData, String, Table, inspect, select

from storage.tables import CORE_VERSION, SCHEMA_VERSION, EntryRow, JobRow
from storage.tables import Table as OurTable

CORE_TABLES = [OurTable.metadata.tables[row.__tablename__] for row in (JobRow, EntryRow)]
REVISIONS = Path(__file__).with_name("revisions")
# Alembic's own, in its own words: a database made without it looks as if made by it.
_VERSION = Table(
    "alembic_version", MetaData(), Column("version_num", String(32), primary_key=True, nullable=False)
)


def name_of(version: int) -> str:
    """The Alembic revision of a schema version."""
    return f"{version:04d}"


def version_of(connection: Connection) -> int:
    """The schema version that Alembic's table names; 0 where there is none."""
    if not inspect(connection).has_table(_VERSION.name):
        return 0
    name = connection.execute(select(_VERSION.c.version_num)).scalar_one_or_none()
    return int(name) if name is not None and name.isdecimal() else 0


def create(connection: Connection, version: int = SCHEMA_VERSION) -> None:
    """Make the tables as they are now, inside the caller's transaction: all, or those of CORE_VERSION alone."""
    if version == CORE_VERSION:
        OurTable.metadata.create_all(connection, tables=CORE_TABLES)
        return
    OurTable.metadata.create_all(connection)
    stamp(connection, SCHEMA_VERSION)


def stamp(connection: Connection, version: int) -> None:
    """Say which version the tables have."""
    _VERSION.create(connection, checkfirst=True)
    connection.execute(_VERSION.delete())
    connection.execute(_VERSION.insert().values(version_num=name_of(version)))


def upgrade(connection: Connection) -> None:
    """Bring the tables from the version that `stamp` wrote to this one, inside the caller's transaction."""
    from alembic.config import Config
    from alembic.runtime.environment import EnvironmentContext
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(REVISIONS))
    script = ScriptDirectory.from_config(config)

    def steps(revision: Any, _context: Any) -> Any:
        return script._upgrade_revs(name_of(SCHEMA_VERSION), revision)

    with EnvironmentContext(config, script, fn=steps) as environment:
        environment.configure(connection=connection, render_as_batch=True)
        environment.run_migrations()
