"""Jobs as the service knows them: submitted once, listed by owner, cancelled, deleted.

It knows who asked and in which order, not what a job does. Everything that must hold together is one transaction.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from sqlalchemy import ColumnElement, Connection, Row, and_, bindparam, delete, func, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from orchestrator.errors import CliploopError, JobNotFound
from orchestrator.records import Policy, Task
from storage import leases, references, resends, webhooks
from storage.jobs import (
    FINAL_STATES,
    IllegalState,
    JobState,
    State,
    StoredJob,
    add_job,
    append_entry,
    change_state,
    require_job,
)
from storage.journal import Entry
from storage.sql import SqlDatabase
from storage.tables import (
    ApiKeyRow,
    DeliveryRow,
    EntryRow,
    IdempotencyRow,
    JobRow,
    Priority,
    SubmissionRow,
    WebhookRow,
)

# Built once: making a statement costs more than running it.
_STANDING = (
    select(SubmissionRow.owner, SubmissionRow.submitted_at, JobRow.state, JobRow.next_sequence)
    .join(JobRow, JobRow.id == SubmissionRow.job_id)
    .where(SubmissionRow.job_id == bindparam("job"))
)
_AHEAD = (
    select(func.count())
    .select_from(SubmissionRow)
    .join(JobRow, JobRow.id == SubmissionRow.job_id)
    .where(JobRow.state == "queued", SubmissionRow.submitted_at < bindparam("at"))
)


class OtherRequest(CliploopError):
    """The idempotency key stood for another request."""


class TooManyJobs(CliploopError):
    """The API key has as many jobs as it may have at a time."""


_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Request:
    """What a client asked for. `fingerprint` is a digest of all of it, for a repeated `idempotency_key`.

    `asked`: the request in the words of its API. `sending`: how it came, where repetitions are told by the
    fingerprint alone.
    """

    owner: str
    preset: str
    priority: Priority = "normal"
    idempotency_key: str | None = None
    fingerprint: str = ""
    parent_id: str | None = None
    asked: Mapping[str, Any] | None = None
    sending: resends.Sending | None = None
    webhook: webhooks.Webhook | None = None


@dataclass(frozen=True)
class Submitted:
    """A job with what the client said about it. `submitted_at`: seconds since the epoch."""

    job: StoredJob
    owner: str
    preset: str
    priority: Priority
    submitted_at: float
    asked: Mapping[str, Any] = field(default_factory=dict[str, Any])


def submit(
    database: SqlDatabase,
    job_id: str,
    task: Task,
    policy: Policy,
    request: Request,
    inherited: Sequence[Entry] = (),
    *,
    concurrent_jobs: int | None = None,
) -> tuple[str, bool]:
    """Store the job in state `queued`; (its id, whether it is new). Its journal begins with what it `inherited`.

    The same idempotency key with the same fingerprint gives the job that it gave before, however many processes
    are asked at once. Raises OtherRequest if it stood for something else, and TooManyJobs; `concurrent_jobs` is
    the limit of an API key that has none of its own, None for no limit.
    """
    try:
        with database.write() as connection:
            limit = _limit(connection, request.owner, concurrent_jobs)
            known = _known(connection, request) or _resent(database, connection, request)
            if known is not None:
                return known, False
            if limit is not None:
                _refuse_more_than(connection, request.owner, limit)
            if request.parent_id is not None:
                require_job(connection, request.parent_id, database.where)
            _add(database, connection, job_id, task, policy, request)
            for entry in inherited:
                references.hold(connection, job_id, entry.value)
                append_entry(
                    connection, job_id, entry.key, entry.kind, entry.inputs, entry.value, entry.recorded_at
                )
    except IntegrityError:
        with database.write() as connection:  # another process was quicker with the same key
            known = _known(connection, request)
        if known is None:
            raise
        return known, False
    _log.info("job %s: accepted", job_id)
    return job_id, True


def _limit(connection: Connection, owner: str, otherwise: int | None) -> int | None:
    """Of jobs at a time. Until this transaction ends nobody else submits for the same key."""
    query = select(ApiKeyRow.concurrent_jobs).where(ApiKeyRow.id == owner).with_for_update()
    row = connection.execute(query).first() if owner else None
    if row is None:
        return None
    return otherwise if row.concurrent_jobs is None else row.concurrent_jobs


def _refuse_more_than(connection: Connection, owner: str, limit: int) -> None:
    if _active(connection, owner) >= limit:
        raise TooManyJobs(
            f"this API key may have {limit} jobs at a time, and has them: wait until one has ended, or cancel one"
        )


def _add(
    database: SqlDatabase, connection: Connection, job_id: str, task: Task, policy: Policy, request: Request
) -> None:
    now = database.now(connection)
    add_job(connection, job_id, task, policy, parent_id=request.parent_id, now=now)
    connection.execute(
        insert(SubmissionRow).values(
            job_id=job_id,
            owner=request.owner,
            preset=request.preset,
            priority=request.priority,
            submitted_at=now,
            fingerprint=request.fingerprint or None,
            asked=resends.asked(None if request.asked is None else dict(request.asked), request.sending),
        )
    )
    if request.idempotency_key is not None:
        connection.execute(
            insert(IdempotencyRow).values(
                owner=request.owner,
                key=request.idempotency_key,
                fingerprint=request.fingerprint,
                job_id=job_id,
                created_at=now,
            )
        )
    if request.webhook is not None:
        webhooks.add(connection, job_id, request.webhook)
    references.hold(connection, job_id, [task.picture])


def repeated(database: SqlDatabase, request: Request) -> str | None:
    """The job that this request gave before. Raises OtherRequest if its key stood for something else."""
    with database.read() as connection:
        known = _known(connection, request)
        if known is not None or request.sending is None or request.idempotency_key is not None:
            return known
        now = database.now(connection)
        return resends.find(connection, request.owner, request.fingerprint, request.sending, now)


def _resent(database: SqlDatabase, connection: Connection, request: Request) -> str | None:
    if request.sending is None or request.idempotency_key is not None:
        return None
    now = database.now(connection)
    return resends.answered(connection, request.owner, request.fingerprint, request.sending, now)


def _known(connection: Connection, request: Request) -> str | None:
    if request.idempotency_key is None:
        return None
    ours = IdempotencyRow.owner == request.owner, IdempotencyRow.key == request.idempotency_key
    row = connection.execute(select(IdempotencyRow.fingerprint, IdempotencyRow.job_id).where(*ours)).first()
    if row is None:
        return None
    if row.fingerprint != request.fingerprint:
        raise OtherRequest(
            f"the idempotency key {request.idempotency_key!r} was sent with another request: send a new key"
        )
    return cast("str", row.job_id)


def find(database: SqlDatabase, job_id: str, owner: str | None) -> Submitted:
    """The job, if it is the owner's (None: anybody's). Raises JobNotFound, for another owner's too."""
    with database.read() as connection:
        return _find(database, connection, job_id, owner)


