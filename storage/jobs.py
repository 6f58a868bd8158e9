"""Jobs as rows: created once, moved from state to state by the table of DESIGN.md, never changed otherwise."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, cast, get_args

from sqlalchemy import Connection, bindparam, insert, select, update

from orchestrator.errors import CliploopError, JobNotFound, TaskRejected
from orchestrator.records import OutcomeKind, Policy, Task, WaitReason
from storage import webhooks
from storage.digest import dump
from storage.sql import SqlDatabase, damaged, serves
from storage.tables import EntryKind, EntryRow, JobRow

State = Literal["queued", "running", "waiting", "cancelling", "succeeded", "failed", "cancelled"]

NEXT_STATES: Mapping[State, frozenset[State]] = {
    "queued": frozenset({"running", "cancelled"}),
    "running": frozenset({"waiting", "succeeded", "failed", "cancelling"}),
    "waiting": frozenset({"running", "cancelling", "failed"}),
    "cancelling": frozenset({"cancelled"}),
    "succeeded": frozenset(),
    "failed": frozenset(),
    "cancelled": frozenset(),
}
FINAL_STATES = frozenset(state for state, following in NEXT_STATES.items() if not following)

# Built once: making a statement costs more than running it.
_SELECT_JOB = select(JobRow.__table__).where(JobRow.id == bindparam("job"))
_SELECT_LINE = select(EntryRow.sequence).where(EntryRow.job_id == bindparam("job")).limit(1)
_INSERT_ENTRY = insert(EntryRow)
_TAKE_SEQUENCE = (
    update(JobRow)
    .where(JobRow.id == bindparam("job"))
    .values(next_sequence=JobRow.next_sequence + 1)
    .returning(JobRow.next_sequence, JobRow.state)
)


class IllegalState(CliploopError):
    """A job cannot go from its state to that one, or cannot do more in it."""


@dataclass(frozen=True)
class JobState:
    """`reason` only in waiting, `outcome` only in succeeded; `key` is where it waits."""

    state: State
    reason: WaitReason | None = None
    message: str = ""
    key: str = ""
    outcome: OutcomeKind | None = None

    def __post_init__(self) -> None:
        if self.state not in get_args(State):
            raise ValueError(f"{self.state!r} is no state")
        if (self.state == "waiting") != (self.reason is not None):
            raise ValueError("a job waits for a reason; no other state has one")
        if (self.state == "succeeded") != (self.outcome is not None):
            raise ValueError("a job succeeds with an outcome; no other state has one")


@dataclass(frozen=True)
class StoredJob:
    """A job as stored; `task` and `policy` are JSON forms, which an older version may have written."""

    id: str
    task: Mapping[str, Any]
    policy: Mapping[str, Any]
    state: JobState
    parent_id: str | None
    created_at: float  # seconds since the epoch, UTC


def create_job(
    database: SqlDatabase,
    id: str,
    task: Task,
    policy: Policy,
    *,
    parent_id: str | None = None,
    clock: Callable[[], float] = time.time,
) -> bool:
    """Store a job in state `queued`; False if the same one is there already.

    Raises TaskRejected if another task or policy has this id, BackendMisconfigured for a damaged database.
    """
    with database.write() as connection:
        stored = _select(connection, id, database.where)
        if stored is not None:
            differences = differing(stored, task, policy)
            if differences:
                raise TaskRejected(
                    f"job {id} is stored with another {', '.join(differences)}: {database.afresh}",
                    reason="other_job",
                )
            return False
        if connection.execute(_SELECT_LINE, {"job": id}).first() is not None:
            why = f"it has lines of job {id}, but its job is gone"
            raise damaged(database.where, why, service=database.serves)
        add_job(connection, id, task, policy, parent_id=parent_id, now=clock())
    return True


def add_job(
    connection: Connection, id: str, task: Task, policy: Policy, *, parent_id: str | None, now: float
) -> None:
    """Store a new job in state `queued`, inside a write transaction. Raises IntegrityError if the id is taken."""
    values = {"id": id, "parent_id": parent_id, "task": dump(task), "policy": dump(policy)}
    connection.execute(
        insert(JobRow).values(**values, state="queued", message="", at_key="", next_sequence=1, created_at=now)
    )
    append_entry(connection, id, "", "state", None, asdict(JobState("queued")), now)


def load_job(database: SqlDatabase, id: str) -> StoredJob:
    """Raises JobNotFound."""
    with database.read() as connection:
        return require_job(connection, id, database.where)


def stored_jobs(database: SqlDatabase) -> list[StoredJob]:
    """All jobs, oldest first."""
    with database.read() as connection:
        rows = connection.execute(select(JobRow.__table__).order_by(JobRow.created_at, JobRow.id)).mappings()
        return [_stored(row, database.where, service=database.serves) for row in rows]


def differing(stored: StoredJob, task: Task, policy: Policy) -> list[str]:
    """What of a stored job differs: "picture", "prompt", "policy (max_steps, seed)"; empty if nothing does."""
    differences: list[str] = []
    if stored.task.get("picture") != task.picture:
        differences.append("picture")
    if stored.task.get("prompt") != task.prompt:
        differences.append("prompt")
    ours = dump(policy)
    names = [name for name in sorted({*ours, *stored.policy}) if ours.get(name) != stored.policy.get(name)]
    if names:
        differences.append(f"policy ({', '.join(names)})")
    return differences


def require_job(connection: Connection, id: str, where: str) -> StoredJob:
    """Raises JobNotFound."""
    stored = _select(connection, id, where)
    if stored is None:
        raise JobNotFound(f"no job {id} in {where}")
    return stored


def change_state(connection: Connection, id: str, to: JobState, now: float) -> int | None:
    """Move the job and append the entry, inside a write transaction; its sequence, or None if nothing changes.

    A waiting job may come to wait for something else. What its webhook is to be told is noted at once.
    Raises IllegalState, JobNotFound.
    """
    current = require_job(connection, id, "the database").state
    if to == current:
        return None
    refined = to.state == current.state == "waiting"
    if not refined and to.state not in NEXT_STATES[current.state]:
        raise IllegalState(f"job {id} is {current.state}: it cannot become {to.state}")
    connection.execute(
        update(JobRow)
        .where(JobRow.id == id)
        .values(state=to.state, reason=to.reason, message=to.message, at_key=to.key, outcome=to.outcome)
    )
    sequence = append_entry(connection, id, to.key, "state", None, asdict(to), now)
    if to.state in webhooks.NOTABLE and connection.get_execution_options().get("service"):
        webhooks.note(connection, id, sequence, now)
    return sequence


def append_entry(
    connection: Connection,
    job_id: str,
    key: str,
    kind: EntryKind,
    inputs: str | None,
    value: Mapping[str, Any],
    now: float,
) -> int:
    """Take the job's next sequence number, which locks its row until the commit, and write the entry.

    Raises IntegrityError if an effect with this key is recorded already, IllegalState for an effect of a job
    whose state is final, JobNotFound.
    """
    taken = connection.execute(_TAKE_SEQUENCE, {"job": job_id}).one_or_none()
    if taken is None:
        raise JobNotFound(f"no job {job_id} in the database")
    state: State = taken.state
    if kind != "state" and state in FINAL_STATES:
        raise finished(job_id, state)
    sequence: int = taken.next_sequence - 1
    entry = {"job_id": job_id, "sequence": sequence, "key": key, "kind": kind, "inputs": inputs}
    connection.execute(_INSERT_ENTRY, {**entry, "value": dict(value), "recorded_at": now})
    return sequence


def finished(job_id: str, state: State) -> IllegalState:
    """The error for work on a job whose state is final."""
    return IllegalState(f"job {job_id} is {state}, it takes no more effects: begin another one")


def _select(connection: Connection, id: str, where: Path | str) -> StoredJob | None:
    row = connection.execute(_SELECT_JOB, {"job": id}).mappings().one_or_none()
    return None if row is None else _stored(row, where, service=serves(connection))


def _stored(row: Mapping[Any, Any], where: Path | str, *, service: bool) -> StoredJob:
    try:
        state = JobState(row["state"], row["reason"], row["message"], row["at_key"], row["outcome"])
    except ValueError as error:
        raise damaged(where, error, service=service) from error
    task, policy = (cast("dict[str, Any]", row[name]) for name in ("task", "policy"))
    if type(task) is not dict or type(policy) is not dict:  # whatever JSON the row holds
        raise damaged(where, f"{row['id']} is no job", service=service)
    return StoredJob(
        id=row["id"],
        task=task,
        policy=policy,
        state=state,
        parent_id=row["parent_id"],
        created_at=row["created_at"],
    )
