"""A lease kept alive by a thread of its own while work is done under it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Generator

from storage.leases import LEASE_SECONDS, Lease, LeaseLost, renew
from storage.rounds import Trouble
from storage.sql import SqlDatabase


@contextlib.contextmanager
def renewed(database: SqlDatabase, lease: Lease, *, seconds: float = LEASE_SECONDS) -> Generator[threading.Event]:
    """Renew the lease three times in its life while the block runs; the event is set if it was lost."""
    over, lost, trouble = threading.Event(), threading.Event(), Trouble(f"heartbeat of {lease.name}")

    def beat() -> None:
        while not over.wait(seconds / 3):
            try:
                renew(database, lease, seconds=seconds)
            except LeaseLost:
                lost.set()
                return
            except Exception as error:  # the database is away for a moment: the next beat may reach it
                trouble.note(error)

    thread = threading.Thread(target=beat, name=f"heartbeat {lease.name}", daemon=True)
    thread.start()
    try:
        yield lost
    finally:
        over.set()
        thread.join()