def _find(database: SqlDatabase, connection: Connection, job_id: str, owner: str | None) -> Submitted:
    row = connection.execute(select(SubmissionRow.__table__).where(SubmissionRow.job_id == job_id)).first()
    if row is None or owner not in (None, row.owner):
        raise JobNotFound(f"there is no job {job_id}")
    return _submitted(require_job(connection, job_id, database.where), row)


def _submitted(job: StoredJob, row: Row[Any]) -> Submitted:
    return Submitted(job, row.owner, row.preset, row.priority, row.submitted_at, row.asked or {})


def priority_of(database: SqlDatabase, job_id: str) -> Priority:
    """How urgent the job is. Raises JobNotFound."""
    return find(database, job_id, None).priority


def listed(
    database: SqlDatabase,
    owner: str | None,
    *,
    states: tuple[State, ...] = (),
    limit: int = 20,
    after: str | None = None,
    oldest_first: bool = False,
) -> list[Submitted]:
    """The newest (or oldest) jobs of an owner (None: of all), at most `limit`, from the one after `after` on.

    Raises JobNotFound for an `after` that is none of theirs.
    """
    with database.read() as connection:
        query = select(SubmissionRow.__table__).join(JobRow, JobRow.id == SubmissionRow.job_id)
        if owner is not None:
            query = query.where(SubmissionRow.owner == owner)
        if states:
            query = query.where(JobRow.state.in_(states))
        if after is not None:
            last = _find(database, connection, after, owner)
            query = query.where(_beyond(last, oldest_first))
        order = [SubmissionRow.submitted_at, SubmissionRow.job_id]
        query = query.order_by(*(order if oldest_first else [each.desc() for each in order])).limit(limit)
        rows = connection.execute(query).all()
        return [_submitted(require_job(connection, row.job_id, database.where), row) for row in rows]


def _beyond(last: Submitted, oldest_first: bool) -> ColumnElement[bool]:
    at, job_id = SubmissionRow.submitted_at, SubmissionRow.job_id
    if oldest_first:
        return or_(at > last.submitted_at, and_(at == last.submitted_at, job_id > last.job.id))
    return or_(at < last.submitted_at, and_(at == last.submitted_at, job_id < last.job.id))


def active(database: SqlDatabase, owner: str) -> int:
    """How many of an owner's jobs have not ended."""
    with database.read() as connection:
        return _active(connection, owner)


def _active(connection: Connection, owner: str) -> int:
    query = select(func.count()).select_from(SubmissionRow).join(JobRow, JobRow.id == SubmissionRow.job_id)
    query = query.where(SubmissionRow.owner == owner, JobRow.state.not_in(FINAL_STATES))
    return int(connection.execute(query).scalar_one())


