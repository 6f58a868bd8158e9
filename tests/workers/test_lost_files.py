"""Files and folders that vanish under a job: it waits for them, and goes on when they are back."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import update

from cliploop.site import Site
from storage import retrying
from storage.artifacts import LocalArtifacts
from storage.jobs import JobState, load_job
from storage.reaper import reap
from storage.retrying import LONGEST_PAUSE_SECONDS
from storage.tables import EntryRow
from tests.workers.sites import a_site, submitted
from workers.desk import Desk
from workers.reason import advance
from workers.worker import DOES


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with a_site(tmp_path) as site:
        yield site


def worked(site: Site) -> None:
    """What the workers do with all messages there are."""
    desk = Desk(site, "worker")
    while (message := site.messages.take(["reason", "render:simulated-perfect:normal"], 1)) is not None:
        DOES[message.function](desk, message)


def begun(site: Site) -> str:
    """A job that waits for its first clip."""
    job_id = submitted(site, generator="simulated-perfect", max_steps=1)
    advance(Desk(site, "worker"), job_id)
    return job_id


def state(site: Site, job_id: str) -> JobState:
    return load_job(site.database, job_id).state


def tried_again(site: Site) -> None:
    """As if a long pause were over."""
    with site.database.write() as connection:
        connection.execute(update(EntryRow).values(recorded_at=EntryRow.recorded_at - LONGEST_PAUSE_SECONDS))
    reap(site.database, site.messages, "reaper")
    worked(site)


def files(site: Site) -> Path:
    assert isinstance(site.artifacts.store, LocalArtifacts)
    return site.artifacts.store.root


def emptied(site: Site, aside: Path) -> None:
    aside.mkdir()
    for path in files(site).iterdir():
        shutil.move(path, aside)


def test_a_job_whose_files_are_missing_waits_and_goes_on_when_they_are_back(site: Site, tmp_path: Path) -> None:
    job_id = begun(site)
    emptied(site, tmp_path / "aside")
    worked(site)
    waits = state(site, job_id)
    assert (waits.state, waits.reason) == ("waiting", "backend")
    assert "is not in" in waits.message
    assert "bring the file back, then jobs go on by themselves" in waits.message
    for path in (tmp_path / "aside").iterdir():
        shutil.move(path, files(site))
    tried_again(site)
    assert state(site, job_id).state == "succeeded"


def test_a_damaged_file_makes_the_job_wait_too(site: Site) -> None:
    job_id = begun(site)
    for path in files(site).iterdir():
        path.write_bytes(b"something else")
    worked(site)
    assert state(site, job_id).reason == "backend"
    assert "is damaged" in state(site, job_id).message


def test_a_job_whose_files_do_not_come_back_fails_in_the_end_and_says_why(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retrying, "TRIES", 1)
    job_id = begun(site)
    emptied(site, tmp_path / "aside")
    worked(site)
    for _ in range(2):
        assert state(site, job_id).state == "waiting"
        tried_again(site)
    failed = state(site, job_id)
    assert failed.state == "failed"
    assert "given up after" in failed.message
    assert "bring the file back" in failed.message


def test_a_job_waits_for_a_store_that_is_gone(site: Site, tmp_path: Path) -> None:
    job_id = begun(site)
    shutil.move(files(site), tmp_path / "aside")
    worked(site)
    assert state(site, job_id).reason == "backend"
    shutil.move(tmp_path / "aside", files(site))
    tried_again(site)
    assert state(site, job_id).state == "succeeded"


def test_a_scratch_folder_that_somebody_removed_costs_a_job_nothing(site: Site) -> None:
    job_id = begun(site)
    shutil.rmtree(site.scratch)
    worked(site)
    assert state(site, job_id).state == "succeeded"
