"""Who wants to be told of a job's changes, what they are told, and when it is tried again: rows of the truth.

A delivery is a row that is written in the transaction in which the job's state changes, so that none is lost. Who
tries one claims its row for a while; a process that dies in between leaves it to the next. It sends nothing:
`storage.delivering` does.
"""

from __future__ import annotations

import base64
import binascii
import secrets
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy import Connection, func, insert, literal, select, update
from sqlalchemy.orm import aliased

from storage.sql import SqlDatabase
from storage.tables import DeliveryRow, EntryRow, JobRow, SubmissionRow, WebhookRow

NOTABLE = frozenset({"waiting", "succeeded", "failed", "cancelled"})
SECRET_PREFIX = "whsec_"
CLAIM_SECONDS = 60.0  # longer than any try takes
AT_A_HOST = 2  # tries under way in a process at one host: a slow one is not everybody's
OF_AN_OWNER = 6  # likewise for the jobs of one API key, with as many slow hosts as it likes
GONE = "410: the receiver wants to hear no more of this job"
MAX_ERROR_CHARS = 300
LONGEST_PAUSE_SECONDS = 12 * 3600.0  # whatever a receiver asks for
# Between tries, each times 0.8 … 1.2: ten tries in about 16 hours.
PAUSES_SECONDS = (5.0, 30.0, 120.0, 600.0, 1800.0, 3600.0, 7200.0, 14400.0, 28800.0)
_LOOKED_AT = 2000  # due deliveries, for those whose host is not busy


@dataclass(frozen=True)
class Webhook:
    """Where a job's news goes; `secret` signs it and is shown to nobody."""

    url: str
    secret: str = field(repr=False)


@dataclass(frozen=True)
class Due:
    """A claimed delivery. `tries` counts this one; times are seconds since the epoch."""

    job_id: str
    sequence: int
    tries: int
    owner: str
    webhook: Webhook
    state: Mapping[str, Any]  # as the journal has it
    changed_at: float
    submitted_at: float
    preset: str
    parent_id: str | None

    @property
    def id(self) -> str:
        """The same however often it is tried."""
        return f"msg_{self.job_id}_{self.sequence}"

    @property
    def places(self) -> dict[str, int]:
        """Where a try counts, and how many may be under way there."""
        return _places(self.webhook.url, self.owner)


@dataclass(frozen=True)
class Told:
    """How a job's deliveries stand. `next_at`: of the next try, in seconds since the epoch."""

    url: str
    delivered: int
    pending: int
    given_up: int
    last_error: str | None
    next_at: float | None


def new_secret() -> str:
    """A secret of 32 random bytes, in the form of Standard Webhooks."""
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def is_secret(text: str) -> bool:
    """Whether it is one: whsec_ and 24 to 64 bytes in base64."""
    if not text.startswith(SECRET_PREFIX):
        return False
    try:
        return 24 <= len(base64.b64decode(text.removeprefix(SECRET_PREFIX), validate=True)) <= 64
    except (binascii.Error, ValueError):
        return False


def add(connection: Connection, job_id: str, webhook: Webhook) -> None:
    """The job has a webhook; in the transaction that stores the job."""
    connection.execute(insert(WebhookRow).values(job_id=job_id, url=webhook.url, secret=webhook.secret))


def webhook_of(database: SqlDatabase, job_id: str) -> Webhook | None:
    """The job's, if it has one."""
    with database.read() as connection:
        row = connection.execute(select(WebhookRow.__table__).where(WebhookRow.job_id == job_id)).first()
        return None if row is None else Webhook(row.url, row.secret)


def note(connection: Connection, job_id: str, sequence: int, now: float) -> None:
    """There is something to tell, if the job has a webhook that still wants to hear."""
    gone = select(DeliveryRow.job_id).where(DeliveryRow.job_id == job_id, DeliveryRow.last_error == GONE)
    news = select(WebhookRow.job_id, literal(sequence), literal(0), literal(now), literal(""))
    columns = ["job_id", "sequence", "tries", "next_at", "last_error"]
    wanted = news.where(WebhookRow.job_id == job_id, ~gone.exists())
    connection.execute(insert(DeliveryRow).from_select(columns, wanted))


def any_due(database: SqlDatabase) -> bool:
    """Whether a delivery waits to be tried now."""
    with database.read() as connection:
        due = DeliveryRow.next_at <= database.now(connection)
        return connection.execute(select(DeliveryRow.job_id).where(due).limit(1)).first() is not None


def claim(database: SqlDatabase, limit: int, busy: Mapping[str, int]) -> list[Due]:
    """Take up to `limit` deliveries that are due, one a job, in the order of its sequence.

    `busy`: how many tries are under way here at each place.
    """
    with database.write() as connection:
        now = database.now(connection)
        under_way = Counter(busy)
        claimed: list[Due] = []
        for row in connection.execute(_due(now)).all():
            places = _places(row.url, row.owner)
            if len(claimed) == limit:
                break
            if any(under_way[place] >= most for place, most in places.items()):
                continue
            under_way.update(places.keys())
            due = Due(
                row.job_id,
                row.sequence,
                row.tries + 1,
                row.owner,
                Webhook(row.url, row.secret),
                row.value,
                row.recorded_at,
                row.submitted_at,
                row.preset,
                row.parent_id,
            )
            _update(connection, due, row.tries, {"tries": due.tries, "next_at": now + CLAIM_SECONDS})
            claimed.append(due)
        return claimed