def last_sequences(database: SqlDatabase, job_ids: Collection[str]) -> dict[str, int]:
    """The number of the latest entry of each of these jobs that there is."""
    with database.read() as connection:
        query = select(JobRow.id, JobRow.next_sequence).where(JobRow.id.in_(job_ids))
        return {row.id: row.next_sequence - 1 for row in connection.execute(query)}


def all_last_sequences(database: SqlDatabase) -> dict[str, int]:
    """The number of the latest entry of every job."""
    with database.read() as connection:
        return {
            row.id: row.next_sequence - 1 for row in connection.execute(select(JobRow.id, JobRow.next_sequence))
        }


def oldest_queued(database: SqlDatabase) -> float | None:
    """When the job that has been queued longest was submitted, in seconds since the epoch."""
    with database.read() as connection:
        query = select(func.min(SubmissionRow.submitted_at)).join(JobRow, JobRow.id == SubmissionRow.job_id)
        return connection.execute(query.where(JobRow.state == "queued")).scalar()


def counts(database: SqlDatabase) -> dict[State, int]:
    """How many jobs are in each state that any is in."""
    with database.read() as connection:
        query = select(JobRow.state, func.count()).group_by(JobRow.state)
        return {cast("State", row[0]): int(row[1]) for row in connection.execute(query)}


def ahead_of(database: SqlDatabase, job: Submitted) -> int:
    """How many queued jobs were submitted before this one."""
    with database.read() as connection:
        return int(connection.execute(_AHEAD, {"at": job.submitted_at}).scalar_one())


def standing(database: SqlDatabase, job_id: str, owner: str | None) -> tuple[int, int | None]:
    """All of a job that can change: its next entry's number, and while it is queued, how many are ahead of it.

    Raises JobNotFound, for another owner's too.
    """
    with database.read() as connection:
        row = connection.execute(_STANDING, {"job": job_id}).first()
        if row is None or owner not in (None, row.owner):
            raise JobNotFound(f"there is no job {job_id}")
        if row.state != "queued":
            return row.next_sequence, None
        return row.next_sequence, int(connection.execute(_AHEAD, {"at": row.submitted_at}).scalar_one())


def unfinished(database: SqlDatabase) -> dict[str, int]:
    """All jobs that should be moving (not waiting, not ended), oldest first: id and next entry's number."""
    with database.read() as connection:
        moving = JobRow.state.in_(("queued", "running", "cancelling"))
        query = select(JobRow.id, JobRow.next_sequence).join(SubmissionRow, JobRow.id == SubmissionRow.job_id)
        rows = connection.execute(query.where(moving).order_by(SubmissionRow.submitted_at)).all()
        return {row.id: row.next_sequence for row in rows}


def cancel(database: SqlDatabase, job_id: str, owner: str | None) -> JobState:
    """Ask the job to stop; its state now. One that never began is cancelled at once.

    Raises JobNotFound, and IllegalState if it has ended.
    """
    with database.write() as connection:
        state = _find(database, connection, job_id, owner).job.state
        if state.state in FINAL_STATES:
            raise IllegalState(f"job {job_id} is {state.state}: there is nothing to cancel")
        if state.state == "cancelling":
            return state
        asked = JobState("cancelled" if state.state == "queued" else "cancelling")
        change_state(connection, job_id, asked, database.now(connection))
        return asked


def take_up(database: SqlDatabase, job_id: str) -> JobState:
    """Let a waiting job go on: it counts as running, and a message must follow. Its state now.

    Raises JobNotFound, and IllegalState if it has ended. Nothing changes where it does not wait.
    """
    with database.write() as connection:
        state = _find(database, connection, job_id, None).job.state
        if state.state in FINAL_STATES:
            raise IllegalState(f"job {job_id} is {state.state}: it does not go on")
        if state.state == "waiting":
            state = JobState("running")
            change_state(connection, job_id, state, database.now(connection))
        return state


def remove(database: SqlDatabase, job_id: str, owner: str | None) -> None:
    """Remove the job, its journal and its references; its children keep what they share.

    Raises JobNotFound, and IllegalState while it is moving: cancel it first.
    """
    with database.write() as connection:
        state = _find(database, connection, job_id, owner).job.state.state
        if state not in FINAL_STATES:
            raise IllegalState(f"job {job_id} is {state}: cancel it first")
        references.let_go(connection, job_id, database.now(connection))
        for prefix in (f"job/{job_id}", f"clip/{job_id}/"):
            leases.forget(connection, prefix)
        connection.execute(update(JobRow).where(JobRow.parent_id == job_id).values(parent_id=None))
        for table in (EntryRow, IdempotencyRow, SubmissionRow, WebhookRow, DeliveryRow):
            connection.execute(delete(table).where(table.job_id == job_id))
        connection.execute(delete(JobRow).where(JobRow.id == job_id))
