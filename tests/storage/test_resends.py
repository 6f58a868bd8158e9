"""A request that its client sent again gives one job, whichever is stored first, in however many processes."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable

import pytest
from sqlalchemy import update

from storage.resends import REMEMBERED_SECONDS, Sending
from storage.sql import SqlDatabase
from storage.submissions import Request, find, listed, remove, repeated, submit
from storage.tables import JobRow, SubmissionRow
from tests.storage.jobs_for_tests import POLICY, TASK

OpenDatabase = Callable[[], SqlDatabase]
_numbers = itertools.count()


@pytest.fixture
def database(opened: OpenDatabase) -> SqlDatabase:
    return opened()


def now(database: SqlDatabase) -> float:
    with database.read() as connection:
        return database.now(connection)


def first(database: SqlDatabase) -> Sending:
    return Sending(again=False, came_at=now(database))


def again(database: SqlDatabase) -> Sending:
    return Sending(again=True, came_at=now(database))


def sent(database: SqlDatabase, sending: Sending, *, owner: str = "", fingerprint: str = "ab" * 32) -> str:
    request = Request(owner, "default", fingerprint=fingerprint, asked={"model": "x"}, sending=sending)
    known = repeated(database, request)
    return known or submit(database, f"job-{next(_numbers)}", TASK, POLICY, request)[0]


def test_equal_requests_that_are_no_repetitions_are_two_jobs(database: SqlDatabase) -> None:
    assert sent(database, first(database)) != sent(database, first(database))


def test_a_repetition_gives_the_latest_job_of_the_same_words_and_owner(database: SqlDatabase) -> None:
    sent(database, first(database))
    latest = sent(database, first(database))
    assert sent(database, again(database)) == latest
    assert sent(database, again(database)) == latest
    assert sent(database, again(database), owner="key-1") != latest
    assert sent(database, again(database), fingerprint="cd" * 32) != latest
    assert len(listed(database, None)) == 4


def test_a_repetition_that_comes_too_late_or_of_a_deleted_job_is_a_new_one(database: SqlDatabase) -> None:
    job_id = sent(database, first(database))
    with database.write() as connection:
        old = SubmissionRow.submitted_at - REMEMBERED_SECONDS - 1
        connection.execute(update(SubmissionRow).values(submitted_at=old))
    other = sent(database, again(database))
    assert other != job_id
    with database.write() as connection:
        connection.execute(update(JobRow).where(JobRow.id == other).values(state="failed"))
    remove(database, other, None)
    assert sent(database, again(database)) not in (job_id, other)


def test_a_request_that_its_repetition_overtook_gives_the_repetitions_job_and_only_once(
    database: SqlDatabase,
) -> None:
    slow = first(database)
    job_id = sent(database, again(database))
    assert find(database, job_id, None).asked["model"] == "x"
    assert sent(database, slow) == job_id
    assert sent(database, slow) != job_id, "another request that came as early is a job of its own"
    job_id = sent(database, Sending(again=True, came_at=now(database)), fingerprint="ef" * 32)
    assert sent(database, first(database), fingerprint="ef" * 32) != job_id, "it came after that job"


@pytest.mark.parametrize("round", range(3))
def test_a_request_and_its_repetitions_at_once_in_several_processes_are_one_job(
    opened: OpenDatabase, round: int
) -> None:
    original = opened()
    came = first(original)
    databases = [original, *(opened() for _ in range(3))]
    results: list[str] = []
    ready = threading.Barrier(len(databases))

    def send(place: int, database: SqlDatabase) -> None:
        sending = came if place == round else Sending(again=True, came_at=came.came_at)
        ready.wait()
        results.append(sent(database, sending))

    threads = [threading.Thread(target=send, args=each) for each in enumerate(databases)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == len(databases)
    assert len(set(results)) == 1
    assert len(listed(original, None)) == 1


def test_lists_go_either_way(database: SqlDatabase) -> None:
    jobs = [sent(database, first(database)) for _ in range(5)]
    oldest = [job.job.id for job in listed(database, "", oldest_first=True, limit=3)]
    rest = [job.job.id for job in listed(database, "", oldest_first=True, after=oldest[-1])]
    assert oldest + rest == jobs
    assert [job.job.id for job in listed(database, "", limit=10)] == jobs[::-1]
