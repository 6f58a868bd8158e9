"""The tables: jobs, and each job's entries in one sequence. Knows no dialect but for one partial index.

Made for growth by migrations: every constraint has a name by rule. Leases (who may record, with a fencing token)
become a table of their own beside these; whoever records takes the job row's lock by moving `next_sequence`.
"""

from __future__ import annotations

from typing import Any, Literal

from sqlalchemy import JSON, ForeignKey, Index, MetaData, String, Text, text
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

SCHEMA_VERSION = 1

EntryKind = Literal["record", "failure", "state"]

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
    created_at: Mapped[float]  # seconds since the epoch, UTC


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
    recorded_at: Mapped[float]  # seconds since the epoch, UTC
