"""What a job may cost: bounds from the policy, never above its budget."""

from __future__ import annotations

import pytest

from cliploop.estimate import Range, estimate
from orchestrator.records import Budget
from tests.cliploop import records


def test_the_worst_case_is_every_attempt_rejected_twice_over() -> None:
    cost = estimate(records.policy(max_steps=3, max_attempts=3))
    assert cost.clips == Range(1, 18)
    assert cost.video_seconds == Range(6, 6 * (6 + 3 + 3))
    assert cost.vlm_calls == Range(4, 3 * (6 + 2) + 1)


def test_one_shot_is_one_clip() -> None:
    cost = estimate(records.policy(strategy="pass@1"))
    assert (cost.clips, cost.video_seconds, cost.vlm_calls) == (Range(1, 1), Range(6, 6), Range(1, 1))


def test_several_shots_are_so_many_clips_a_selection_and_the_assessment() -> None:
    cost = estimate(records.policy(strategy="pass@4"))
    assert (cost.clips, cost.video_seconds, cost.vlm_calls) == (Range(4, 4), Range(24, 24), Range(2, 2))


@pytest.mark.parametrize(
    ("budget", "clips", "calls"),
    [
        (Budget(video_seconds=20), 3, 2),
        (Budget(video_seconds=5), 0, 2),
        (Budget(vlm_calls=1), 1, 1),
        (Budget(vlm_calls=0), 1, 0),
        (Budget(gpu_seconds=100), 4, 2),
    ],
)
def test_of_several_shots_only_those_that_a_budget_affords_are_counted(
    budget: Budget, clips: int, calls: int
) -> None:
    cost = estimate(records.policy(strategy="pass@4", budget=budget))
    assert cost.clips == Range(clips, clips)
    assert cost.video_seconds == Range(6 * clips, 6 * clips)
    assert cost.vlm_calls == Range(calls, calls)


def test_the_gate_adds_a_clip_and_may_save_the_rest() -> None:
    cost = estimate(records.policy(gate="single_shot", max_steps=1, max_attempts=1))
    assert cost.clips == Range(1, 3)
    assert cost.vlm_calls == Range(2, 1 * 4 + 1 + 1)


def test_a_budget_caps_it() -> None:
    cost = estimate(records.policy(budget=Budget(video_seconds=10, vlm_calls=5)))
    assert cost.video_seconds == Range(6, 10)
    assert cost.vlm_calls == Range(4, 5)
