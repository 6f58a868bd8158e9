"""A worker that stood still while its artifacts were swept: what it made is not recorded, but made again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cliploop.site import Site
from orchestrator.records import ArtifactKey, Footage, Segment
from storage import references
from storage.artifacts import ArtifactMissing
from storage.journal import EntryConflict, read_entries
from storage.leases import take
from tests.workers.sites import a_site, submitted
from workers.playing import _journal

KEY = "step/1/attempt/1/cut"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with a_site(tmp_path) as site:
        yield site


def sweep(site: Site, key: ArtifactKey) -> None:
    """What the sweeper does to an artifact that nobody recorded in time."""
    with site.database.write() as connection:
        references.condemn(connection, [key], before=1e12)
    with site.database.write() as connection:
        site.artifacts.store.remove(references.forget(connection, [key]))


def test_what_was_swept_before_it_was_recorded_is_refused_and_made_again(site: Site) -> None:
    job_id = submitted(site)
    lease = take(site.database, f"job/{job_id}", "tester")
    assert lease is not None
    journal = _journal(site, job_id, lease, lambda _key: True)
    made: list[ArtifactKey] = []

    def late() -> Footage:
        key = site.artifacts.put(b"clip", ".mp4")
        made.append(key)
        if len(made) == 1:
            sweep(site, key)
        return Footage(segments=(Segment(mezzanine=key, first=0, stop=5, fps=16.0),))

    with pytest.raises(EntryConflict, match="removed before they were recorded"):
        journal.once(KEY, {}, Footage, late)
    assert KEY not in [entry.key for entry in read_entries(site.database, job_id)]
    journal.once(KEY, {}, Footage, late)
    assert site.artifacts.read(made[1]) == b"clip"
    with site.database.read() as connection:
        assert references.holds(connection, job_id, made[1])


def test_what_cannot_be_made_again_ends_the_job_with_a_clear_word_and_no_endless_loop(site: Site) -> None:
    job_id = submitted(site)
    lease = take(site.database, f"job/{job_id}", "tester")
    assert lease is not None
    journal = _journal(site, job_id, lease, lambda _key: True)
    footage = Footage(segments=(Segment(mezzanine="0" * 64 + ".mp4", first=0, stop=5, fps=16.0),))
    with pytest.raises(EntryConflict):
        journal.once(KEY, {}, Footage, lambda: footage)
    with pytest.raises(ArtifactMissing, match="bring the files back"):
        journal.once(KEY, {}, Footage, lambda: footage)
