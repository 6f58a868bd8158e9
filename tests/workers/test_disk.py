"""A disk that is low or full: nothing is begun, nothing half-written is named, all goes on when there is room."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from cliploop.compose import Composition
from cliploop.serving import Serving
from cliploop.site import Site
from orchestrator.errors import JobWaiting
from orchestrator.ports import Frames
from storage.jobs import load_job
from storage.journal import read_entries
from storage.reaper import reap
from storage.references import keys_in
from storage.retrying import LONGEST_PAUSE_SECONDS, TRIES
from storage.submissions import take_up
from storage.tables import EntryRow
from tests.workers.sites import a_site, submitted
from workers.backends import RoomyGenerator
from workers.desk import Desk
from workers.limits import Limits
from workers.reason import advance
from workers.render import STARTS_AT_MOST, render
from workers.worker import DOES

FULL = 10.0**9  # GiB: more than any disk has
CLIP = "step/1/attempt/1/clip"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with a_site(tmp_path) as site:
        yield site


def low(site: Site) -> Site:
    """The same site on a disk that is below its mark."""
    settings = replace(site.composition.settings, service=Serving(min_free_gib=FULL))
    return replace(site, composition=Composition(settings))


def worked(site: Site, job_id: str) -> None:
    """What the workers do with all messages there are."""
    desk = Desk(site, "worker", Limits())
    advance(desk, job_id)
    for _ in range(20):
        message = site.messages.take(["reason", "render:simulated:normal"], 0.05)
        if message is None:
            return
        DOES[message.function](desk, message)


def later(site: Site, seconds: float) -> None:
    with site.database.write() as connection:
        connection.execute(update(EntryRow).values(recorded_at=EntryRow.recorded_at - seconds))


def test_with_little_disk_no_clip_is_begun_and_the_job_says_that_it_waits_for_it(site: Site) -> None:
    job_id = submitted(site)
    worked(low(site), job_id)
    state = load_job(site.database, job_id).state
    assert (state.state, state.reason) == ("waiting", "disk")
    assert "GiB are free" in state.message
    assert "free some space" in state.message
    assert CLIP not in [entry.key for entry in read_entries(site.database, job_id)]


def test_it_stays_waiting_while_there_is_no_room_and_goes_on_by_itself_when_there_is(site: Site) -> None:
    job_id = submitted(site, max_steps=1)
    worked(low(site), job_id)
    for _ in range(TRIES + 2):  # however long that takes
        later(site, LONGEST_PAUSE_SECONDS)
        reap(site.database, site.messages, "reaper", low(site).has_room)
        assert load_job(site.database, job_id).state.reason == "disk"
    reap(site.database, site.messages, "reaper", site.has_room)
    worked(site, job_id)
    assert load_job(site.database, job_id).state.state == "succeeded"


def test_a_render_that_goes_on_elsewhere_is_fetched_with_little_disk_too(site: Site) -> None:
    asked: list[str | None] = []

    class Remote:
        capabilities = site.composition.generator("simulated").capabilities

        def render(self, shot: object, *, resume: str | None, **_rest: object) -> str:
            asked.append(resume)
            return "frames"

    remote: Any = Remote()
    shot: Any = None
    roomy = RoomyGenerator(remote, low(site).require_room)

    def rendered(resume: str | None) -> Frames:
        return roomy.render(shot, resume=resume, checkpoint=print, progress=print, cancelled=lambda: False)

    assert rendered("token") == "frames"
    with pytest.raises(JobWaiting, match="GiB are free"):
        rendered(None)
    assert asked == ["token"]


def fill(folder: Path, leave_bytes: int) -> Path:
    """Take the room of a file system but for so much of it; the file to remove for room."""
    filler = folder / "filler"
    with filler.open("wb") as file:
        file.write(b"\0" * (os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize - leave_bytes))
    return filler


def test_a_disk_that_is_full_while_a_clip_is_stored_loses_nothing_and_names_nothing_half_written(
    small_file_system: Path, tmp_path: Path
) -> None:
    if not small_file_system.is_mount():
        pytest.skip("no small file system can be mounted here")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "artifacts").symlink_to(small_file_system)
    with a_site(tmp_path) as site:
        job_id = submitted(site, max_steps=1)
        before = {path.name for path in small_file_system.iterdir()}
        filler = fill(small_file_system, leave_bytes=8192)
        worked(site, job_id)
        state = load_job(site.database, job_id).state
        assert (state.state, state.reason) == ("waiting", "disk")
        assert "no room for" in state.message
        named = {key for entry in read_entries(site.database, job_id) for key in keys_in(entry.value)}
        for key in named:
            site.artifacts.read(key)
        assert {path.name for path in small_file_system.iterdir()} == {filler.name, *before, *named}
        filler.unlink()
        later(site, LONGEST_PAUSE_SECONDS)
        reap(site.database, site.messages, "reaper", site.has_room)
        worked(site, job_id)
        assert load_job(site.database, job_id).state.state == "succeeded"


def test_a_disk_that_was_low_many_times_costs_no_attempt(site: Site) -> None:
    job_id = submitted(site, generator="simulated-perfect", max_steps=1)
    desk = Desk(low(site), "worker", Limits())
    advance(desk, job_id)
    for _ in range(STARTS_AT_MOST + 2):  # where another machine's disk has room, the reaper sends it again
        render(desk, job_id, CLIP)
        assert load_job(site.database, job_id).state.reason == "disk"
        take_up(site.database, job_id)
    render(Desk(site, "worker", Limits()), job_id, CLIP)
    (entry,) = [entry for entry in read_entries(site.database, job_id) if entry.key == CLIP]
    assert entry.kind == "record"
