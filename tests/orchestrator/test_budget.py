"""A call that would exceed the budget is not begun; the best video is delivered all the same."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.errors import BackendFailed
from orchestrator.records import Budget
from tests.orchestrator.fakes import ACCEPT, CAPABILITIES, DONE, MOVE, NO, REJECT, reject, stage


def test_no_clip_begins_that_would_exceed_the_video_seconds() -> None:
    s = stage(budget=Budget(video_seconds=9.5))
    outcome = s.run()
    assert len(s.generator.shots) == 2
    assert s.trajectory().spend.video_seconds == 9.0
    assert outcome.video is not None
    assert "video_seconds" in outcome.reason or outcome.kind == "completed"


def test_exactly_the_budget_may_be_used() -> None:
    s = stage(budget=Budget(video_seconds=12.0))
    s.run()
    assert s.trajectory().spend.video_seconds == 12.0


def test_out_of_budget_inside_a_step_keeps_its_best_attempt() -> None:
    s = stage(verdicts=[reject(0.5)], budget=Budget(video_seconds=6.0), assessments=[NO])
    outcome = s.run()
    (step,) = s.trajectory().steps
    assert step.status == "best_effort"
    assert outcome.kind == "exhausted"
    assert outcome.video is not None
    assert outcome.video.num_frames == step.footage.num_frames


def test_one_call_is_kept_for_the_assessment() -> None:
    s = stage(budget=Budget(vlm_calls=3))
    assert s.run().kind == "completed"
    assert s.model.roles() == ["plan", "verdict", "assessment"]


def test_too_few_calls_for_a_verdict_render_nothing() -> None:
    s = stage(budget=Budget(vlm_calls=1))
    outcome = s.run()
    assert s.generator.shots == []
    assert outcome.kind == "exhausted"
    assert outcome.video is None


def test_rejected_clips_count_too() -> None:
    s = stage(verdicts=[REJECT], budget=Budget(video_seconds=12.0))
    s.run()
    assert len(s.generator.shots) == 2


def test_dollars_are_estimated_before_the_render() -> None:
    priced = CAPABILITIES.model_copy(update={"usd_per_video_second": 0.5})
    s = stage(capabilities=priced, budget=Budget(usd=4.0))
    s.run()
    assert len(s.generator.shots) == 1
    assert s.trajectory().spend.usd == 3.0


def test_wall_seconds_stop_the_job_without_counting_the_replay() -> None:
    s = stage(budget=Budget(wall_seconds=2.0))
    s.run()
    before = s.trajectory().spend
    s.run()
    assert s.trajectory().spend == before
    assert before.wall_seconds == 2.0  # plan 0.5, clip 1.0, verdict 0.5
    assert len(s.generator.shots) == 1


def test_gpu_seconds_are_foreseen_from_the_rate_seen_so_far() -> None:
    s = stage(budget=Budget(gpu_seconds=0.9))
    s.run()
    assert len(s.generator.shots) == 2


@settings(max_examples=60, deadline=None)
@given(
    st.builds(
        Budget,
        video_seconds=st.none() | st.floats(0, 30),
        vlm_calls=st.none() | st.integers(0, 15),
        usd=st.none() | st.floats(0, 8),
        vlm_tokens=st.none() | st.integers(0, 2000),
    ),
    st.lists(st.sampled_from([ACCEPT, REJECT, reject(0.6)]), min_size=1, max_size=8),
)
def test_no_budget_is_ever_exceeded(budget: Budget, verdicts: list[object]) -> None:
    priced = CAPABILITIES.model_copy(update={"usd_per_video_second": 0.25})
    s = stage(plans=[MOVE], verdicts=verdicts, budget=budget, capabilities=priced)
    s.run()
    used = s.trajectory().spend
    for name, allowed in budget.model_dump().items():
        first_call_of_unknown_size = 100 if name == "vlm_tokens" else 0
        if allowed is not None:
            assert getattr(used, name) <= allowed + first_call_of_unknown_size + 1e-6


@pytest.mark.parametrize("budget", [Budget(video_seconds=0), Budget(vlm_calls=0), Budget(wall_seconds=0)])
def test_an_empty_budget_ends_at_once_as_exhausted(budget: Budget) -> None:
    outcome = stage(budget=budget, assessments=[NO]).run()
    assert outcome.kind == "exhausted"
    assert outcome.video is None


def test_the_time_of_failed_renders_counts() -> None:
    failures: dict[int, Exception] = {1: BackendFailed("lost")}
    s = stage(plans=[MOVE, DONE], failures=failures)
    s.run()
    lost = s.trajectory().steps[0].attempts[0].spend
    assert (lost.gpu_seconds, lost.wall_seconds, lost.video_seconds) == (0.5, 0.5, 0.0)
    s = stage(failures=dict.fromkeys(range(1, 99), BackendFailed("lost")), budget=Budget(wall_seconds=1.6))
    with pytest.raises(BackendFailed):
        s.run()
    assert len(s.generator.shots) == 3


def test_tokens_for_the_assessment_are_held_back_too() -> None:
    s = stage(budget=Budget(vlm_tokens=450), max_steps=10)
    assert s.run().kind == "completed"
    assert s.trajectory().spend.vlm_tokens <= 450
