"""A lease that is kept alive: work may outlast it, and who froze learns that it was taken over."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cliploop.site import Site
from storage.leases import LeaseLost, hand_back, require, take
from storage.reaper import reap
from tests.workers.sites import a_site, submitted
from workers.heartbeat import renewed

SHORT_SECONDS = 1.0


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with a_site(tmp_path) as site:
        yield site


def test_a_clip_that_takes_longer_than_its_lease_is_begun_by_nobody_else(site: Site) -> None:
    job_id = submitted(site)
    name = f"clip/{job_id}/step/1/attempt/1/clip"
    lease = take(site.database, name, "slow", seconds=SHORT_SECONDS)
    assert lease is not None
    with renewed(site.database, lease, seconds=SHORT_SECONDS) as lost:
        until = time.monotonic() + 3 * SHORT_SECONDS
        while time.monotonic() < until:
            assert take(site.database, name, "eager") is None
            assert reap(site.database, site.messages, "reaper") == []
            time.sleep(SHORT_SECONDS / 5)
        assert not lost.is_set()
        with site.database.write() as connection:
            require(connection, lease)
    hand_back(site.database, lease)
    assert take(site.database, name, "eager") is not None


def test_who_slept_past_its_lease_learns_that_another_took_over(site: Site) -> None:
    name = f"clip/{submitted(site)}/step/1/attempt/1/clip"
    lease = take(site.database, name, "frozen", seconds=0.05)
    assert lease is not None
    time.sleep(0.1)
    other = take(site.database, name, "successor")
    assert other is not None
    with renewed(site.database, lease, seconds=0.3) as lost:
        assert lost.wait(30)
    with pytest.raises(LeaseLost), site.database.write() as connection:
        require(connection, lease)
