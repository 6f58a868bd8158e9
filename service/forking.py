"""POST …/retry and …/fork: a new job that goes on from an old one, which never changes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cliploop.site import Site, asked_of
from orchestrator.errors import TaskRejected
from orchestrator.faults import words
from orchestrator.loop import refuse_unplayable
from orchestrator.records import Budget, Policy
from service.asks import LARGEST, idempotency_key
from service.branching import inherited, next_step
from service.callers import Caller, JobId, TheSite
from service.hooks import Hook, checked, made_secret
from service.problems import Fault, Refused, documented
from service.reading import trajectory
from service.submitting import IDEMPOTENCY_HEADER, accepted, store
from service.tally import Tallies
from service.views import NewJob, view
from storage.digest import digest
from storage.jobs import IllegalState
from storage.journal import read_entries
from storage.submissions import Request as Requested
from storage.submissions import Submitted, find, repeated
from storage.tables import Priority
from storage.webhooks import webhook_of

router = APIRouter(prefix="/v1/jobs/{job_id}")


class Changes(BaseModel):
    """What the new job has otherwise than its parent; null = the same."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    max_steps: int | None = Field(default=None, ge=1, le=1000)
    max_attempts: int | None = Field(default=None, ge=1, le=1000)
    seed: int | None = Field(
        default=None, ge=0, le=LARGEST, description="Another seed fits no clip of before: only from step 1 on."
    )
    budget: Budget | None = Field(default=None, description="For the whole job, what is inherited included.")
    priority: Priority | None = None
    webhook: Hook | None = Field(default=None, description="Where its news goes; else where the parent's goes.")


class Fork(Changes):
    """Where the new job leaves its parent, and what it does there instead."""

    step: int = Field(ge=1, le=1000, description="The first step that is done anew.")
    instruction: str | None = Field(
        default=None, min_length=1, max_length=100_000, description="The step's action, instead of the planner's."
    )


@router.post(
    "/retry",
    status_code=202,
    response_model=NewJob,
    responses=documented(400, 404, 409, 413, 415),
    openapi_extra=IDEMPOTENCY_HEADER,
    summary="Go on after the last accepted step",
)
def retry_job(
    request: Request, site: TheSite, caller: Caller, job_id: JobId, changes: Changes | None = None
) -> Response:
    """A new job with the accepted steps of this one. 409 while this one is moving."""
    return _branched(request, site, caller, job_id, changes or Changes())


@router.post(
    "/fork",
    status_code=202,
    response_model=NewJob,
    responses=documented(400, 404, 409, 413, 415),
    openapi_extra=IDEMPOTENCY_HEADER,
    summary="Go on from a step, differently",
)
def fork_job(request: Request, site: TheSite, caller: Caller, job_id: JobId, fork: Fork) -> Response:
    """A new job with the steps of this one before `step`, whatever state this one is in."""
    return _branched(request, site, caller, job_id, fork)


def _branched(request: Request, site: Site, caller: str, job_id: str, asked: Changes) -> Response:
    parent = find(site.database, job_id, caller)
    requested = Requested(
        caller,
        parent.preset,
        asked.priority or parent.priority,
        idempotency_key=idempotency_key(request),
        fingerprint=digest({"of": job_id, "how": type(asked).__name__, **asked.model_dump(mode="json")}),
        parent_id=job_id,
    )
    new_id = repeated(site.database, requested) or _stored(site, parent, asked, requested)
    tallies: Tallies = request.app.state.tallies
    secret = made_secret(site, asked.webhook, new_id)
    return accepted(view(site, tallies, find(site.database, new_id, caller)), secret)


def _stored(site: Site, parent: Submitted, asked: Changes, requested: Requested) -> str:
    state = parent.job.state.state
    if not isinstance(asked, Fork) and state in ("queued", "running", "cancelling"):
        raise IllegalState(f"job {parent.job.id} is {state}: retry it when it has stopped, or cancel it first")
    told = trajectory(site, parent.job)
    task, before = asked_of(parent.job)
    policy = _policy(before, asked)
    policy = policy.model_copy(update={"backends_digest": site.composition.backends_digest(policy)})
    refuse_unplayable(task, policy)
    step, instruction = next_step(told.steps), None
    if isinstance(asked, Fork):
        step, instruction = asked.step, asked.instruction
        _refuse_instruction(policy, instruction)
    else:
        _refuse_completed(parent, policy)
    if step > policy.max_steps:
        raise _too_few_steps(parent.job.id, policy.max_steps, step)
    entries = read_entries(site.database, parent.job.id)
    prefix = inherited(task, policy, before.backends_digest, entries, step, instruction)
    webhook = checked(site, asked.webhook) or webhook_of(site.database, parent.job.id)
    requested = replace(requested, webhook=webhook)
    return store(site, task, policy, requested, inherited=prefix)


def _refuse_completed(parent: Submitted, policy: Policy) -> None:
    """Several shots of the whole task can be done anew, with another seed."""
    if parent.job.state.outcome == "completed" and not policy.num_shots:
        what = f"job {parent.job.id} is completed: there is nothing to retry"
        raise IllegalState(f"{what}; fork it to do one of its steps otherwise")


def _too_few_steps(job_id: str, max_steps: int, step: int) -> Refused:
    what = f"must be at least {step} for step {step}: the job may do {max_steps} steps"
    faults = [Fault(where="max_steps", message=what)]
    return Refused(422, "step", f"job {job_id}: max_steps {what}", errors=faults)


def _policy(before: Policy, asked: Changes) -> Policy:
    changed: dict[str, Any] = {
        name: getattr(asked, name) for name in ("max_steps", "max_attempts", "seed", "budget")
    }
    said = {name: value for name, value in changed.items() if value is not None}
    try:
        return Policy.model_validate({**before.model_dump(), **said})
    except ValidationError as error:
        first = error.errors()[0]
        raise TaskRejected(f"{first['loc'][0]}: {words(first)}") from error


def _refuse_instruction(policy: Policy, instruction: str | None) -> None:
    limit = policy.capabilities.prompt_chars
    if instruction is None:
        return
    if not instruction.strip():
        raise TaskRejected("the instruction is empty; say what should happen in this step", reason="instruction")
    if "\0" in instruction:
        raise TaskRejected("the instruction holds a NUL character; remove it", reason="instruction")
    if len(instruction) > limit:
        raise TaskRejected(
            f"the instruction has {len(instruction)} characters, {policy.capabilities.name} takes at most"
            f" {limit}: shorten it",
            reason="instruction",
        )
    if policy.num_shots:
        raise TaskRejected(
            f"the strategy {policy.strategy} has no plans: fork without an instruction", reason="instruction"
        )
