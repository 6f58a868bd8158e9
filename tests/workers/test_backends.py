"""Warm backends: built once, guarded against slowness and want of memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from cliploop.site import Site, asked_of
from orchestrator.errors import BackendFailed, BackendUnavailable
from orchestrator.ports import Frames
from orchestrator.records import Canvas, Policy, Shot
from storage.jobs import load_job
from storage.journal import read_entries
from storage.leases import hand_back, take
from tests.workers.generators import Misbehaving, rendered
from tests.workers.sites import a_site, submitted
from workers.backends import Backends, GuardedGenerator, TimedModel
from workers.desk import Desk
from workers.limits import Limits
from workers.reason import advance
from workers.render import STARTS_AT_MOST, render

CLIP = "step/1/attempt/1/clip"
QUICK = Limits(vlm_seconds=0.1, clip_seconds=0.1, grace_seconds=60.0)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with a_site(tmp_path) as site:
        yield site


def policy_of(site: Site, generator: str) -> Policy:
    return asked_of(load_job(site.database, submitted(site, generator=generator)))[1]


def a_shot() -> Shot:
    return Shot.model_construct(
        prompt="", start_frame="", num_frames=5, fps=16.0, seed=0, canvas=Canvas.model_construct()
    )


def warm(backends: Backends, policy: Policy) -> Any:
    return backends.ports(policy, lambda _key, _fraction: None, lambda: False)


def test_backends_are_built_once_and_callbacks_are_each_jobs_own(site: Site) -> None:
    policy, backends = policy_of(site, "simulated"), Backends(site, Limits())
    first = backends.ports(policy, lambda _key, _fraction: None, lambda: False)
    second = backends.ports(policy, lambda _key, _fraction: None, lambda: True)
    assert first.generator is second.generator
    assert first.planner is second.planner
    assert not first.cancelled()
    assert second.cancelled()


def test_only_one_generator_is_kept_and_the_other_is_built_again(site: Site) -> None:
    one, other = policy_of(site, "simulated"), policy_of(site, "simulated-perfect")
    backends = Backends(site, Limits())
    first = warm(backends, one).generator
    assert warm(backends, other).generator is not first
    assert warm(backends, one).generator is not first


def test_one_model_in_several_roles_is_one_object(site: Site) -> None:
    ports = warm(Backends(site, Limits()), policy_of(site, "simulated"))
    assert ports.planner is ports.router is ports.assessor


@pytest.mark.parametrize("error", [MemoryError, None])
def test_out_of_memory_once_is_survived(error: type[Exception] | None) -> None:
    inner = Misbehaving(failures=1) if error is None else Misbehaving(failures=1, error=error)
    assert len(rendered(GuardedGenerator(inner, Limits()), a_shot())) == 5
    assert len(inner.asked) == 2


def test_a_render_elsewhere_that_was_submitted_before_memory_ran_out_is_not_submitted_again() -> None:
    class Elsewhere(Misbehaving):
        resumed: ClassVar[list[str | None]] = []

        def render(self, shot: Shot, *, resume: str | None, checkpoint: Any, **listening: Any) -> Frames:
            self.resumed.append(resume)
            if resume is None:
                checkpoint("video_1")
            return super().render(shot, resume=resume, checkpoint=checkpoint, **listening)

    noted: list[str] = []
    guarded = GuardedGenerator(Elsewhere(failures=1), Limits())
    frames = guarded.render(
        a_shot(), resume=None, checkpoint=noted.append, progress=lambda _: None, cancelled=lambda: False
    )
    assert len(frames) == 5
    assert Elsewhere.resumed == [None, "video_1"]
    assert noted == ["video_1"]


def test_out_of_memory_twice_fails_the_attempt_with_a_hint() -> None:
    inner = Misbehaving(failures=9)
    with pytest.raises(BackendFailed, match=r"out of memory.*20\.00 GiB.*fewer frames"):
        rendered(GuardedGenerator(inner, Limits()), a_shot())
    assert len(inner.asked) == 2


def test_another_error_is_not_tried_again() -> None:
    inner = Misbehaving(failures=9, error=ValueError)
    with pytest.raises(ValueError, match="allocate"):
        rendered(GuardedGenerator(inner, Limits()), a_shot())
    assert len(inner.asked) == 1


def test_a_render_past_its_limit_is_a_failed_attempt_and_the_next_one_works() -> None:
    inner = Misbehaving(seconds=5.0)
    with pytest.raises(BackendFailed, match=r"stopped after 0\.1 s.*--clip-seconds"):
        rendered(GuardedGenerator(inner, QUICK), a_shot())
    inner.seconds = 0.0
    assert len(rendered(GuardedGenerator(inner, QUICK), a_shot())) == 5


def test_a_model_past_its_limit_may_answer_later() -> None:
    class Slow:
        def plan(self, _task: object, _view: object) -> None:
            rendered(Misbehaving(seconds=5.0), a_shot())

    nothing: Any = None
    with pytest.raises(BackendUnavailable, match=r"no answer within 0\.1 s"):
        TimedModel(Slow(), QUICK).plan(nothing, nothing)


def test_a_model_that_waits_longer_by_itself_is_given_that_time() -> None:
    class Patient:
        ask_seconds = 5.0

        def plan(self, _task: object, _view: object) -> str:
            rendered(Misbehaving(seconds=0.3), a_shot())
            return "answered"

    nothing: Any = None
    assert TimedModel(Patient(), QUICK).plan(nothing, nothing) == "answered"


def test_a_clip_that_ends_its_worker_again_and_again_is_a_failed_attempt(site: Site) -> None:
    job_id = submitted(site)
    desk = Desk(site, "tester")
    advance(desk, job_id)
    for _ in range(STARTS_AT_MOST):  # each of them died
        lease = take(site.database, f"clip/{job_id}/{CLIP}", "another")
        assert lease is not None
        hand_back(site.database, lease)
    render(desk, job_id, CLIP)
    (entry,) = [entry for entry in read_entries(site.database, job_id) if entry.key == CLIP]
    assert entry.kind == "failure"
    assert f"begun {STARTS_AT_MOST} times" in entry.value["message"]
