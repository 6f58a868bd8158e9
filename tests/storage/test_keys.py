"""API keys: made once, found by their secret, revoked for good; on SQLite and on PostgreSQL."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import select

from orchestrator.errors import TaskRejected
from storage.keys import (
    KeyNotFound,
    any_valid,
    by_digest,
    create,
    find,
    jobs_of_nobody,
    listed,
    revoke,
)
from storage.sql import SqlDatabase
from storage.submissions import Request, TooManyJobs, active, cancel, repeated, submit
from storage.submissions import find as find_job
from storage.submissions import listed as listed_jobs
from storage.tables import ApiKeyRow
from tests.storage.conftest import OpenDatabase
from tests.storage.jobs_for_tests import POLICY, TASK


def test_a_key_is_found_by_its_secret_until_it_is_revoked(opened: OpenDatabase) -> None:
    database = opened()
    assert not any_valid(database)
    key, secret = create(database, "lab", requests_per_minute=60, concurrent_jobs=2)
    other, another_secret = create(database, "laboratory")
    assert secret.startswith("clp_")
    assert len(secret) >= 40
    assert secret != another_secret
    assert find(by_digest(database), secret) == key
    assert find(by_digest(database), another_secret) == other
    for wrong in ("", "clp_", secret[:-1], secret.upper(), f"{secret} ", key.id, "clp_\ud800"):
        assert find(by_digest(database), wrong) is None
    assert revoke(database, key.id).revoked_at is not None
    assert find(by_digest(database), secret) is None
    assert any_valid(database)
    assert [each.id for each in listed(database)] == [key.id, other.id]
    first = listed(database)[0]
    assert revoke(database, key.id) == first  # once more changes nothing
    with pytest.raises(KeyNotFound):
        revoke(database, "key-nobody")


def test_a_secret_is_nowhere_in_the_database(opened: OpenDatabase) -> None:
    database = opened()
    _, secret = create(database, "lab")
    with database.read() as connection:
        rows = [dict(row._mapping) for row in connection.execute(select(ApiKeyRow.__table__))]
    assert secret not in json.dumps(rows)
    assert secret.removeprefix("clp_") not in json.dumps(rows)


@pytest.mark.parametrize(
    ("name", "limits"),
    [
        ("", {}),
        ("  ", {}),
        ("a\nb", {}),
        ("a\x1b[2J", {}),
        ("x" * 201, {}),
        ("lab", {"requests_per_minute": 0}),
        ("lab", {"concurrent_jobs": -1}),
        ("lab", {"concurrent_jobs": 2**31}),
    ],
)
def test_a_key_that_cannot_be_is_refused(opened: OpenDatabase, name: str, limits: dict[str, Any]) -> None:
    database = opened()
    with pytest.raises(TaskRejected):
        create(database, name, **limits)
    assert listed(database) == []


def test_jobs_of_nobody_are_adopted_with_their_idempotency_keys(opened: OpenDatabase) -> None:
    database = opened()
    asked = Request("", "default", idempotency_key="one", fingerprint="f")
    submit(database, "job-1", TASK, POLICY, asked)
    assert jobs_of_nobody(database) == 1
    create(database, "no")
    assert jobs_of_nobody(database) == 1
    key, _ = create(database, "yes", adopt=True)
    assert jobs_of_nobody(database) == 0
    assert find_job(database, "job-1", key.id).owner == key.id
    assert repeated(database, Request(key.id, "default", idempotency_key="one", fingerprint="f")) == "job-1"


def test_a_key_never_has_more_jobs_than_it_may_however_many_ask_at_once(opened: OpenDatabase) -> None:
    databases = [opened() for _ in range(4)]
    key, _ = create(databases[0], "lab", concurrent_jobs=3)
    start = threading.Barrier(len(databases))

    def ask(number: int) -> list[bool]:
        start.wait()
        return [_taken(databases[number], f"job-{number}-{each}", key.id) for each in range(4)]

    with ThreadPoolExecutor(len(databases)) as pool:
        taken = [each for several in pool.map(ask, range(len(databases))) for each in several]
    assert sum(taken) == 3
    assert active(databases[0], key.id) == 3
    ended = listed_jobs(databases[0], key.id)[0]
    cancel(databases[0], ended.job.id, key.id)
    assert _taken(databases[0], "job-more", key.id)
    assert not _taken(databases[0], "job-too-many", key.id)


def _taken(database: SqlDatabase, job_id: str, owner: str, limit: int | None = None) -> bool:
    try:
        return submit(database, job_id, TASK, POLICY, Request(owner, "default"), concurrent_jobs=limit)[1]
    except TooManyJobs:
        return False


def test_a_repeated_request_is_no_job_more_and_the_default_limit_is_for_keys_alone(opened: OpenDatabase) -> None:
    database = opened()
    key, _ = create(database, "lab")
    asked = Request(key.id, "default", idempotency_key="one", fingerprint="f")
    assert submit(database, "job-1", TASK, POLICY, asked, concurrent_jobs=1) == ("job-1", True)
    assert submit(database, "job-2", TASK, POLICY, asked, concurrent_jobs=1) == ("job-1", False)
    assert not _taken(database, "job-3", key.id, limit=1)
    assert all(_taken(database, f"job-of-nobody-{number}", "", limit=1) for number in range(3))


def test_a_key_is_revoked_by_its_name_where_it_alone_has_it(opened: OpenDatabase) -> None:
    database = opened()
    first, _ = create(database, "lab")
    with pytest.raises(TaskRejected, match=f"{first.id}.*works"):
        create(database, "lab")
    assert revoke(database, "lab").id == first.id
    second, _ = create(database, "lab")
    assert revoke(database, "lab").id == second.id  # the one that works
    with pytest.raises(KeyNotFound, match=f"{first.id}, {second.id}"):
        revoke(database, "lab")
    assert revoke(database, first.id).revoked_at is not None
