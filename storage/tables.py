"""The tables. Knows no dialect but for one partial index.

`jobs` and `entries` are all that one process needs; the rest belongs to the service: who asked (`submissions`,
`api_keys`, `idempotency`), who may record (`leases`), which files are held and by whom (`references`, `uploads`,
`artifacts`), who wants to be told (`webhooks`, `deliveries`).
Every constraint has a name by rule, so that migrations can speak of it. Times are seconds since the epoch, UTC.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from sqlalchemy import JSON, BigInteger, Double, ForeignKey, Index, MetaData, String, Text, text
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

CORE_VERSION = 1  # jobs and entries: all that one process needs
SCHEMA_VERSION = 3  # and the service's tables

EntryKind = Literal["record", "failure", "state"]
Priority = Literal["high", "normal", "low"]

_NAMES = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}
_EFFECTS_ONLY = text("kind IN ('record', 'failure')")


class Table(DeclarativeBase):
    """Base of the tables."""

    metadata = MetaData(naming_convention=_NAMES)
    type_annotation_map: ClassVar[dict[type, Any]] = {float: Double()}  # times; SQLAlchemy 2.0 would take FLOAT


class JobRow(Table):
    """A task with its policy and state. `reason`, `message`, `at_key`, `outcome` belong to the state."""

    __tablename__ = "jobs"

    id: Mapped[str] = mapped_column(String(128), primary_key=True)
    parent_id: Mapped[str | None] = mapped_column(ForeignKey("jobs.id"), index=True)
    task: Mapped[dict[str, Any]] = mapped_column(JSON)
    policy: Mapped[dict[str, Any]] = mapped_column(JSON)
    state: Mapped[str] = mapped_column(String(16), index=True)
    reason: Mapped[str | None] = mapped_column(String(16))
    outcome: Mapped[str | None] = mapped_column(String(16))
    message: Mapped[str] = mapped_column(Text)
    at_key: Mapped[str] = mapped_column(Text)
    next_sequence: Mapped[int]
    created_at: Mapped[float]


class EntryRow(Table):
    """One line of a job's journal: a recorded effect, a counted failure, or a change of state."""

    __tablename__ = "entries"
    __table_args__ = (
        Index(
            "uq_entries_job_id_key",
            "job_id",
            "key",
            unique=True,
            sqlite_where=_EFFECTS_ONLY,
            postgresql_where=_EFFECTS_ONLY,
        ),
    )

    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id"), primary_key=True)
    sequence: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    key: Mapped[str] = mapped_column(Text)
    kind: Mapped[str] = mapped_column(String(8))
    inputs: Mapped[str | None] = mapped_column(String(64))  # digest of what the effect was given
    value: Mapped[dict[str, Any]] = mapped_column(JSON)
    recorded_at: Mapped[float]


class LeaseRow(Table):
    """Who may record, under a name such as `job/<id>` or `clip/<id>/<key>`.

    `token` grows with every holder: a write that names a smaller one is refused. `wanted` counts those who came
    while it was held: the holder goes on until nobody came meanwhile.
    """

    __tablename__ = "leases"

    name: Mapped[str] = mapped_column(Text, primary_key=True)
    token: Mapped[int] = mapped_column(BigInteger)
    holder: Mapped[str] = mapped_column(String(128))  # "" when nobody holds it
    expires_at: Mapped[float] = mapped_column(index=True)
    wanted: Mapped[int] = mapped_column(BigInteger)


class ApiKeyRow(Table):
    """Who may ask. `secret_digest` is SHA-256: the secret is long and random, so it needs no slow hash."""

    __tablename__ = "api_keys"

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    name: Mapped[str] = mapped_column(Text)
    secret_digest: Mapped[str] = mapped_column(String(64), unique=True)
    requests_per_minute: Mapped[int | None]
    concurrent_jobs: Mapped[int | None]
    created_at: Mapped[float]
    revoked_at: Mapped[float | None]


class SubmissionRow(Table):
    """How a job came to the service; a job without one was run locally. `owner` is an API key's id, or ""."""

    __tablename__ = "submissions"
    __table_args__ = (Index("ix_submissions_owner_submitted_at_job_id", "owner", "submitted_at", "job_id"),)

    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id"), primary_key=True)
    owner: Mapped[str] = mapped_column(String(32))
    preset: Mapped[str] = mapped_column(Text)
    priority: Mapped[str] = mapped_column(String(8))
    submitted_at: Mapped[float]
    fingerprint: Mapped[str | None] = mapped_column(String(64), index=True)  # digest of the request
    asked: Mapped[dict[str, Any] | None] = mapped_column(JSON)  # in the words of the API that it came through


class IdempotencyRow(Table):
    """A key that a client sent with a submission, and what it stood for."""

    __tablename__ = "idempotency"

    owner: Mapped[str] = mapped_column(String(32), primary_key=True)
    key: Mapped[str] = mapped_column(String(255), primary_key=True)
    fingerprint: Mapped[str] = mapped_column(String(64))  # digest of the request
    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id"))
    created_at: Mapped[float]


class ArtifactRow(Table):
    """A file of the artifact store. `unreferenced_since`: since when no job holds it; the sweeper looks there."""

    __tablename__ = "artifacts"

    key: Mapped[str] = mapped_column(String(84), primary_key=True)
    unreferenced_since: Mapped[float | None] = mapped_column(index=True)


class ReferenceRow(Table):
    """A job holds an artifact."""

    __tablename__ = "references"

    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id"), primary_key=True)
    artifact: Mapped[str] = mapped_column(ForeignKey("artifacts.key"), primary_key=True, index=True)


class UploadRow(Table):
    """An API key's owner, or "", holds an artifact that was uploaded before its job."""

    __tablename__ = "uploads"

    owner: Mapped[str] = mapped_column(String(32), primary_key=True)
    artifact: Mapped[str] = mapped_column(ForeignKey("artifacts.key"), primary_key=True, index=True)
    created_at: Mapped[float]


class WebhookRow(Table):
    """Where a job's news goes. `secret` signs it, so it cannot be hashed; it is shown to nobody."""

    __tablename__ = "webhooks"

    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id"), primary_key=True)
    url: Mapped[str] = mapped_column(Text)
    secret: Mapped[str] = mapped_column(Text)


class DeliveryRow(Table):
    """A change of state that a webhook is told of. `next_at`: when to try (again); null when there is no need."""

    __tablename__ = "deliveries"

    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id"), primary_key=True)
    sequence: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    tries: Mapped[int]
    next_at: Mapped[float | None] = mapped_column(index=True)
    delivered_at: Mapped[float | None]
    last_error: Mapped[str] = mapped_column(Text)
