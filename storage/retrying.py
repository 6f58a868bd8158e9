"""Jobs that wait for a backend or for room on the disk are tried again by themselves, later and later.

A backend that never answers fails the job in the end; a full disk does not: it waits until there is room. Waiting
for anything else (a review, a clear reply, a change of the code) ends by a person only.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import select

from orchestrator.errors import BackendUnavailable
from storage.jobs import JobState, change_state, require_job
from storage.journal import read_entries
from storage.queue import Messages
from storage.sql import SqlDatabase
from storage.submissions import take_up
from storage.tables import JobRow, SubmissionRow

FIRST_PAUSE_SECONDS = 30.0
LONGEST_PAUSE_SECONDS = 600.0
TRIES = 8  # about an hour in all
RETRIED = ("backend", "disk")
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Wait:
    """How often a job has waited here without getting further, and since when (seconds since the epoch)."""

    times: int
    since: float


def retry_waiting(
    database: SqlDatabase, messages: Messages, has_room: Callable[[], bool] = lambda: True
) -> list[str]:
    """Take up the jobs whose pause is over, fail those that were tried often enough; their ids.

    Those that wait for the disk stay as they are while it has no room, as far as this process can see.
    """
    moved: list[str] = []
    with database.read() as connection:
        now = database.now(connection)
        query = select(JobRow.id, JobRow.reason).join(SubmissionRow, SubmissionRow.job_id == JobRow.id)
        waiting = connection.execute(query.where(JobRow.state == "waiting", JobRow.reason.in_(RETRIED))).all()
    room = all(reason != "disk" for _, reason in waiting) or has_room()
    for job_id, reason in waiting:
        if reason == "disk" and not room:
            continue
        try:
            if _moved(database, messages, job_id, reason, now):
                moved.append(job_id)
        except BackendUnavailable:
            raise
        except Exception as error:  # a fault of one job holds up no other
            _log.warning("could not look at job %s, which waits: %r", job_id, error)
    return moved


def _moved(database: SqlDatabase, messages: Messages, job_id: str, reason: str | None, now: float) -> bool:
    """Whether its pause was over, and it was taken up or given up."""
    wait = waited(database, job_id)
    if wait is None or now - wait.since < pause_after(wait.times):
        return False
    if wait.times > TRIES and reason != "disk":
        sequence = _give_up(database, job_id, wait.times)
        if sequence is not None:
            messages.tell(job_id, {"sequence": sequence})
    else:
        take_up(database, job_id)
        messages.advance(job_id)
    return True


def pause_after(times: int) -> float:
    """30 s, 60 s, 120 s, … at most 10 minutes."""
    return min(FIRST_PAUSE_SECONDS * 2.0 ** (times - 1), LONGEST_PAUSE_SECONDS)


def waited(database: SqlDatabase, job_id: str) -> Wait | None:
    """The wait that the job is in now, None if it is in none. Effects other than what it waits at end a wait."""
    times, since, key = 0, 0.0, None
    for entry in reversed(read_entries(database, job_id)):
        if entry.kind != "state":
            if key and (entry.key == key or entry.key.startswith(f"{key}/") or key.startswith(f"{entry.key}/")):
                continue
            break
        state = entry.value["state"]
        if state == "waiting" and entry.value["reason"] in RETRIED and key in (None, entry.key):
            times, since, key = times + 1, since or entry.recorded_at, entry.key
        elif state != "running" or key is None:
            break
    return Wait(times, since) if times else None


def _give_up(database: SqlDatabase, job_id: str, times: int) -> int | None:
    with database.write() as connection:
        state = require_job(connection, job_id, database.where).state
        if state.state != "waiting" or state.reason not in RETRIED:
            return None
        message = f"given up after {times} tries: {state.message}"
        return change_state(connection, job_id, JobState("failed", message=message), database.now(connection))
