"""What is kept only for a time, beside artifacts: ended jobs, idempotency keys, leases of jobs that are gone.

It knows how to find and remove them in small transactions; not when, nor for how long they are kept.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from sqlalchemy import and_, delete, func, or_, select

from orchestrator.errors import JobNotFound
from storage.jobs import FINAL_STATES, IllegalState
from storage.sql import SqlDatabase
from storage.submissions import remove
from storage.tables import EntryRow, IdempotencyRow, JobRow, LeaseRow, SubmissionRow

_PAGE = 500


def ended(database: SqlDatabase, before: float) -> list[str]:
    """The jobs that ended before a moment (seconds since the epoch), the longest ago first."""
    last = and_(EntryRow.job_id == JobRow.id, EntryRow.sequence == JobRow.next_sequence - 1)
    query = select(JobRow.id).join(SubmissionRow, SubmissionRow.job_id == JobRow.id).join(EntryRow, last)
    query = query.where(JobRow.state.in_(FINAL_STATES), EntryRow.recorded_at < before)
    with database.read() as connection:
        return list(connection.execute(query.order_by(EntryRow.recorded_at)).scalars())


def remove_ended(database: SqlDatabase, job_id: str) -> bool:
    """Remove the job as its owner could; whether it was still there."""
    with contextlib.suppress(JobNotFound, IllegalState):
        remove(database, job_id, None)
        return True
    return False


def old_idempotency_keys(database: SqlDatabase, before: float) -> int:
    """How many were sent before a moment."""
    with database.read() as connection:
        query = select(func.count()).select_from(IdempotencyRow).where(IdempotencyRow.created_at < before)
        return int(connection.execute(query).scalar_one())


def forget_idempotency_keys(database: SqlDatabase, before: float) -> int:
    """Forget them; how many. The same key is a new one from then on."""
    with database.write() as connection:
        return connection.execute(delete(IdempotencyRow).where(IdempotencyRow.created_at < before)).rowcount


def leases_of_gone_jobs(database: SqlDatabase) -> list[str]:
    """The names of leases that nobody holds, of jobs that are gone: a late message made them again."""
    found: list[str] = []
    after = ""
    while True:
        names = _free_leases(database, after)
        if not names:
            return found
        after = names[-1]
        there = _there(database, {_job_of(name) for name in names})
        found += [name for name in names if _job_of(name) not in there]


def forget_leases(database: SqlDatabase, names: Sequence[str]) -> int:
    """Forget those that still nobody holds; how many."""
    count = 0
    for first in range(0, len(names), _PAGE):
        with database.write() as connection:
            free = LeaseRow.expires_at < database.now(connection)
            chosen = LeaseRow.name.in_(names[first : first + _PAGE])
            count += connection.execute(delete(LeaseRow).where(chosen, free)).rowcount
    return count


def _free_leases(database: SqlDatabase, after: str) -> list[str]:
    with database.read() as connection:
        of_jobs = or_(LeaseRow.name.startswith("job/"), LeaseRow.name.startswith("clip/"))
        free = LeaseRow.expires_at < database.now(connection)
        query = select(LeaseRow.name).where(of_jobs, free, LeaseRow.name > after)
        return list(connection.execute(query.order_by(LeaseRow.name).limit(_PAGE)).scalars())


def _there(database: SqlDatabase, job_ids: set[str]) -> set[str]:
    with database.read() as connection:
        return set(connection.execute(select(JobRow.id).where(JobRow.id.in_(job_ids))).scalars())


def _job_of(lease: str) -> str:
    return lease.split("/")[1]
