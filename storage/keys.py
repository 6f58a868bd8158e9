"""API keys: who may ask, and how much. A secret is shown once; only its SHA-256 digest is stored."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, Row, func, insert, select, update

from orchestrator.errors import CliploopError, TaskRejected
from storage.sql import SqlDatabase
from storage.tables import ApiKeyRow, IdempotencyRow, SubmissionRow, UploadRow

PREFIX = "clp_"
SECRET_BYTES = 32  # random: no slow hash and no salt are needed
LARGEST = 2**31 - 1
MAX_NAME = 200
NOBODY = ""  # the owner of jobs where no key was asked for


class KeyNotFound(CliploopError):
    """There is no API key of that id or name, or there are several."""


@dataclass(frozen=True)
class ApiKey:
    """A key without its secret. Limits: None = the service's default. Times: seconds since the epoch, UTC."""

    id: str
    name: str
    requests_per_minute: int | None
    concurrent_jobs: int | None
    created_at: float
    revoked_at: float | None = None


def create(
    database: SqlDatabase,
    name: str,
    *,
    requests_per_minute: int | None = None,
    concurrent_jobs: int | None = None,
    adopt: bool = False,
) -> tuple[ApiKey, str]:
    """A new key and its secret, which nobody can read again. `adopt`: the jobs that are nobody's are its own.

    Raises TaskRejected for a name or a limit that cannot be, and for a name that a key has which works.
    """
    _refuse_name(name)
    for what, limit in (("requests per minute", requests_per_minute), ("concurrent jobs", concurrent_jobs)):
        if limit is not None and not 1 <= limit <= LARGEST:
            raise TaskRejected(f"{what} must be between 1 and {LARGEST} (got {limit})", reason="limit")
    secret = PREFIX + secrets.token_urlsafe(SECRET_BYTES)
    with database.write() as connection:
        _refuse_second(connection, name)
        key = ApiKey(
            id=f"key-{secrets.token_hex(8)}",
            name=name,
            requests_per_minute=requests_per_minute,
            concurrent_jobs=concurrent_jobs,
            created_at=database.now(connection),
        )
        connection.execute(insert(ApiKeyRow).values(secret_digest=digest_of(secret), **vars(key)))
        if adopt:
            _adopt(connection, key.id)
    return key, secret


def _refuse_name(name: str) -> None:
    if not name.strip() or len(name) > MAX_NAME or not name.isprintable():
        raise TaskRejected(
            f"a key's name has 1 to {MAX_NAME} printable characters, such as who uses it", reason="name"
        )


def _refuse_second(connection: Connection, name: str) -> None:
    same = select(ApiKeyRow.id).where(ApiKeyRow.name == name, ApiKeyRow.revoked_at.is_(None))
    key_id = connection.execute(same).scalar()
    if key_id is not None:
        raise TaskRejected(
            f"the key {key_id} has the name {name!r} and works: choose another name, or revoke that one first",
            reason="name",
        )


def _adopt(connection: Connection, key_id: str) -> None:
    for table in (SubmissionRow, IdempotencyRow, UploadRow):
        connection.execute(update(table).where(table.owner == NOBODY).values(owner=key_id))


def revoke(database: SqlDatabase, named: str) -> ApiKey:
    """The key works no more, within seconds in every API process; its jobs go on.

    `named`: its id, or its name where one key alone has it: of several the one that works. Raises KeyNotFound.
    """
    with database.write() as connection:
        row = _named(connection, named)
        if row.revoked_at is None:
            now = database.now(connection)
            connection.execute(update(ApiKeyRow).where(ApiKeyRow.id == row.id).values(revoked_at=now))
            return replace(_key(row), revoked_at=now)
        return _key(row)


def _named(connection: Connection, named: str) -> Row[Any]:
    rows = connection.execute(
        select(ApiKeyRow.__table__).where((ApiKeyRow.id == named) | (ApiKeyRow.name == named))
    ).all()
    by_id = [row for row in rows if row.id == named]
    working = [row for row in rows if row.revoked_at is None]
    found = by_id or working or rows
    if not found:
        raise KeyNotFound(f"there is no API key {named[:80]!r}: `cliploop keys list` names those there are")
    if len(found) > 1:
        ids = ", ".join(row.id for row in found)
        raise KeyNotFound(f"several API keys have the name {named[:80]!r}: give the id of one ({ids})")
    return found[0]


def listed(database: SqlDatabase) -> list[ApiKey]:
    """All keys, the oldest first, revoked ones too."""
    return list(by_digest(database).values())


def by_digest(database: SqlDatabase) -> dict[str, ApiKey]:
    """The same by the digests of their secrets."""
    with database.read() as connection:
        query = select(ApiKeyRow.__table__).order_by(ApiKeyRow.created_at, ApiKeyRow.id)
        return {row.secret_digest: _key(row) for row in connection.execute(query)}


def find(keys: dict[str, ApiKey], secret: str) -> ApiKey | None:
    """The key of this secret that has not been revoked, among those of `by_digest`.

    What is compared are digests: how long it takes says nothing of a secret.
    """
    digest = digest_of(secret)
    key = keys.get(digest)
    return key if key is not None and key.revoked_at is None else None


def any_valid(database: SqlDatabase) -> bool:
    """Whether anybody holds a key that works."""
    with database.read() as connection:
        valid = select(ApiKeyRow.id).where(ApiKeyRow.revoked_at.is_(None)).limit(1)
        return connection.execute(valid).first() is not None


def jobs_of_nobody(database: SqlDatabase) -> int:
    """How many jobs were submitted while no key was asked for, and belong to none."""
    with database.read() as connection:
        query = select(func.count()).select_from(SubmissionRow).where(SubmissionRow.owner == NOBODY)
        return int(connection.execute(query).scalar_one())


def digest_of(secret: str) -> str:
    """What is stored of a secret."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _key(row: Row[Any]) -> ApiKey:
    return ApiKey(row.id, row.name, row.requests_per_minute, row.concurrent_jobs, row.created_at, row.revoked_at)
