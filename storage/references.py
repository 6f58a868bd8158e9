"""Which artifacts a job holds. A file that no job holds any more is the sweeper's, after a while.

Access goes through references: a job shows its own artifacts, and knowing a hash opens nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from sqlalchemy import Connection, delete, exists, select, update
from sqlalchemy.dialects import postgresql, sqlite

from orchestrator.records import ArtifactKey
from storage.artifacts import is_key
from storage.tables import ArtifactRow, ReferenceRow, UploadRow


def keys_in(value: Any) -> Iterator[ArtifactKey]:
    """Every artifact key in a JSON value; a key without a suffix is a digest of something else."""
    if isinstance(value, str):
        if len(value) > 64 and is_key(value):
            yield value
    elif isinstance(value, Mapping):
        for item in cast("Mapping[str, Any]", value).values():
            yield from keys_in(item)
    elif isinstance(value, list | tuple):
        for item in cast("Sequence[Any]", value):
            yield from keys_in(item)


def hold(connection: Connection, job_id: str, value: Any) -> None:
    """The job holds every artifact that the value names, inside the caller's transaction."""
    keys = sorted(set(keys_in(value)))
    if not keys:
        return
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    artifacts = insert(ArtifactRow).values([{"key": key, "unreferenced_since": None} for key in keys])
    connection.execute(
        artifacts.on_conflict_do_update(index_elements=[ArtifactRow.key], set_={"unreferenced_since": None})
    )
    references = insert(ReferenceRow).values([{"job_id": job_id, "artifact": key} for key in keys])
    connection.execute(references.on_conflict_do_nothing())


def expect(connection: Connection, keys: Sequence[ArtifactKey], now: float) -> None:
    """Note artifacts that are about to be written, so that they are swept if in the end nobody holds them."""
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    artifacts = insert(ArtifactRow).values([{"key": key, "unreferenced_since": now} for key in keys])
    held = ArtifactRow.unreferenced_since.is_(None)
    connection.execute(
        artifacts.on_conflict_do_update(
            index_elements=[ArtifactRow.key], set_={"unreferenced_since": now}, where=~held
        )
    )


def holds(connection: Connection, job_id: str, artifact: ArtifactKey) -> bool:
    """Whether the job holds that artifact."""
    held = ReferenceRow.job_id == job_id, ReferenceRow.artifact == artifact
    return connection.execute(select(ReferenceRow.artifact).where(*held)).first() is not None


def hold_upload(connection: Connection, owner: str, artifact: ArtifactKey, now: float) -> None:
    """The owner holds an artifact that was uploaded before its job; once more renews it."""
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    artifacts = insert(ArtifactRow).values(key=artifact, unreferenced_since=None)
    connection.execute(
        artifacts.on_conflict_do_update(index_elements=[ArtifactRow.key], set_={"unreferenced_since": None})
    )
    uploads = insert(UploadRow).values(owner=owner, artifact=artifact, created_at=now)
    known = [UploadRow.owner, UploadRow.artifact]
    connection.execute(uploads.on_conflict_do_update(index_elements=known, set_={"created_at": now}))


def is_upload(connection: Connection, owner: str, artifact: ArtifactKey) -> bool:
    """Whether the owner has uploaded that artifact, and still holds it."""
    ours = UploadRow.owner == owner, UploadRow.artifact == artifact
    return connection.execute(select(UploadRow.artifact).where(*ours)).first() is not None


def let_go(connection: Connection, job_id: str, now: float) -> None:
    """The job holds nothing any more; what nobody else holds is unreferenced from now on."""
    ours = select(ReferenceRow.artifact).where(ReferenceRow.job_id == job_id)
    others = exists().where(ReferenceRow.artifact == ArtifactRow.key, ReferenceRow.job_id != job_id)
    connection.execute(
        update(ArtifactRow).where(ArtifactRow.key.in_(ours), ~others).values(unreferenced_since=now)
    )
    connection.execute(delete(ReferenceRow).where(ReferenceRow.job_id == job_id))


def unreferenced(connection: Connection, before: float, limit: int) -> list[ArtifactKey]:
    """Artifacts that nobody has held since `before` (seconds since the epoch) or longer."""
    old = select(ArtifactRow.key).where(ArtifactRow.unreferenced_since < before)
    return list(connection.execute(old.order_by(ArtifactRow.key).limit(limit)).scalars())


def forget(connection: Connection, artifact: ArtifactKey) -> bool:
    """Take the artifact off the books if still nobody holds it, before its file goes; whether it may go."""
    free = ArtifactRow.key == artifact, ArtifactRow.unreferenced_since.is_not(None)
    return connection.execute(delete(ArtifactRow).where(*free)).rowcount == 1
