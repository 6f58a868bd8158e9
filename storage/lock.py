"""One process at a time per local journal: an advisory lock that the kernel gives back at death."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Generator
from pathlib import Path

from orchestrator.errors import BackendMisconfigured
from storage.folders import make_folder

_NAMED_WITHIN_SECONDS = 0.2  # between taking the lock and writing one's pid


class FolderBusy(BackendMisconfigured):
    """Another process works on this journal. `pid` is None if it has not said who it is."""

    def __init__(self, message: str, pid: int | None) -> None:
        super().__init__(message)
        self.pid = pid


@contextlib.contextmanager
def locked(database: Path) -> Generator[None]:
    """Hold `<database>.lock` for as long as the block runs. Raises FolderBusy, BackendMisconfigured.

    The file stays when the lock goes: to remove it would let two processes lock two files of one name.
    """
    make_folder(database.parent)
    file = lock_file(database)
    try:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise BackendMisconfigured(
            f"cannot write to {database.parent} ({error.strerror}): choose another folder, or free some space"
        ) from error
    try:
        _take(descriptor, database)
        with contextlib.suppress(OSError):  # a full disk: locked all the same, only without a name
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(descriptor)


def lock_file(database: Path) -> Path:
    """Where the lock of a database is."""
    return database.with_name(f"{database.name}.lock")


def is_lock(database: Path) -> bool:
    """Whether the lock of a database was taken at some time: its file is there, with nothing or a pid in it."""
    try:
        with lock_file(database).open("rb") as file:
            said = file.read(32)
    except OSError:
        return False
    return not said or said.isdigit()


def _take(descriptor: int, database: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        pid = _holder(descriptor)
        named = f"pid {pid}" if pid else "pid unknown"
        raise FolderBusy(
            f"another cliploop is running this folder ({database.parent}), {named}: "
            "wait until it ends, or choose another one",
            pid,
        ) from None


def _holder(descriptor: int) -> int | None:
    limit = time.monotonic() + _NAMED_WITHIN_SECONDS
    while True:
        text = os.pread(descriptor, 32, 0).decode(errors="replace").strip()
        if text.isdecimal() and _alive(int(text)):
            return int(text)
        if time.monotonic() > limit:
            return None
        time.sleep(0.01)


def _alive(pid: int) -> bool:
    """False for the pid that the lock's last holder left behind."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
