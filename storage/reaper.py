"""Takes up what was dropped: jobs that should move, that nobody works on, and that no message is about.

Run by every worker and API process, one at a time. It looks at the truth and at the queues, never at RQ's own
registries: a killed worker's lease runs out, a lost message is sent again.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Generator
from typing import TypeAlias

from storage.leases import any_held, hand_back, is_held, take
from storage.queue import Messages
from storage.retrying import retry_waiting
from storage.rounds import rounds
from storage.sql import SqlDatabase
from storage.submissions import unfinished

EVERY_SECONDS = 2.0
LOOK_SECONDS = 4.0  # one look takes less; a reaper that was killed is in nobody's way for longer
LOOK_AGAIN_SECONDS = 0.2
_NAME = "reaper"
HasRoom: TypeAlias = Callable[[], bool]
_log = logging.getLogger(__name__)


def reap(database: SqlDatabase, messages: Messages, holder: str, has_room: HasRoom = lambda: True) -> list[str]:
    """Send a message for every job that was dropped; their ids. Nothing if another process is at it.

    `has_room`: whether jobs that wait for the disk may go on.
    """
    lease = take(database, _NAME, holder, seconds=LOOK_SECONDS)
    if lease is None:
        return []
    try:
        dropped = _dropped(database, messages)
        for job_id in dropped:
            messages.advance(job_id)
        if dropped:
            messages.count("reaped", len(dropped))
        retry_waiting(database, messages, has_room)
        return dropped
    finally:
        hand_back(database, lease)


def _dropped(database: SqlDatabase, messages: Messages) -> list[str]:
    """Looked at twice: between a message that was just taken and its lease, a job only seems to be dropped."""
    first = _seem_dropped(database, messages)
    if not first:
        return []
    time.sleep(LOOK_AGAIN_SECONDS)
    return [job for job, number in _seem_dropped(database, messages).items() if first.get(job) == number]


def _seem_dropped(database: SqlDatabase, messages: Messages) -> dict[str, int]:
    """With the number of their next entry: it grows when they move."""
    moving = unfinished(database)
    known = messages.waiting() if moving else ()
    return {
        job: number for job, number in moving.items() if job not in known and not _is_worked_on(database, job)
    }


@contextlib.contextmanager
def reaping(
    database: SqlDatabase, messages: Messages, holder: str, has_room: HasRoom = lambda: True
) -> Generator[None]:
    """A thread that looks for dropped jobs now and then while the block runs."""

    def look() -> None:
        dropped = reap(database, messages, holder, has_room)
        if dropped:
            _log.warning("taken up again: %s", ", ".join(dropped))

    with rounds("reaper", look, EVERY_SECONDS):
        yield


def _is_worked_on(database: SqlDatabase, job_id: str) -> bool:
    return is_held(database, f"job/{job_id}") or any_held(database, f"clip/{job_id}/")
