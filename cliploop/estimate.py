"""What a job may cost, from its policy alone: clips, video seconds, VLM calls and dollars, best case to worst."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.budget import Ledger, OutOfBudget
from orchestrator.frame_counts import clip_seconds, frames_for
from orchestrator.records import Policy
from orchestrator.shots import CALLS_TO_CHOOSE, affordable


@dataclass(frozen=True)
class Range:
    """From the best case to the worst."""

    least: float
    most: float

    def capped(self, allowed: float | None) -> Range:
        """Not above what the budget allows."""
        if allowed is None:
            return self
        return Range(min(self.least, allowed), min(self.most, allowed))


@dataclass(frozen=True)
class Estimate:
    """Best case: the first clip solves the task. Worst: every attempt of every step is rejected, twice over.

    Replies that cannot be read are asked again, at most three asks each: not counted here.
    """

    clips: Range
    video_seconds: Range
    vlm_calls: Range
    usd: Range


def estimate(policy: Policy) -> Estimate:
    """Bounds for a job with this policy, its budget respected."""
    first, later = _seconds(policy, policy.first_step_seconds), _seconds(policy, policy.step_seconds)
    if policy.num_shots:
        many = _affordable(policy, first)
        calls = 1 if many == 1 else CALLS_TO_CHOOSE
        clips, seconds, calls = Range(many, many), Range(many * first, many * first), Range(calls, calls)
    else:
        steps, renders = policy.max_steps, 2 * policy.max_attempts  # the router may ask for as many again
        gate = policy.gate == "single_shot"
        look_again = 0 if steps == 1 else 1  # the plan that says the task is done
        least_calls = 2 if gate else 3 + look_again
        clips = Range(1, steps * renders + gate)
        seconds = Range(first, renders * (first + (steps - 1) * later) + gate * first)
        calls = Range(least_calls, steps * (renders + 2) + 1 + gate)
    rate, budget = policy.capabilities.usd_per_video_second, policy.budget
    seconds = seconds.capped(budget.video_seconds)
    return Estimate(
        clips=clips,
        video_seconds=seconds,
        vlm_calls=calls.capped(budget.vlm_calls),
        usd=Range(seconds.least * rate, seconds.most * rate).capped(budget.usd),
    )


def _affordable(policy: Policy, seconds: float) -> int:
    """How many shots of the raw task its budget allows; what is only measured limits them later."""
    known = policy.budget.model_copy(update={"gpu_seconds": None, "wall_seconds": None})
    try:
        return affordable(Ledger(known), policy, seconds, policy.num_shots)
    except OutOfBudget:
        return 0


def _seconds(policy: Policy, asked: float) -> float:
    return clip_seconds(frames_for(asked, policy.fps, policy.capabilities), policy.fps)
