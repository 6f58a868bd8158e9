"""Who asked, who may record, and which files a job holds."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make the service's tables."""
    _leases()
    _submissions()
    _artifacts()


def _leases() -> None:
    op.create_table(
        "leases",
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("token", sa.BigInteger, nullable=False),
        sa.Column("holder", sa.String(128), nullable=False),
        sa.Column("expires_at", sa.Double, nullable=False),
        sa.Column("wanted", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_leases"),
    )
    op.create_index("ix_leases_expires_at", "leases", ["expires_at"])


def _submissions() -> None:
    op.create_table(
        "api_keys",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("secret_digest", sa.String(64), nullable=False),
        sa.Column("requests_per_minute", sa.Integer),
        sa.Column("concurrent_jobs", sa.Integer),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("revoked_at", sa.Double),
        sa.PrimaryKeyConstraint("id", name="pk_api_keys"),
        sa.UniqueConstraint("secret_digest", name="uq_api_keys_secret_digest"),
    )
    op.create_table(
        "submissions",
        sa.Column("job_id", sa.String(128), nullable=False),
        sa.Column("owner", sa.String(32), nullable=False),
        sa.Column("preset", sa.Text, nullable=False),
        sa.Column("priority", sa.String(8), nullable=False),
        sa.Column("submitted_at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("job_id", name="pk_submissions"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_submissions_job_id_jobs"),
    )
    op.create_index(
        "ix_submissions_owner_submitted_at_job_id", "submissions", ["owner", "submitted_at", "job_id"]
    )
    op.create_table(
        "idempotency",
        sa.Column("owner", sa.String(32), nullable=False),
        sa.Column("key", sa.String(255), nullable=False),
        sa.Column("fingerprint", sa.String(64), nullable=False),
        sa.Column("job_id", sa.String(128), nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("owner", "key", name="pk_idempotency"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_idempotency_job_id_jobs"),
    )


def _artifacts() -> None:
    op.create_table(
        "artifacts",
        sa.Column("key", sa.String(84), nullable=False),
        sa.Column("unreferenced_since", sa.Double),
        sa.PrimaryKeyConstraint("key", name="pk_artifacts"),
    )
    op.create_index("ix_artifacts_unreferenced_since", "artifacts", ["unreferenced_since"])
    op.create_table(
        "references",
        sa.Column("job_id", sa.String(128), nullable=False),
        sa.Column("artifact", sa.String(84), nullable=False),
        sa.PrimaryKeyConstraint("job_id", "artifact", name="pk_references"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_references_job_id_jobs"),
        sa.ForeignKeyConstraint(["artifact"], ["artifacts.key"], name="fk_references_artifact_artifacts"),
    )
    op.create_index("ix_references_artifact", "references", ["artifact"])
