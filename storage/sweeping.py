"""When sweeps happen: a thread in every process, one sweep at a time for all of them, and local copies in each.

A sweep by the books comes every minute, one through the whole store every hour. It knows whose turn it is, not
what is removed: that is `storage.sweeper`.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Generator
from dataclasses import replace

from orchestrator.errors import CliploopError
from storage import references
from storage.folders import low_on_space
from storage.leases import Lease, LeaseLost, is_held, renew, take
from storage.queue import Messages
from storage.rounds import rounds
from storage.s3 import S3Artifacts
from storage.sql import SqlDatabase
from storage.sweeper import Kind, Sweep, Tally

EVERY_SECONDS = 60.0
WHOLE_EVERY_SECONDS = 3600.0
LOOK_SECONDS = 10.0
_SWEEP, _WHOLE = (
    "sweeper",
    "sweeper/whole",
)  # leases that are never handed back: they run out when it is time again
_PAGE = 500
_FILES: tuple[Kind, ...] = ("artifacts", "strays", "unfinished")
_log = logging.getLogger(__name__)


class _Over(Exception):
    """The process is to end: the next one goes on."""


def sweep_in_turn(sweep: Sweep, holder: str, over: threading.Event | None = None) -> Tally | None:
    """Sweep if it is time and nobody else does; None if not. Ends soon after `over` is set."""
    if is_held(sweep.database, _SWEEP):
        return None
    lease = take(sweep.database, _SWEEP, holder, seconds=EVERY_SECONDS)
    if lease is None:
        return None
    whole = take(sweep.database, _WHOLE, holder, seconds=WHOLE_EVERY_SECONDS) is not None
    turn = replace(sweep, step=_beat(sweep.database, lease, over or threading.Event()), tally=Tally())
    with contextlib.suppress(_Over, LeaseLost):
        return turn.whole() if whole else turn.brief()
    return turn.tally


def _beat(database: SqlDatabase, lease: Lease, over: threading.Event) -> Callable[[int], None]:
    """Keeps the turn while the sweep goes on."""
    renewed_at = time.monotonic()

    def beat(_looked_at: int) -> None:
        nonlocal renewed_at
        if over.is_set():
            raise _Over
        if time.monotonic() - renewed_at > EVERY_SECONDS / 4:
            renew(database, lease, seconds=EVERY_SECONDS)
            renewed_at = time.monotonic()

    return beat


def drop_copies(sweep: Sweep, least_free_bytes: int = 0) -> None:
    """Drop the copies here of artifacts that are gone; with less room than that, every copy not in use."""
    store = sweep.store
    if not isinstance(store, S3Artifacts):
        return
    keys = store.copies.keys()
    for first in range(0, len(keys), _PAGE):
        some = keys[first : first + _PAGE]
        with sweep.database.read() as connection:
            known = references.since(connection, some)
        gone = [key for key in some if key not in known]
        if gone:
            store.copies.drop(gone)
    if low_on_space(sweep.scratch, least_free_bytes):
        store.copies.shrink(0)


def sweep_and_tell(
    sweep: Sweep,
    holder: str,
    least_free_bytes: int = 0,
    over: threading.Event | None = None,
    messages: Messages | None = None,
) -> None:
    """Drop copies here, sweep if it is our turn, log what was removed and count its files for the metrics.

    Raises what the sweep raises; with the broker away, nothing is counted.
    """
    drop_copies(sweep, least_free_bytes)
    tally = sweep_in_turn(sweep, holder, over)
    if tally is None:
        return
    said = [f"{removed.count} {kind}" for kind, removed in tally.removed.items() if removed.count]
    if said:
        _log.info("swept: %s", ", ".join(said))
    files = sum(removed.count for kind, removed in tally.removed.items() if kind in _FILES)
    if files and messages is not None:
        with contextlib.suppress(CliploopError):
            messages.count("swept", files)
    if tally.foreign.count:
        _log.warning(
            "%d files in the artifact store are of no job of this database, more than are of its jobs: "
            "left alone, see cliploop gc --help",
            tally.foreign.count,
        )


@contextlib.contextmanager
def sweeping(
    sweep: Sweep, holder: str, least_free_bytes: int = 0, messages: Messages | None = None
) -> Generator[None]:
    """A thread that sweeps now and then while the block runs."""
    over = threading.Event()

    def look() -> None:
        sweep_and_tell(sweep, holder, least_free_bytes, over, messages)

    with rounds("sweeper", look, LOOK_SECONDS, first=LOOK_SECONDS):
        try:
            yield
        finally:
            over.set()
