"""Jobs that wait for a backend or the disk: tried again later and later; a backend's fail in the end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from cliploop.site import Site
from orchestrator.errors import JobWaiting
from orchestrator.records import Token
from storage.jobs import load_job
from storage.journal import SqlJournal
from storage.reaper import reap
from storage.retrying import FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS, TRIES, pause_after, retry_waiting, waited
from storage.tables import EntryRow
from tests.workers.sites import a_site, submitted

KEY = "step/1/plan/try/1"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with a_site(tmp_path) as site:
        yield site


def waits(site: Site, job_id: str, reason: Any = "backend", key: str = KEY) -> None:
    journal = SqlJournal(site.database, job_id)
    if journal.state().state == "queued":
        journal.set_state("running")
    journal.wait(JobWaiting(reason, "no answer", key=key))


def later(site: Site, seconds: float) -> None:
    """All that happened is longer ago."""
    with site.database.write() as connection:
        connection.execute(update(EntryRow).values(recorded_at=EntryRow.recorded_at - seconds))


def state(site: Site, job_id: str) -> str:
    return load_job(site.database, job_id).state.state


@pytest.mark.parametrize("reason", ["backend", "disk"])
def test_it_is_taken_up_when_its_pause_is_over_and_not_before(site: Site, reason: str) -> None:
    job_id = submitted(site)
    waits(site, job_id, reason)
    assert retry_waiting(site.database, site.messages) == []
    later(site, FIRST_PAUSE_SECONDS)
    reap(site.database, site.messages, "reaper")
    assert state(site, job_id) == "running"
    assert site.messages.depths() == {"reason": 1}


def test_pauses_grow_up_to_a_limit() -> None:
    pauses = [pause_after(times) for times in range(1, TRIES + 1)]
    assert pauses[:3] == [30.0, 60.0, 120.0]
    assert max(pauses) == LONGEST_PAUSE_SECONDS


def test_after_so_many_tries_it_fails_with_what_it_waited_for(site: Site) -> None:
    job_id = submitted(site)
    for _ in range(TRIES):
        waits(site, job_id)
        later(site, LONGEST_PAUSE_SECONDS)
        assert retry_waiting(site.database, site.messages) == [job_id]
        assert state(site, job_id) == "running"
    waits(site, job_id)
    later(site, LONGEST_PAUSE_SECONDS)
    assert retry_waiting(site.database, site.messages) == [job_id]
    assert state(site, job_id) == "failed"
    assert load_job(site.database, job_id).state.message == f"given up after {TRIES + 1} tries: no answer"


def test_a_job_that_waits_for_another_machines_disk_is_tried_again_and_never_given_up(site: Site) -> None:
    job_id = submitted(site)
    for _ in range(TRIES + 2):
        waits(site, job_id, "disk")
        later(site, LONGEST_PAUSE_SECONDS)
        assert retry_waiting(site.database, site.messages) == [job_id]
    assert state(site, job_id) == "running"


def test_who_gets_further_has_all_tries_again(site: Site) -> None:
    job_id = submitted(site)
    waits(site, job_id)
    later(site, FIRST_PAUSE_SECONDS)
    retry_waiting(site.database, site.messages)
    SqlJournal(site.database, job_id).once("step/1/plan/try/1/note", {}, Token, Token)
    waits(site, job_id)
    found = waited(site.database, job_id)
    assert found is not None
    assert found.times == 2
    later(site, LONGEST_PAUSE_SECONDS)
    retry_waiting(site.database, site.messages)
    SqlJournal(site.database, job_id).once("step/1/check", {}, Token, Token)
    waits(site, job_id)
    found = waited(site.database, job_id)
    assert found is not None
    assert found.times == 1


@pytest.mark.parametrize("reason", ["unclear", "review", "changed"])
def test_what_a_person_must_decide_stays(site: Site, reason: str) -> None:
    job_id = submitted(site)
    waits(site, job_id, reason)
    later(site, LONGEST_PAUSE_SECONDS)
    assert retry_waiting(site.database, site.messages) == []
    assert state(site, job_id) == "waiting"
    assert waited(site.database, job_id) is None
