"""Jobs and their journals."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make `jobs` and `entries`."""
    op.create_table(
        "jobs",
        sa.Column("id", sa.String(128), nullable=False),
        sa.Column("parent_id", sa.String(128)),
        sa.Column("task", sa.JSON, nullable=False),
        sa.Column("policy", sa.JSON, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("reason", sa.String(16)),
        sa.Column("outcome", sa.String(16)),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("at_key", sa.Text, nullable=False),
        sa.Column("next_sequence", sa.Integer, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_jobs"),
        sa.ForeignKeyConstraint(["parent_id"], ["jobs.id"], name="fk_jobs_parent_id_jobs"),
    )
    op.create_index("ix_jobs_parent_id", "jobs", ["parent_id"])
    op.create_index("ix_jobs_state", "jobs", ["state"])
    op.create_table(
        "entries",
        sa.Column("job_id", sa.String(128), nullable=False),
        sa.Column("sequence", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("kind", sa.String(8), nullable=False),
        sa.Column("inputs", sa.String(64)),
        sa.Column("value", sa.JSON, nullable=False),
        sa.Column("recorded_at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("job_id", "sequence", name="pk_entries"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_entries_job_id_jobs"),
    )
    effects = sa.text("kind IN ('record', 'failure')")
    op.create_index(
        "uq_entries_job_id_key", "entries", ["job_id", "key"],
        unique=True, sqlite_where=effects, postgresql_where=effects,
    )  # fmt: skip
