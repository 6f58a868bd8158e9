"""One step after its attempts: accepted, or routed, or its best attempt propagated."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.asking import ask
from orchestrator.attempts import Start, attempt_until_accepted, keep, rank
from orchestrator.budget import OutOfBudget
from orchestrator.job import Job
from orchestrator.records import (
    ArtifactKey,
    Attempt,
    Choice,
    Footage,
    Progressed,
    Route,
    Spend,
    Step,
    StepStatus,
)
from orchestrator.selecting import select


@dataclass(frozen=True)
class StepEnd:
    """A finished step, the sub-actions that replace it, and the budget's word if it ran out."""

    step: Step
    sub_actions: tuple[str, ...] = ()
    out_of_budget: OutOfBudget | None = None

    @property
    def history(self) -> tuple[Progressed, ...]:
        """What the planner is told of it: nothing if it added nothing."""
        if not self.step.footage.segments:
            return ()
        chosen = next(a for a in self.step.attempts if a.index == self.step.chosen_attempt)
        progress = chosen.verdict.progress if chosen.verdict else "none"
        return (Progressed(step=self.step.index, instruction=self.step.plan.instruction, progress=progress),)


def play_step(job: Job, start: Start) -> StepEnd:
    """Attempts 1 … M; if all were rejected the router decides, once. The best attempt is never lost."""
    job.tape.begin(start.step, start.plan)
    many = job.policy.max_attempts
    route: Route | None = None
    try:
        accepted = attempt_until_accepted(job, start, range(1, many + 1))
        if accepted is not None:
            return _end(job, start, accepted, "accepted")
        route = _route(job, start)
        if route.action == "split":
            dropped = _step(job, start, None, "split", start.frame, route=route)
            return StepEnd(dropped, sub_actions=route.sub_actions)
        if route.action == "regenerate":
            more = range(many + 1, 2 * many + 1)
            accepted = attempt_until_accepted(job, start, more, (route.suggestion,))
            if accepted is not None:
                return _end(job, start, accepted, "accepted", route)
        return _fall_back(job, start, route)
    except OutOfBudget as reason:
        end = _fall_back(job, start, route)
        return StepEnd(end.step, out_of_budget=reason)


def _route(job: Job, start: Start) -> Route:
    """One call. A split that no step is left for is a fallback, as is an unreadable route."""
    judged = [a for a in job.tape.attempts if a.verdict is not None]
    if not judged:
        return Route(action="fallback", reason="no attempt was rendered")
    key = f"{start.key}/route"
    answer = ask(
        job,
        key,
        Route,
        job.view(key, start.step, start.frame, start.history),
        lambda view: job.ports.router.route(job.task, start.plan, tuple(job.tape.attempts), view),
        given={"router": job.policy.router, "plan": start.plan, "attempts": _judgements(judged)},
        refuse=lambda route: _unusable(route, job.policy.capabilities.prompt_chars),
        default=Route(action="fallback", reason="the router gave no usable answer"),
    )
    route = answer.value
    left = job.policy.max_steps - start.step
    if route.action == "split" and (not left or not route.sub_actions):
        reason = "a split into nothing" if left else "no step is left for sub-actions"
        return route.model_copy(update={"action": "fallback", "reason": f"{reason}; {route.reason}"})
    return route


def _unusable(route: Route, limit: int) -> str:
    """Why a route is asked again: sub-actions that no generator could be told."""
    if route.action != "split":
        return ""
    if any(not action.strip() for action in route.sub_actions):
        return "a sub-action without words"
    longest = max((len(action) for action in route.sub_actions), default=0)
    return f"a sub-action of {longest} characters, the generator takes {limit}" if longest > limit else ""


def _judgements(attempts: list[Attempt]) -> list[dict[str, object]]:
    """What of the attempts counts for a digest: no measured times."""
    return [{"candidate": a.candidate, "verdict": a.verdict, "prompt": a.shot.prompt} for a in attempts]


def merged(sub_actions: tuple[str, ...], steps_left: int, limit: int) -> tuple[str, ...]:
    """One sub-action per step; what exceeds the steps that are left goes into the last.

    If that is longer than the generator's text limit, the last step is left to the planner.
    """
    if len(sub_actions) <= steps_left:
        return sub_actions
    rest = " ".join(sub_actions[max(0, steps_left - 1) :])
    return (*sub_actions[: max(0, steps_left - 1)], *((rest,) if len(rest) <= limit else ()))


def _fall_back(job: Job, start: Start, route: Route | None) -> StepEnd:
    """The best attempt, cut at its last good frame; one with nothing good adds nothing."""
    best = _best(job, start)
    kept = keep(job, f"{start.key}/best", best) if best else None
    if best is None or kept is None:
        return StepEnd(_step(job, start, None, "empty", start.frame, route=route))
    step = _step(job, start, best, "best_effort", kept.last_frame, footage=kept.footage, route=route)
    return StepEnd(step)


def _best(job: Job, start: Start) -> Attempt | None:
    judged = [a for a in job.tape.attempts if a.verdict is not None]
    if not judged:
        return None
    by_rule = max(judged, key=rank)
    if job.policy.selector is None or len(judged) == 1:
        return by_rule
    try:
        return judged[select(job, start, judged, Choice(index=judged.index(by_rule), reason="by rule")).index]
    except OutOfBudget:
        return by_rule


def _end(job: Job, start: Start, accepted: Attempt, status: StepStatus, route: Route | None = None) -> StepEnd:
    assert accepted.clip is not None
    assert accepted.candidate is not None
    step = _step(job, start, accepted, status, accepted.clip.last_frame, footage=accepted.candidate, route=route)
    return StepEnd(step)


def _step(
    job: Job,
    start: Start,
    chosen: Attempt | None,
    status: StepStatus,
    last_frame: ArtifactKey,
    *,
    footage: Footage | None = None,
    route: Route | None = None,
) -> Step:
    spend = sum((a.spend for a in job.tape.attempts), start=Spend())
    whole = chosen is not None and footage == chosen.candidate
    return Step(
        index=start.step,
        plan=start.plan,
        attempts=tuple(job.tape.attempts),
        route=route,
        status=status,
        chosen_attempt=chosen.index if chosen else None,
        footage=footage or Footage(),
        last_frame=last_frame,
        drift=chosen.check.drift if chosen and chosen.check and whole else None,
        spend=spend,
    )
