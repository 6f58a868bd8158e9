"""The database as a PostgreSQL server, for several machines: opening it, and errors that say what to do."""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Generator
from contextlib import AbstractContextManager

from sqlalchemy import URL, Connection, create_engine, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from orchestrator.errors import BackendMisconfigured, BackendUnavailable, CliploopError, JobWaiting
from storage import migrations
from storage.folders import NO_ROOM
from storage.sql import DATABASE_AWAY, SqlDatabase, Version, damaged
from storage.tables import SCHEMA_VERSION

CONNECT_SECONDS = 10
POOL_SECONDS = 10.0  # for a connection that another thread gives back
LOCK_SECONDS = 30  # how long a writer waits for another one
_MIGRATION_LOCK = 0x434C4970  # of all cliploop processes that look whether there are tables
_SQLSTATES: tuple[tuple[str, str], ...] = (
    ("53100", "disk"),  # disk_full
    ("53", "later"),  # insufficient resources, too many connections
    ("08", "later"),  # connection exception
    ("57", "later"),  # the server is starting or shutting down
    ("55P03", "later"),  # lock_not_available
    ("40", "later"),  # serialization failure, deadlock
    ("28", "settings"),  # invalid password
    ("3D", "settings"),  # no such database
    ("42501", "settings"),  # insufficient privilege
    ("XX001", "damaged"),  # data_corrupted
    ("XX002", "damaged"),  # index_corrupted
)


class PostgresDatabase(SqlDatabase):
    """A PostgreSQL database by URL, `postgresql://user:password@host/name`. Raises:

    BackendMisconfigured (bad URL, refused login, a newer version's tables, the driver is not installed),
    BackendUnavailable when it cannot be reached or stays locked, JobWaiting(disk) when its disk is full.
    """

    def __init__(self, url: str) -> None:
        address = _address(url)
        self.where = _shown(address)
        self._numbers = itertools.count()
        options = f"-c lock_timeout={LOCK_SECONDS}s -c statement_timeout={2 * LOCK_SECONDS}s"
        try:
            self._engine = create_engine(
                address,
                pool_pre_ping=True,
                pool_size=5,
                max_overflow=20,
                pool_timeout=POOL_SECONDS,
                connect_args={"connect_timeout": CONNECT_SECONDS, "options": options},
                execution_options={"service": True},
            )
        except (NoSuchModuleError, ModuleNotFoundError) as error:
            raise BackendMisconfigured(
                f"{self.where} needs the PostgreSQL driver: pip install 'cliploop[postgres]'"
            ) from error
        self._writes = self._engine
        try:
            self._prepare()
        except BaseException:
            self.close()
            raise

    def version(self, connection: Connection | None = None) -> Version:
        """See SqlDatabase. A server does not say cheaply whether others wrote: no two are equal."""
        return next(self._numbers), 0, 0

    def now(self, connection: Connection) -> float:
        """See SqlDatabase: the server's clock."""
        return float(connection.execute(text("SELECT extract(epoch FROM clock_timestamp())")).scalar_one())

    def require_space(self) -> None:
        """See SqlDatabase. The server's disk is not ours to look at."""

    def _translated(self) -> AbstractContextManager[None]:
        return _translated(self.where)

    def _prepare(self) -> None:
        """Make the tables, or bring them to this version; one process at a time."""
        with self.write() as connection:
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _MIGRATION_LOCK})
            version = migrations.version_of(connection)
            if version > SCHEMA_VERSION:
                raise BackendMisconfigured(
                    f"{self.where} has schema version {version}, this cliploop reads version {SCHEMA_VERSION}:"
                    " upgrade cliploop, or choose another database"
                )
            if version == 0:
                migrations.create(connection)
            elif version < SCHEMA_VERSION:
                migrations.upgrade(connection)


def _address(url: str) -> URL:
    """The URL with the driver named that we install. Raises BackendMisconfigured; never shows a password."""
    try:
        address = make_url(url)
    except (ArgumentError, ValueError):  # ValueError: of its port
        raise _unreadable() from None
    if "@" in (address.host or ""):  # a part of the password, which would stand in messages
        raise _unreadable()
    if address.get_backend_name() not in ("postgresql", "postgres"):
        raise BackendMisconfigured(
            f"the database URL begins with {address.drivername}: write postgresql://, or leave it out for SQLite"
        )
    return address.set(drivername="postgresql+psycopg")


def _unreadable() -> BackendMisconfigured:
    return BackendMisconfigured(
        "the database URL cannot be read: write postgresql://user:password@host:5432/name, in the password %40"
        " for @ and %2F for /"
    )


def _shown(address: URL) -> str:
    """For messages: no password, neither the user's nor one among the options."""
    secret = [name for name in address.query if "password" in name.lower()]
    return address.difference_update_query(secret).render_as_string(hide_password=True)


@contextlib.contextmanager
def _translated(where: str) -> Generator[None]:
    try:
        yield
    except DBAPIError as error:
        ours = _ours(error, where)
        if ours is None:
            raise
        raise ours from error
    except PoolTimeout as error:
        raise BackendUnavailable(
            f"all connections to {where} are in use: is its server slow? Try again later", outside=DATABASE_AWAY
        ) from error
    except json.JSONDecodeError as error:
        raise damaged(where, f"a value is no JSON: {error}", service=True) from error


def _ours(error: DBAPIError, where: str) -> CliploopError | None:
    """By SQLSTATE; an error without one that closes the connection is a server that went away."""
    state = str(getattr(error.orig, "sqlstate", None) or "")
    means = next((means for prefix, means in _SQLSTATES if state.startswith(prefix)), "")
    said = next(iter(str(error.orig).splitlines()), "no message")[:200]
    unconnected = "connection" in said.lower() or "resolve host" in said
    if not means and not state and (error.connection_invalidated or unconnected):
        means = "later"
    if means == "disk":
        return JobWaiting("disk", f"{where} has no room ({said}): free some space on its server", outside=NO_ROOM)
    if means == "later":
        return BackendUnavailable(
            f"{where} cannot be used now ({said}): is the server running? Try again later", outside=DATABASE_AWAY
        )
    if means == "settings":
        return BackendMisconfigured(f"{where} refuses ({said}): check user, password and database")
    if means == "damaged":
        return damaged(where, said, service=True)
    return None
