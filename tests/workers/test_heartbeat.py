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


def test_a_lease_is_kept_alive_after_whatever_went_wrong_for_a_while(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    lease = take(site.database, "job/one", "holder", seconds=60.0)
    assert lease is not None
    with renewed(site.database, lease, seconds=0.3) as lost:
        with site.database.write() as connection:
            connection.exec_driver_sql("ALTER TABLE leases RENAME TO elsewhere")
        limit = time.monotonic() + 30
        while "a fault in the heartbeat" not in caplog.text and time.monotonic() < limit:
            time.sleep(0.02)
        assert "a fault in the heartbeat" in caplog.text
        with site.database.write() as connection:
            connection.exec_driver_sql("ALTER TABLE elsewhere RENAME TO leases")
        limit = time.monotonic() + 30
        while _left(site) > 1.0 and time.monotonic() < limit:
            time.sleep(0.02)
        assert _left(site) <= 1.0  # its time is now that of a beat
        assert not lost.is_set()


def _left(site: Site) -> float:
    with site.database.read() as connection:
        until = connection.exec_driver_sql("SELECT expires_at FROM leases WHERE name = 'job/one'").scalar_one()
        return float(until) - site.database.now(connection)
