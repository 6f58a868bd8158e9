"""pass@k on a queue: all clips are asked for at once, and whoever is free renders them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from cliploop.asked import LocalJob, SystemClock
from cliploop.local import play
from cliploop.site import Site, asked_of
from generators.simulated import SimulatedGenerator
from orchestrator.errors import BackendFailed
from orchestrator.ports import Artifacts, Inputs, Ports
from orchestrator.records import Record, Trajectory
from orchestrator.trajectory import trajectory_of
from storage.jobs import load_job
from storage.journal import SqlJournal, read_entries
from storage.queue import REASON, render_queues
from storage.reaper import reap
from storage.submissions import cancel
from tests.workers.sites import a_site, submitted
from workers.desk import Desk
from workers.worker import DOES

RENDER = render_queues("simulated")
MEASURED = ("gpu_seconds", "wall_seconds")
CLIPS = tuple(f"step/1/attempt/{j}/clip" for j in (1, 2, 3))


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with a_site(tmp_path, {"CLIPLOOP_FIRST_STEP_SECONDS": "1"}) as site:
        yield site


def three_shots(site: Site) -> str:
    """A pass@3 job that has been begun: its renders are on the queue."""
    job_id = submitted(site, strategy="pass@3")
    site.messages.advance(job_id)
    assert do_next(site, [REASON]) == (job_id,)
    return job_id


def do_next(site: Site, queues: list[str], desk: Desk | None = None, times: int = 1) -> tuple[str, ...] | None:
    message = site.messages.take(queues, 1)
    if message is None:
        return None
    for _ in range(times):
        DOES[message.function](desk or Desk(site, "tester"), message)
    return message.arguments


def drained(site: Site, times: int = 1) -> None:
    while do_next(site, [REASON, *RENDER], times=times) is not None:
        pass


def keys(site: Site, job_id: str) -> list[str]:
    return [entry.key for entry in read_entries(site.database, job_id) if entry.kind != "state"]


def told(site: Site, job_id: str) -> Trajectory:
    task, policy = asked_of(load_job(site.database, job_id))
    ports = site.ports(policy, lambda _key, _fraction: None, lambda: False)
    return trajectory_of(job_id, task, policy, ports, SqlJournal(site.database, job_id))


def state(site: Site, job_id: str) -> str:
    return load_job(site.database, job_id).state.state


def test_all_renders_are_on_the_queue_before_any_is_done(site: Site) -> None:
    job_id = three_shots(site)
    sent = [site.messages.take(RENDER, 1) for _ in CLIPS]
    assert [message.arguments for message in sent if message] == [(job_id, key) for key in CLIPS]
    assert site.messages.take(RENDER, 1) is None
    assert state(site, job_id) == "running"
    assert keys(site, job_id) == ["start"]


def test_two_workers_render_at_once_and_the_result_is_that_of_a_local_run(site: Site, tmp_path: Path) -> None:
    job_id = three_shots(site)
    met = threading.Barrier(2, timeout=30)
    rendered = SimulatedGenerator.render

    def together(self: Any, *given: Any, **named: Any) -> Any:
        if keys(site, job_id) == ["start"]:
            met.wait()
        return rendered(self, *given, **named)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(SimulatedGenerator, "render", together)
        workers = [
            threading.Thread(target=do_next, args=(site, RENDER, Desk(site, name))) for name in ("one", "two")
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    assert set(keys(site, job_id)) == {"start", *CLIPS[:2]}
    under_way = told(site, job_id).steps[0]
    assert (under_way.status, [bool(attempt.clip) for attempt in under_way.attempts]) == (
        "running",
        [True, True, False],
    )
    drained(site)
    assert state(site, job_id) == "succeeded"
    here, there = local(site, job_id, tmp_path / "local"), told(site, job_id)
    assert story(here) == story(there)
    assert here.outcome is not None
    assert here.outcome.video is not None
    assert len(there.steps[0].attempts) == 3


def local(site: Site, job_id: str, folder: Path) -> Trajectory:
    """The same job, played in one process."""
    task, policy = asked_of(load_job(site.database, job_id))
    job = LocalJob(task, policy, site.artifacts.read(task.picture), slug="maze")

    def ports(artifacts: Artifacts) -> Ports:
        return site.composition.ports(policy, artifacts, clock=SystemClock())

    ending = play(job, folder, fresh=False, make_ports=ports, watcher=Nobody())
    assert ending.trajectory is not None
    return ending.trajectory


class Nobody:
    """A watcher that looks away."""

    def began(self, key: str, inputs: Inputs) -> None: ...

    def recorded(self, key: str, inputs: Inputs, value: Record, *, remembered: bool) -> None: ...

    def lost(self, key: str, reason: str, *, remembered: bool) -> None: ...


def story(trajectory: Trajectory) -> Any:
    """All of it but its name and measured times."""

    def timeless(value: Any) -> Any:
        if isinstance(value, dict):
            items = cast("dict[str, Any]", value).items()
            return {key: timeless(item) for key, item in items if key not in MEASURED}
        return [timeless(each) for each in cast("list[Any]", value)] if isinstance(value, list) else value

    return timeless(trajectory.model_dump(mode="json", exclude={"id"}))


def test_doubled_messages_render_nothing_twice(site: Site) -> None:
    job_id = three_shots(site)
    for key in CLIPS:
        site.messages.render("simulated", "normal", job_id, key)
    drained(site, times=2)
    assert state(site, job_id) == "succeeded"
    assert len(keys(site, job_id)) == len(set(keys(site, job_id)))


def test_what_was_lost_between_two_clips_is_taken_up_again(site: Site) -> None:
    job_id = three_shots(site)
    do_next(site, RENDER)
    site.messages._redis.flushall()
    assert keys(site, job_id) == ["start", CLIPS[0]]
    assert reap(site.database, site.messages, "reaper") == [job_id]
    drained(site)
    assert state(site, job_id) == "succeeded"
    assert sorted(key for key in keys(site, job_id) if key.endswith("/clip")) == sorted(CLIPS)


def test_a_lost_render_is_no_candidate_and_the_others_go_on(site: Site) -> None:
    job_id = three_shots(site)
    rendered = SimulatedGenerator.render

    def fails(self: Any, *given: Any, **named: Any) -> Any:
        raise BackendFailed("out of memory")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(SimulatedGenerator, "render", fails)
        do_next(site, RENDER)
    assert SimulatedGenerator.render is rendered
    drained(site)
    assert state(site, job_id) == "succeeded"
    step = told(site, job_id).steps[0]
    assert [attempt.failed for attempt in step.attempts] == ["out of memory", None, None]
    assert step.chosen_attempt in (2, 3)


def test_a_cancelled_one_stops_with_what_it_has(site: Site) -> None:
    job_id = three_shots(site)
    do_next(site, RENDER)
    cancel(site.database, job_id, None)
    drained(site)
    assert state(site, job_id) == "cancelled"
    assert [bool(attempt.clip) for attempt in told(site, job_id).steps[0].attempts] == [True, False, False]
