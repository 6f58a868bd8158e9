"""Who may record: leases with fencing tokens, so that a process that was thought dead cannot write any more.

A lease is taken for a time and renewed by a heartbeat. Its token grows with every holder; `require` inside a
write transaction refuses an older one. Who finds it taken counts up `wanted` and leaves: the holder goes on until
nobody came meanwhile, so that no wake-up is lost. It knows nothing of what is done under a lease.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, Row, bindparam, delete, func, select, update
from sqlalchemy.dialects import postgresql, sqlite

from orchestrator.errors import CliploopError
from storage.sql import SqlDatabase
from storage.tables import LeaseRow

LEASE_SECONDS = 8.0  # a killed holder's work is taken up after this and the reaper's round
_BY_NAME = LeaseRow.name == bindparam("lease")
_SELECT = select(LeaseRow.token, LeaseRow.holder, LeaseRow.expires_at, LeaseRow.wanted).where(_BY_NAME)
_WANT = update(LeaseRow).where(_BY_NAME).values(wanted=LeaseRow.wanted + 1)
_TAKE = (
    update(LeaseRow)
    .where(_BY_NAME)
    .values(token=LeaseRow.token + 1, holder=bindparam("by"), expires_at=bindparam("until"))
    .returning(LeaseRow.token, LeaseRow.wanted)
)
_HELD = (_BY_NAME, LeaseRow.token == bindparam("ours"))
_RENEW = update(LeaseRow).where(*_HELD, LeaseRow.holder != "").values(expires_at=bindparam("until"))
_RELEASE = (
    update(LeaseRow)
    .where(*_HELD, LeaseRow.holder != "", LeaseRow.wanted == bindparam("seen"))
    .values(holder="", expires_at=0.0)
)
_FREE = update(LeaseRow).where(*_HELD).values(holder="", expires_at=0.0)


class LeaseLost(CliploopError):
    """Somebody else holds it now, or the job was deleted: whatever was done under it must not be recorded."""


@dataclass(frozen=True)
class Lease:
    """A lease that was taken. `wanted` is how many had come by then."""

    name: str
    token: int
    wanted: int


def take(database: SqlDatabase, name: str, holder: str, *, seconds: float = LEASE_SECONDS) -> Lease | None:
    """Take the lease, or count up `wanted` and return None while somebody else holds it."""
    with database.write() as connection:
        _make_sure_of(connection, name)
        now = database.now(connection)
        row = connection.execute(_SELECT.with_for_update(), {"lease": name}).one()
        if row.holder and row.expires_at > now:
            connection.execute(_WANT, {"lease": name})
            return None
        taken = connection.execute(_TAKE, {"lease": name, "by": holder, "until": now + seconds}).one()
        return Lease(name, taken.token, taken.wanted)


def renew(database: SqlDatabase, lease: Lease, *, seconds: float = LEASE_SECONDS) -> None:
    """Hold it for that long from now. Raises LeaseLost.

    One that has expired but that nobody took meanwhile is still ours.
    """
    with database.write() as connection:
        until = database.now(connection) + seconds
        given = {"lease": lease.name, "ours": lease.token, "until": until}
        if connection.execute(_RENEW, given).rowcount != 1:
            raise _lost(lease)


def release(database: SqlDatabase, lease: Lease) -> Lease | None:
    """Give it back; or, if others came since, keep it and return it with what is wanted now: go on.

    Raises LeaseLost.
    """
    with database.write() as connection:
        given = {"lease": lease.name, "ours": lease.token, "seen": lease.wanted}
        if connection.execute(_RELEASE, given).rowcount == 1:
            return None
        return Lease(lease.name, lease.token, _ours(connection, lease).wanted)


def hand_back(database: SqlDatabase, lease: Lease) -> None:
    """Give it back whoever came meanwhile: the process ends, and somebody else must go on. Never fails."""
    with database.write() as connection:
        connection.execute(_FREE, {"lease": lease.name, "ours": lease.token})


def require(connection: Connection, lease: Lease) -> None:
    """Inside a write transaction: lock the lease's row and refuse a stale token. Raises LeaseLost."""
    _ours(connection, lease)


def is_held(database: SqlDatabase, name: str) -> bool:
    """Whether somebody holds the lease and is alive, as far as its time says."""
    with database.read() as connection:
        row = connection.execute(_SELECT, {"lease": name}).one_or_none()
        return row is not None and bool(row.holder) and row.expires_at > database.now(connection)


def forget(connection: Connection, prefix: str) -> None:
    """Remove the leases whose names begin so, with their job."""
    connection.execute(delete(LeaseRow).where(LeaseRow.name.startswith(prefix, autoescape=True)))


def _make_sure_of(connection: Connection, name: str) -> None:
    """The row is there; made by whoever comes first."""
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    new = {"name": name, "token": 0, "holder": "", "expires_at": 0.0, "wanted": 0}
    connection.execute(insert(LeaseRow).values(new).on_conflict_do_nothing())


def _ours(connection: Connection, lease: Lease) -> Row[int, str, float, int]:
    """Its row, locked. Raises LeaseLost: for one that went with its job too."""
    row = connection.execute(_SELECT.with_for_update(), {"lease": lease.name}).one_or_none()
    if row is None or row.token != lease.token or not row.holder:
        raise _lost(lease)
    return row


def _lost(lease: Lease) -> LeaseLost:
    return LeaseLost(
        f"the lease {lease.name} is held by somebody else now, or gone with its job: "
        "what was done under it is dropped"
    )


def any_held(database: SqlDatabase, prefix: str) -> bool:
    """Whether any lease whose name begins so is held by somebody alive."""
    with database.read() as connection:
        begins = LeaseRow.name.startswith(prefix, autoescape=True)
        held = begins, LeaseRow.holder != "", LeaseRow.expires_at > database.now(connection)
        return connection.execute(select(LeaseRow.name).where(*held).limit(1)).first() is not None


def num_held(database: SqlDatabase, prefix: str) -> int:
    """How many leases whose names begin so are held by somebody alive."""
    with database.read() as connection:
        begins = LeaseRow.name.startswith(prefix, autoescape=True)
        held = begins, LeaseRow.holder != "", LeaseRow.expires_at > database.now(connection)
        return int(connection.execute(select(func.count()).select_from(LeaseRow).where(*held)).scalar_one())
