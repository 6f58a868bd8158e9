"""What every database of jobs and journals offers, whatever its dialect: transactions, room, a version.

It knows nothing of what the rows mean, and no dialect: those are `storage.database` and `storage.postgres`.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Generator
from contextlib import AbstractContextManager
from typing import Any, Self, TypeAlias

from sqlalchemy import Connection, Engine

from orchestrator.errors import BackendMisconfigured

Version: TypeAlias = tuple[int, int, int]


class SqlDatabase(ABC):
    """One database. `where` names it in messages, without a password.

    Its connections have the execution option `service` where the service's tables are in use.
    """

    where: str
    _engine: Engine
    _writes: Engine

    @contextlib.contextmanager
    def read(self) -> Generator[Connection]:
        """A transaction that only reads: one consistent view."""
        with self._translated(), self._engine.begin() as connection:
            yield connection

    @contextlib.contextmanager
    def write(self) -> Generator[Connection]:
        """A transaction that writes. It is short: no effect ever runs inside one."""
        with self._translated(), self._writes.begin() as connection:
            self._note_write()
            yield connection

    @property
    def serves(self) -> bool:
        """Whether it is a service's: then no remedy is an option of the command line."""
        return serves(self._engine)

    @property
    def afresh(self) -> str:
        """How a job is begun anew, for messages."""
        return "submit it anew" if self.serves else "start over with --fresh"

    @abstractmethod
    def version(self, connection: Connection | None = None) -> Version:
        """Equal at two moments: nobody committed anything between them.

        Of a write transaction's `connection`: the version that its commit makes.
        """

    def changes(self) -> int | None:
        """Equal at two moments: nobody committed anything between them, this process neither.

        Asked for next to nothing and without waiting; None where it would cost a query.
        """
        return None

    @abstractmethod
    def now(self, connection: Connection) -> float:
        """Seconds since the epoch by the one clock that all holders of leases share."""

    @abstractmethod
    def require_space(self) -> None:
        """Raise JobWaiting(disk) where what is about to be paid for could not be recorded."""

    def close(self) -> None:
        """Give back every connection."""
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def _translated(self) -> AbstractContextManager[None]:
        """Turns the driver's errors into ours."""

    def _note_write(self) -> None:  # noqa: B027 - a dialect that counts them says so
        """A write transaction has begun."""


DATABASE_AWAY = "the database cannot be reached now: try again later"  # as callers of a service are told


def serves(of: Engine | Connection) -> bool:
    """Whether the database is a service's."""
    return bool(of.get_execution_options().get("service"))


def damaged(where: Any, why: object, *, service: bool) -> BackendMisconfigured:
    """The error for a journal that says what cliploop never writes."""
    afresh = "" if service else ", or start over with --fresh"
    return BackendMisconfigured(f"{where} is damaged ({why}): put a copy in its place{afresh}")
