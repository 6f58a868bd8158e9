"""Worker processes: SIGTERM hands the work back at once, and a late holder records nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cliploop.site import Addresses, Site
from orchestrator.errors import JobWaiting
from storage.jobs import load_job
from storage.journal import SqlJournal, read_entries
from storage.leases import any_held, take
from storage.queue import REASON
from storage.submissions import take_up
from tests.storage.jobs_for_tests import ROOT
from tests.workers.sites import a_site, submitted
from workers.desk import Desk
from workers.reason import advance
from workers.render import render

CLIP = "step/1/attempt/1/clip"
SHORT = 3.0  # seconds; less than a lease


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with a_site(tmp_path) as site:
        yield site


def a_worker(site: Site, folder: Path, *words: str) -> subprocess.Popen[bytes]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CLIPLOOP_")}
    redis: Any = site.messages._redis
    broker = f"unix://{redis.connection_pool.connection_kwargs['path']}"
    named = Addresses(folder / "data", broker).environment()
    command = [sys.executable, "-m", "cliploop.cli", "worker", *words]
    return subprocess.Popen(command, env={**kept, **named, "PYTHONPATH": str(ROOT)}, stderr=subprocess.PIPE)


def until(true: Callable[[], bool], seconds: float) -> bool:
    limit = time.monotonic() + seconds
    while not true() and time.monotonic() < limit:
        time.sleep(0.002)
    return true()


@pytest.mark.slow
def test_a_worker_that_is_asked_to_end_hands_its_clip_back_at_once(site: Site, tmp_path: Path) -> None:
    job_id = submitted(site)
    advance(Desk(site, "tester"), job_id)
    worker = a_worker(site, tmp_path, "render", "--generator", "simulated")
    assert until(lambda: any_held(site.database, f"clip/{job_id}/"), 30)
    began = time.monotonic()
    worker.send_signal(signal.SIGTERM)
    _, err = worker.communicate(timeout=20)
    assert worker.returncode == 0, err
    assert time.monotonic() - began < SHORT
    assert not any_held(site.database, f"clip/{job_id}/")
    assert job_id in site.messages.waiting()
    advance(Desk(site, "tester"), job_id)
    render(Desk(site, "tester"), job_id, CLIP)
    assert CLIP in [entry.key for entry in read_entries(site.database, job_id)]


def test_who_lost_its_lease_records_nothing(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    job_id = submitted(site)
    desk = Desk(site, "slow")
    advance(desk, job_id)
    put = site.artifacts.put

    def overtaken(data: bytes, suffix: str) -> Any:
        with site.database.write() as connection:  # as if its time had run out, and another had come
            connection.exec_driver_sql("UPDATE leases SET expires_at = 0 WHERE name LIKE 'clip/%'")
        assert take(site.database, f"clip/{job_id}/{CLIP}", "quick") is not None
        monkeypatch.undo()
        return put(data, suffix)

    monkeypatch.setattr(site.artifacts, "put", overtaken)
    render(desk, job_id, CLIP)
    assert CLIP not in [entry.key for entry in read_entries(site.database, job_id)]


@pytest.mark.parametrize("reason", ["unclear", "backend"])
def test_a_late_message_does_not_take_up_a_job_that_waits(site: Site, reason: Any) -> None:
    job_id = submitted(site)
    desk = Desk(site, "tester")
    advance(desk, job_id)
    SqlJournal(site.database, job_id).wait(JobWaiting(reason, "for now", key=CLIP))
    advance(desk, job_id)
    assert load_job(site.database, job_id).state.state == "waiting"
    take_up(site.database, job_id)
    advance(desk, job_id)
    assert load_job(site.database, job_id).state.state == "running"
    assert site.messages.depths()["render:simulated:normal"] == 2
    assert REASON not in site.messages.depths()


@pytest.mark.slow
def test_workers_outlive_what_others_put_into_their_queues(site: Site, tmp_path: Path) -> None:
    redis: Any = site.messages._redis
    for number in range(8):
        redis.hset(f"rq:job:junk{number}", mapping={"data": "not json", "status": "queued"})
        queue = "rq:queue:reason" if number < 2 else "rq:queue:render:simulated-perfect:high"
        redis.rpush(queue, f"junk{number}", b"\xff\xfe")
    job_id = submitted(site, generator="simulated-perfect", max_steps=1)
    site.messages.advance(job_id)
    workers = [
        a_worker(site, tmp_path, "reason"),
        a_worker(site, tmp_path, "render", "--generator", "simulated-perfect"),
    ]
    try:
        assert until(lambda: load_job(site.database, job_id).state.state == "succeeded", 60)
        assert [worker.poll() for worker in workers] == [None, None]
    finally:
        for worker in workers:
            worker.terminate()
            worker.communicate(timeout=20)