def _due(now: float) -> Any:
    """Of each job the earliest delivery that is not done, if it is due; nobody else's claim is waited for."""
    earlier = aliased(DeliveryRow)
    undone = select(earlier.job_id).where(
        earlier.job_id == DeliveryRow.job_id,
        earlier.sequence < DeliveryRow.sequence,
        earlier.next_at.is_not(None),
    )
    columns = DeliveryRow.job_id, DeliveryRow.sequence, DeliveryRow.tries, WebhookRow.url, WebhookRow.secret
    told = EntryRow.value, EntryRow.recorded_at, JobRow.parent_id
    asked = SubmissionRow.owner, SubmissionRow.submitted_at, SubmissionRow.preset
    same = (EntryRow.job_id == DeliveryRow.job_id) & (EntryRow.sequence == DeliveryRow.sequence)
    return (
        select(*columns, *told, *asked)
        .join(WebhookRow, WebhookRow.job_id == DeliveryRow.job_id)
        .join(EntryRow, same)
        .join(SubmissionRow, SubmissionRow.job_id == DeliveryRow.job_id)
        .join(JobRow, JobRow.id == DeliveryRow.job_id)
        .where(DeliveryRow.next_at <= now, ~undone.exists())
        .order_by(DeliveryRow.next_at)
        .limit(_LOOKED_AT)
        .with_for_update(of=DeliveryRow, skip_locked=True)
    )


def delivered(database: SqlDatabase, due: Due) -> None:
    """It was taken. Nothing is written where the job is gone, or another process has claimed it since."""
    with database.write() as connection:
        now = database.now(connection)
        _update(connection, due, due.tries, {"next_at": None, "delivered_at": now, "last_error": ""})


def failed(database: SqlDatabase, due: Due, why: str, *, retry_after: float = 0.0, jitter: float = 1.0) -> None:
    """It was not taken: it is tried again after a pause, or given up after the last one."""
    pause = pause_after(due.tries)
    with database.write() as connection:
        next_at = None
        if pause is not None:
            wanted = max(pause * jitter, min(retry_after, LONGEST_PAUSE_SECONDS))
            next_at = database.now(connection) + wanted
        _update(connection, due, due.tries, {"next_at": next_at, "last_error": why[:MAX_ERROR_CHARS]})


def unwanted(database: SqlDatabase, due: Due) -> None:
    """The receiver wants to hear no more: nothing of this job is tried again."""
    with database.write() as connection:
        ours = DeliveryRow.job_id == due.job_id, DeliveryRow.next_at.is_not(None)
        connection.execute(update(DeliveryRow).where(*ours).values(next_at=None, last_error=GONE))


def pause_after(tries: int) -> float | None:
    """Seconds until the next try, after so many; None when there is none."""
    return PAUSES_SECONDS[tries - 1] if tries <= len(PAUSES_SECONDS) else None


def _update(connection: Connection, due: Due, tries: int, values: Mapping[str, Any]) -> None:
    """Only while the row is as it was: `tries` grows with every claim."""
    own = DeliveryRow.job_id == due.job_id, DeliveryRow.sequence == due.sequence, DeliveryRow.tries == tries
    connection.execute(update(DeliveryRow).where(*own).values(values))


def told(database: SqlDatabase, job_id: str) -> Told | None:
    """How the job's deliveries stand; None where it has no webhook."""
    with database.read() as connection:
        url = connection.execute(select(WebhookRow.url).where(WebhookRow.job_id == job_id)).scalar()
        if url is None:
            return None
        query = select(DeliveryRow.__table__).where(DeliveryRow.job_id == job_id).order_by(DeliveryRow.sequence)
        rows = connection.execute(query).all()
    done = [row for row in rows if row.delivered_at is not None]
    pending = [row for row in rows if row.next_at is not None]
    errors = [row.last_error for row in rows if row.last_error]
    return Told(
        url=url,
        delivered=len(done),
        pending=len(pending),
        given_up=len(rows) - len(done) - len(pending),
        last_error=errors[-1] if errors else None,
        next_at=min((row.next_at for row in pending), default=None),
    )


def counts(database: SqlDatabase) -> dict[str, int]:
    """How many deliveries of the jobs that there are were taken, wait, or were given up."""
    with database.read() as connection:
        query = select(
            func.count(DeliveryRow.delivered_at), func.count(DeliveryRow.next_at), func.count(DeliveryRow.job_id)
        )
        taken, pending, all_of_them = connection.execute(query).one()
        return {"delivered": taken, "pending": pending, "given_up": all_of_them - taken - pending}


def _places(url: str, owner: str) -> dict[str, int]:
    return {f"host {host_of(url)}": AT_A_HOST, f"owner {owner}": OF_AN_OWNER}


def host_of(url: str) -> str:
    """The host of a URL that was read before, for people and for counting."""
    try:
        return urlsplit(url).netloc.lower()
    except ValueError:  # it reads URLs a little otherwise than those who checked it
        return "?"
