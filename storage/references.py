"""Who holds an artifact: jobs, and uploads that wait for their job. What nobody holds, the sweeper removes.

Access goes through references: a job shows its own artifacts, and knowing a hash opens nothing.

Every artifact is on the books before its file is written (`expect`, or `hold`), and a file is removed only inside
the transaction that takes its row off the books (`forget`). So a writer either comes first, and the row is young
or held and stays; or it comes second, waits for that transaction, and finds that there is no file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from sqlalchemy import ColumnElement, Connection, and_, delete, exists, func, or_, select, update
from sqlalchemy.dialects import postgresql, sqlite

from orchestrator.records import ArtifactKey
from storage.artifacts import is_key
from storage.tables import ArtifactRow, ReferenceRow, UploadRow

ARRIVAL_SECONDS = 900.0  # from the announcement of an artifact to its record; after that it is nobody's
_CONDEMNED = 0.0  # `unreferenced_since` of what is being removed


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
    """Note artifacts that are about to be written, so that they are swept if in the end nobody holds them.

    They count as held for ARRIVAL_SECONDS. What is being removed at this moment is waited for.
    """
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    until = now + ARRIVAL_SECONDS
    artifacts = insert(ArtifactRow).values(
        [{"key": key, "unreferenced_since": until} for key in sorted(set(keys))]
    )
    held = ArtifactRow.unreferenced_since.is_(None)
    connection.execute(
        artifacts.on_conflict_do_update(
            index_elements=[ArtifactRow.key], set_={"unreferenced_since": until}, where=~held
        )
    )


def missing(connection: Connection, value: Any) -> set[ArtifactKey]:
    """Those artifacts that the value names and that are not on the books, or being removed. The others stay.

    Hold them in the same transaction: until it ends none of them can be condemned.
    """
    keys = sorted(set(keys_in(value)))
    if not keys:
        return set()
    living = or_(ArtifactRow.unreferenced_since.is_(None), ArtifactRow.unreferenced_since != _CONDEMNED)
    query = select(ArtifactRow.key).where(ArtifactRow.key.in_(keys), living).order_by(ArtifactRow.key)
    return set(keys).difference(connection.execute(query.with_for_update()).scalars())


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


def num_uploads(connection: Connection, before: float) -> int:
    """How many uploads are from before a moment (seconds since the epoch)."""
    query = select(func.count()).select_from(UploadRow).where(UploadRow.created_at < before)
    return int(connection.execute(query).scalar_one())


def expire_uploads(connection: Connection, before: float, now: float) -> int:
    """Let go of what was uploaded before a moment (seconds since the epoch); how many uploads."""
    old = UploadRow.created_at < before
    keys = list(connection.execute(select(UploadRow.artifact).where(old)).scalars())
    _locked(connection, keys)
    expired = connection.execute(delete(UploadRow).where(old)).rowcount
    _release(connection, keys, now)
    return expired


def let_go(connection: Connection, job_id: str, now: float) -> None:
    """The job holds nothing any more; what nobody else holds is unreferenced from now on."""
    ours = ReferenceRow.job_id == job_id
    keys = list(connection.execute(select(ReferenceRow.artifact).where(ours)).scalars())
    _locked(connection, keys)
    connection.execute(delete(ReferenceRow).where(ours))
    _release(connection, keys, now)


def unreferenced(
    connection: Connection, before: float, limit: int, *, after: ArtifactKey = ""
) -> list[ArtifactKey]:
    """Artifacts that nobody has held since `before` (seconds since the epoch) or longer, by key, from `after`."""
    old = select(ArtifactRow.key).where(ArtifactRow.unreferenced_since < before, ArtifactRow.key > after)
    return list(connection.execute(old.order_by(ArtifactRow.key).limit(limit)).scalars())


def adopt(connection: Connection, keys: Sequence[ArtifactKey]) -> None:
    """Put files on the books that no row knows: nobody holds them, and they may go at once."""
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    strays = insert(ArtifactRow).values([{"key": key, "unreferenced_since": _CONDEMNED} for key in sorted(keys)])
    connection.execute(strays.on_conflict_do_nothing())


def since(connection: Connection, keys: Sequence[ArtifactKey]) -> dict[ArtifactKey, float | None]:
    """Of those keys that are on the books: since when nobody holds them, None where somebody does."""
    query = select(ArtifactRow.key, ArtifactRow.unreferenced_since).where(ArtifactRow.key.in_(keys))
    return {row.key: row.unreferenced_since for row in connection.execute(query)}


def condemn(connection: Connection, keys: Sequence[ArtifactKey], before: float) -> None:
    """Mark for removal what nobody has held since `before`: nobody records it any more without writing it again.

    Committed before the first file goes: whatever ends the sweeper then, no row says that a lost file is there.
    """
    old = ArtifactRow.key.in_(keys), ArtifactRow.unreferenced_since < before
    connection.execute(update(ArtifactRow).where(*old, ~_is_held()).values(unreferenced_since=_CONDEMNED))


def forget(connection: Connection, keys: Sequence[ArtifactKey]) -> list[ArtifactKey]:
    """Take what is condemned, still, off the books; those keys. Their files go before this transaction ends."""
    condemned = and_(ArtifactRow.key.in_(keys), ArtifactRow.unreferenced_since == _CONDEMNED)
    query = select(ArtifactRow.key).where(condemned).order_by(ArtifactRow.key).with_for_update()
    going = list(connection.execute(query).scalars())
    connection.execute(delete(ArtifactRow).where(ArtifactRow.key.in_(going)))
    return going


def _is_held() -> ColumnElement[bool]:
    return or_(
        exists().where(ReferenceRow.artifact == ArtifactRow.key),
        exists().where(UploadRow.artifact == ArtifactRow.key),
    )


def _locked(connection: Connection, keys: Sequence[ArtifactKey]) -> None:
    """Wait for others that hold or let go of the same; the next statement sees what they did."""
    rows = select(ArtifactRow.key).where(ArtifactRow.key.in_(keys)).order_by(ArtifactRow.key)
    connection.execute(rows.with_for_update())


def _release(connection: Connection, keys: Sequence[ArtifactKey], now: float) -> None:
    """What of these nobody holds any more is unreferenced from now on."""
    free = ArtifactRow.key.in_(keys), ArtifactRow.unreferenced_since.is_(None), ~_is_held()
    connection.execute(update(ArtifactRow).where(*free).values(unreferenced_since=now))
