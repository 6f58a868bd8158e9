"""Uploads before their job, webhooks, and what a submission said."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Make `uploads`, `webhooks` and `deliveries`; two columns more in `submissions`."""
    op.add_column("submissions", sa.Column("fingerprint", sa.String(64)))
    op.add_column("submissions", sa.Column("asked", sa.JSON))
    op.create_index("ix_submissions_fingerprint", "submissions", ["fingerprint"])
    op.create_table(
        "uploads",
        sa.Column("owner", sa.String(32), nullable=False),
        sa.Column("artifact", sa.String(84), nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("owner", "artifact", name="pk_uploads"),
        sa.ForeignKeyConstraint(["artifact"], ["artifacts.key"], name="fk_uploads_artifact_artifacts"),
    )
    op.create_index("ix_uploads_artifact", "uploads", ["artifact"])
    op.create_table(
        "webhooks",
        sa.Column("job_id", sa.String(128), nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("secret", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("job_id", name="pk_webhooks"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_webhooks_job_id_jobs"),
    )
    op.create_table(
        "deliveries",
        sa.Column("job_id", sa.String(128), nullable=False),
        sa.Column("sequence", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("tries", sa.Integer, nullable=False),
        sa.Column("next_at", sa.Double),
        sa.Column("delivered_at", sa.Double),
        sa.Column("last_error", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("job_id", "sequence", name="pk_deliveries"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_deliveries_job_id_jobs"),
    )
    op.create_index("ix_deliveries_next_at", "deliveries", ["next_at"])
