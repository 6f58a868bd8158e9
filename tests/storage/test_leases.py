"""Leases: one holder at a time, stale tokens refused, no wake-up lost. On SQLite and on PostgreSQL."""

from __future__ import annotations

import threading
import time

import pytest

from orchestrator.records import Plan
from storage.jobs import JobState, create_job
from storage.journal import SqlJournal
from storage.leases import (
    Lease,
    LeaseLost,
    forget,
    hand_back,
    is_held,
    release,
    renew,
    require,
    take,
)
from storage.sql import SqlDatabase
from tests.storage.conftest import OpenDatabase
from tests.storage.jobs_for_tests import JOB, POLICY, TASK, plan

NAME = f"job/{JOB}"


def taken(database: SqlDatabase, holder: str = "a", seconds: float = 10.0) -> Lease:
    lease = take(database, NAME, holder, seconds=seconds)
    assert lease is not None
    return lease


def test_a_lease_has_one_holder_at_a_time(opened: OpenDatabase) -> None:
    ours, theirs = opened(), opened()
    lease = taken(ours)
    assert is_held(theirs, NAME)
    assert take(theirs, NAME, "b") is None
    renew(ours, lease)


def test_who_came_while_it_was_held_is_not_forgotten(opened: OpenDatabase) -> None:
    ours, theirs = opened(), opened()
    lease = taken(ours)
    assert take(theirs, NAME, "b") is None
    again = release(ours, lease)
    assert again is not None
    assert is_held(theirs, NAME)
    assert release(ours, again) is None
    assert not is_held(theirs, NAME)
    assert taken(theirs, "b").token > lease.token


def test_no_wake_up_is_lost_between_many_threads(opened: OpenDatabase) -> None:
    """Everybody adds a message, then tries to be the one who works it off: in the end none is left."""
    database = opened()
    inbox: list[int] = []
    done: list[int] = []

    def visit(number: int) -> None:
        inbox.append(number)
        lease = take(database, NAME, str(number))
        while lease is not None:
            done.extend(inbox.pop() for _ in range(len(inbox)))
            lease = release(database, lease)

    threads = [threading.Thread(target=visit, args=(number,)) for number in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(done) == list(range(24))
    assert not is_held(database, NAME)


def test_an_expired_lease_is_taken_over_and_its_old_holder_is_refused(opened: OpenDatabase) -> None:
    ours, theirs = opened(), opened()
    old = taken(ours, seconds=0.05)
    time.sleep(0.1)
    new = taken(theirs, "b")
    assert new.token == old.token + 1
    for refused in (lambda: renew(ours, old), lambda: release(ours, old)):
        with pytest.raises(LeaseLost):
            refused()
    with ours.write() as connection, pytest.raises(LeaseLost):
        require(connection, old)
    hand_back(ours, old)
    renew(theirs, new)


def test_a_lease_that_expired_unseen_is_still_ours(opened: OpenDatabase) -> None:
    database = opened()
    lease = taken(database, seconds=0.05)
    time.sleep(0.1)
    renew(database, lease)
    assert is_held(database, NAME)


def test_a_lease_that_was_given_back_is_nobodys(opened: OpenDatabase) -> None:
    database = opened()
    lease = taken(database)
    assert take(database, NAME, "b") is None
    hand_back(database, lease)
    assert not is_held(database, NAME)
    with pytest.raises(LeaseLost):
        renew(database, lease)
    assert taken(database, "b").token == lease.token + 1


def test_a_stale_holders_entry_and_state_are_refused_by_the_database(opened: OpenDatabase) -> None:
    database = opened()
    create_job(database, JOB, TASK, POLICY)
    stale = taken(database, seconds=0.01)

    def journal(lease: Lease) -> SqlJournal:
        return SqlJournal(database, JOB, fence=lambda connection, _value: require(connection, lease))

    late = journal(stale)
    assert late.once("step/1/plan", {}, Plan, plan) == plan()
    time.sleep(0.05)
    fresh = taken(database, "b")
    before = late.entries()
    with pytest.raises(LeaseLost):
        late.once("step/2/plan", {}, Plan, plan)
    with pytest.raises(LeaseLost):
        late.set_state("failed", message="too late")
    assert late.entries() == before
    journal(fresh).set_state("waiting", reason="review")
    assert late.state() == JobState("waiting", "review")


def test_leases_go_with_their_job_and_with_no_other(opened: OpenDatabase) -> None:
    database = opened()
    for name in ("clip/a_b/1", "clip/aXb/1", "clip/a_b/2"):
        take(database, name, "w")
    with database.write() as connection:
        forget(connection, "clip/a_b/")
    assert [is_held(database, name) for name in ("clip/a_b/1", "clip/aXb/1", "clip/a_b/2")] == [
        False,
        True,
        False,
    ]


def test_a_lease_that_went_with_its_job_is_lost_to_whoever_holds_it(opened: OpenDatabase) -> None:
    database = opened()
    lease = taken(database)
    with database.write() as connection:
        forget(connection, NAME)
    for call in (renew, release):
        with pytest.raises(LeaseLost, match="gone with its job"):
            call(database, lease)
    with pytest.raises(LeaseLost), database.write() as connection:
        require(connection, lease)
    hand_back(database, lease)
