"""Jobs played by workers, message by message, in this process: on a real broker and a real database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cliploop.site import Site, asked_of
from media.editor import VideoEditor
from orchestrator.trajectory import trajectory_of
from storage.jobs import load_job
from storage.journal import SqlJournal, read_entries
from storage.leases import hand_back, take
from storage.queue import REASON, RENDER, render_queues
from storage.reaper import reap, reaping
from storage.submissions import cancel
from tests.workers.sites import a_site, submitted
from workers.desk import Desk
from workers.reason import advance
from workers.worker import DOES

QUEUES = (REASON, *render_queues("simulated"), *render_queues("simulated-perfect"))


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with a_site(tmp_path) as site:
        yield site


def do_next(site: Site) -> str | None:
    """Do one message, as a worker would; the function that it named, None if none is there."""
    message = site.messages.take(QUEUES, 1)
    if message is None:
        return None
    DOES[message.function](Desk(site, "tester"), message)
    return message.function


def drained(site: Site) -> int:
    """Do messages until none is left; how many."""
    count = 0
    while do_next(site) is not None:
        count += 1
    return count


def state(site: Site, job_id: str) -> str:
    return load_job(site.database, job_id).state.state


def test_a_job_runs_to_its_end_through_messages(site: Site) -> None:
    job_id = submitted(site)
    site.messages.advance(job_id)
    drained(site)
    stored = load_job(site.database, job_id)
    assert stored.state.state == "succeeded"
    task, policy = asked_of(stored)
    ports = site.ports(policy, lambda _key, _fraction: None, lambda: False)
    trajectory = trajectory_of(job_id, task, policy, ports, SqlJournal(site.database, job_id))
    assert trajectory.outcome is not None
    assert trajectory.outcome.video is not None
    clips = [entry.key for entry in read_entries(site.database, job_id) if entry.key.endswith("/clip")]
    assert len(clips) == len(set(clips)) > 0


def test_a_job_is_running_only_once_its_first_effect_is_done_or_scheduled(site: Site) -> None:
    job_id = submitted(site)
    site.messages.advance(job_id)
    assert state(site, job_id) == "queued"
    do_next(site)
    assert state(site, job_id) == "running"


def test_the_worker_that_rendered_a_clip_checks_it_and_the_job_goes_on_from_there(site: Site) -> None:
    job_id = submitted(site, generator="simulated-perfect")
    site.messages.advance(job_id)
    assert do_next(site) == "workers.reason.advance"
    assert do_next(site) == "workers.render.render"
    keys = [entry.key for entry in read_entries(site.database, job_id)]
    assert keys[-2:] == ["step/1/attempt/1/clip", "step/1/attempt/1/check"]
    drained(site)
    assert state(site, job_id) == "succeeded"


def test_a_check_that_two_processes_make_at_once_fails_no_job(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = submitted(site, generator="simulated-perfect")
    site.messages.advance(job_id)
    do_next(site)
    met = list[str]()

    def in_between(self: VideoEditor, *given: Any, **named: Any) -> Any:
        if not met:  # while the render worker checks, somebody else goes on with the job
            met.append(job_id)
            advance(Desk(site, "another"), job_id)
        return checked(self, *given, **named)

    checked = VideoEditor.check
    monkeypatch.setattr(VideoEditor, "check", in_between)
    drained(site)
    assert met
    assert state(site, job_id) == "succeeded"
    keys = [entry.key for entry in read_entries(site.database, job_id) if entry.kind != "state"]
    assert len(keys) == len(set(keys))


def test_doubled_messages_change_nothing(site: Site) -> None:
    job_id = submitted(site, generator="simulated-perfect")
    for _ in range(3):
        site.messages.advance(job_id)
    while (message := site.messages.take(QUEUES, 1)) is not None:
        for _ in range(2):
            DOES[message.function](Desk(site, "tester"), message)
    assert state(site, job_id) == "succeeded"
    keys = [entry.key for entry in read_entries(site.database, job_id) if entry.kind != "state"]
    assert len(keys) == len(set(keys))


def test_clips_of_several_jobs_interleave_on_one_worker(site: Site) -> None:
    jobs = [submitted(site, generator="simulated-perfect", seed=seed) for seed in (1, 2, 3)]
    for job_id in jobs:
        site.messages.advance(job_id)
    drained(site)
    assert [state(site, job_id) for job_id in jobs] == ["succeeded"] * 3


def test_a_job_that_has_clips_goes_before_those_that_have_none(site: Site) -> None:
    jobs = [submitted(site, generator="simulated-perfect", seed=seed) for seed in (1, 2, 3)]
    for job_id in jobs:
        site.messages.advance(job_id)
    rendered: list[str] = []
    while (message := site.messages.take(QUEUES, 1)) is not None:
        DOES[message.function](Desk(site, "tester"), message)
        if message.function == RENDER:
            rendered.append(message.arguments[0])
    assert len(rendered) > len(jobs), "a job of one clip alone shows nothing"
    assert rendered == sorted(rendered, key=jobs.index)


def test_a_queued_job_is_cancelled_at_once_and_never_starts(site: Site) -> None:
    job_id = submitted(site)
    site.messages.advance(job_id)
    assert cancel(site.database, job_id, None).state == "cancelled"
    drained(site)
    assert [entry.kind for entry in read_entries(site.database, job_id)] == ["state", "state"]


def test_a_running_job_is_cancelled_when_its_work_has_stopped(site: Site) -> None:
    job_id = submitted(site)
    site.messages.advance(job_id)
    do_next(site)
    lease = take(site.database, f"clip/{job_id}/step/1/attempt/1/clip", "a render worker")
    assert lease is not None
    assert cancel(site.database, job_id, None).state == "cancelling"
    site.messages.advance(job_id)
    drained(site)
    assert state(site, job_id) == "cancelling"
    hand_back(site.database, lease)
    site.messages.advance(job_id)
    drained(site)
    assert state(site, job_id) == "cancelled"
    assert not [entry for entry in read_entries(site.database, job_id) if entry.key.endswith("/clip")]


def test_lost_messages_are_sent_again_and_waiting_ones_are_not(site: Site) -> None:
    job_id = submitted(site, generator="simulated-perfect")
    assert reap(site.database, site.messages, "reaper") == [job_id]
    assert reap(site.database, site.messages, "reaper") == []
    do_next(site)
    site.messages._redis.flushall()
    assert reap(site.database, site.messages, "reaper") == [job_id]
    drained(site)
    assert state(site, job_id) == "succeeded"
    assert reap(site.database, site.messages, "reaper") == []


def test_a_job_that_somebody_works_on_is_not_taken_up(site: Site) -> None:
    job_id = submitted(site)
    for name in (f"job/{job_id}", f"clip/{job_id}/step/1/attempt/1/clip"):
        lease = take(site.database, name, "alive")
        assert lease is not None
        assert reap(site.database, site.messages, "reaper") == []
        hand_back(site.database, lease)
    assert reap(site.database, site.messages, "reaper") == [job_id]


def test_a_lost_message_is_sent_again_by_whoever_reaps_in_the_background(site: Site) -> None:
    job_id = submitted(site, generator="simulated-perfect")
    with reaping(site.database, site.messages, "an API process"):
        message = site.messages.take([REASON], 5)
    assert message is not None
    assert message.arguments == (job_id,)


def test_what_others_put_into_the_broker_does_not_end_who_reaps_in_the_background(site: Site) -> None:
    redis: Any = site.messages._redis
    redis.sadd("rq:queues", "rq:queue:x", "rq:queue:reason")
    redis.rpush("rq:queue:x", b"\xff\xfe")
    redis.rpush("rq:queue:reason", b"\xff\xfe")
    redis.hset("cliploop:counts", "reaped", "many")
    job_id = submitted(site, generator="simulated-perfect")
    with reaping(site.database, site.messages, "an API process"):
        taken = [site.messages.take([REASON], 5) for _ in range(2)]
    assert [message.arguments for message in taken if message] == [(job_id,)]
