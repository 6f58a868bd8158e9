"""Asking a selector which of several attempts at the same thing is the best."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.asking import ask
from orchestrator.attempts import Start
from orchestrator.errors import BackendMisconfigured
from orchestrator.job import Job
from orchestrator.records import Answer, Attempt, Choice, View


def select(job: Job, start: Start, among: Sequence[Attempt], default: Choice) -> Choice:
    """A place in `among`, whose attempts all have a candidate; recorded under `<start.key>/select`.

    The default stands in where no ask gives a readable place that is in range. Raises OutOfBudget.
    """
    key = f"{start.key}/select"
    candidates = tuple(attempt.candidate for attempt in among if attempt.candidate is not None)

    def call(view: View) -> Answer[Choice]:
        if job.ports.selector is None:
            raise BackendMisconfigured(
                f"the policy names the selector {job.policy.selector}, which was not built"
            )
        return job.ports.selector.select(job.task, start.plan, candidates, view)

    return ask(
        job,
        key,
        Choice,
        job.view(key, start.step, start.frame, start.history),
        call,
        given={"selector": job.policy.selector, "plan": start.plan, "candidates": candidates},
        refuse=lambda choice: "" if choice.index < len(candidates) else f"index {choice.index} is out of range",
        default=default,
    ).value
