"""Requests that a client sent again because it heard no answer, and that name no idempotency key.

They are told by the digest of what they say. A repetition may overtake the request that it repeats, in another
process: whichever is stored first, the other finds it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from sqlalchemy import Connection, func, select, update

from storage.tables import SubmissionRow

REMEMBERED_SECONDS = 600.0
_OVERTOOK = "overtook"  # in what was asked: no request without a mark of repetition has claimed this job yet


@dataclass(frozen=True)
class Sending:
    """How a request came: `again` if its client says so, and when, by the database's clock."""

    again: bool
    came_at: float


def asked(words: dict[str, Any] | None, sending: Sending | None) -> dict[str, Any] | None:
    """What to store of a request, so that a later one finds it."""
    return {**(words or {}), _OVERTOOK: True} if sending is not None and sending.again else words


def answered(connection: Connection, owner: str, fingerprint: str, sending: Sending, now: float) -> str | None:
    """The job of the same request; to be asked in the transaction that stores a new one otherwise.

    A repetition finds the latest of the last ten minutes. A request that is none finds only a job that its own
    repetition has made since it came, and only one request finds that.
    """
    if connection.dialect.name == "postgresql":  # until the commit nobody else asks for the same
        connection.execute(select(func.pg_advisory_xact_lock(_number(fingerprint))))
    return (
        find(connection, owner, fingerprint, sending, now)
        if sending.again
        else _claimed(connection, owner, fingerprint, sending.came_at)
    )


def find(connection: Connection, owner: str, fingerprint: str, sending: Sending, now: float) -> str | None:
    """The latest job of the same request, for one that is a repetition; only reads."""
    if not sending.again:
        return None
    rows = _since(connection, owner, fingerprint, now - REMEMBERED_SECONDS)
    return rows[0][0] if rows else None


def _claimed(connection: Connection, owner: str, fingerprint: str, came_at: float) -> str | None:
    for job_id, words in reversed(_since(connection, owner, fingerprint, came_at)):
        if words.get(_OVERTOOK):
            left = {name: value for name, value in words.items() if name != _OVERTOOK}
            ours = SubmissionRow.job_id == job_id
            connection.execute(update(SubmissionRow).where(ours).values(asked=left))
            return job_id
    return None


def _since(
    connection: Connection, owner: str, fingerprint: str, since: float
) -> list[tuple[str, dict[str, Any]]]:
    """The newest first."""
    same = SubmissionRow.owner == owner, SubmissionRow.fingerprint == fingerprint
    query = select(SubmissionRow.job_id, SubmissionRow.asked).where(*same, SubmissionRow.submitted_at >= since)
    rows = connection.execute(query.order_by(SubmissionRow.submitted_at.desc(), SubmissionRow.job_id))
    return [(cast("str", row.job_id), dict(row.asked or {})) for row in rows]


def _number(fingerprint: str) -> int:
    """A 63-bit number of a digest in hexadecimal, for a lock."""
    return int(fingerprint[:15], 16)
