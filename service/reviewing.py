"""POST …/review: a person lets a waiting job go on, or gives the verdict that it waits for.

A verdict is recorded by the loop itself: it is played up to the verdict that is missing, with the person in the
place of the verifier, under the job's lease. So it stands under the same key, with the same digest, as a model's.
"""

from __future__ import annotations

import contextlib
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from sqlalchemy import Connection

from cliploop.asked import SystemClock
from cliploop.site import Site, asked_of, process_name
from orchestrator.errors import BackendUnavailable, CliploopError, JobCancelled, Suspended
from orchestrator.loop import run
from orchestrator.records import Answer, FailureKind, Footage, Plan, Policy, Progress, Task, Verdict, View
from orchestrator.trajectory import ReadOnlyJournal
from service.callers import Caller, JobId, TheSite
from service.problems import Refused, documented
from service.reading import NO_PORTS
from service.submitting import wake
from service.tally import Tallies
from service.views import JobView, view
from storage import references
from storage.jobs import StoredJob
from storage.journal import EntryConflict, Event, SqlJournal
from storage.leases import Lease, LeaseLost, hand_back, require, take
from storage.submissions import find, take_up

router = APIRouter(prefix="/v1/jobs/{job_id}")
_AWAITED = re.compile(r"/verdict/try/\d+$")
_REASONS_OF_VERDICTS = ("review", "unclear")


class Judgement(BaseModel):
    """A person's verdict of the candidate that the job waits with."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    decision: Literal["accept", "reject"]
    progress: Progress | None = Field(default=None, description="complete if accepted, none if rejected.")
    failure: FailureKind | None = Field(default=None, description="What is wrong with a rejected one.")
    reason: str = Field(default="", max_length=10_000)
    suggestion: str = Field(default="", max_length=10_000, description="What the next attempt is told.")
    good_fraction: float | None = Field(
        default=None, ge=0, le=1, description="How much of it, from its start, is good and kept."
    )

    def verdict(self) -> Verdict:
        """The record."""
        accepted = self.decision == "accept"
        good = (1.0 if accepted else 0.0) if self.good_fraction is None else self.good_fraction
        return Verdict(
            decision=self.decision,
            progress=self.progress or ("complete" if accepted else "none"),
            confidence="high",
            failure=None if accepted else self.failure or "other",
            reason=self.reason,
            suggestion=self.suggestion,
            good_fraction=good,
            source="person",
        )


class Review(BaseModel):
    """One of the two: `action` to let it try again, `verdict` where a person's is asked for."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"oneOf": [{"required": ["action"]}, {"required": ["verdict"]}]}
    )

    action: Literal["resume"] | None = None
    verdict: Judgement | None = None
    at: str | None = Field(
        default=None,
        max_length=200,
        pattern="^(gate|step/[0-9]+)/attempt/[0-9]+$",
        description="The attempt that the verdict is about; refused if the job waits with another one.",
        examples=["step/2/attempt/1"],
    )


@router.post(
    "/review",
    response_model=JobView,
    responses=documented(400, 404, 409, 413, 415),
    summary="Let a waiting job go on",
)
def review_job(request: Request, site: TheSite, caller: Caller, job_id: JobId, review: Review) -> JobView:
    """Take it up again, or give the verdict that it waits for. 409 where it does not wait, or not for that."""
    stored = find(site.database, job_id, caller).job
    if (review.action is None) == (review.verdict is None):
        raise Refused(422, "invalid", "send either action or verdict")
    if stored.state.state != "waiting":
        raise Refused(409, "illegal_state", f"job {job_id} is {stored.state.state}: it waits for nobody")
    if review.verdict is not None:
        _judge(site, stored, review.verdict.verdict(), review.at)
    else:
        _refuse_resuming(site, stored)
        take_up(site.database, job_id)
    wake(site, job_id)
    tallies: Tallies = request.app.state.tallies
    return view(site, tallies, find(site.database, job_id, caller))


def _refuse_resuming(site: Site, stored: StoredJob) -> None:
    state = stored.state
    if state.reason == "changed":
        found = re.match(r"step/(\d+)/", state.key)
        step = f"step {found[1]}" if found else "step 1"
        raise Refused(
            409,
            "changed",
            f"job {stored.id} cannot go on, its records no longer fit: fork it from {step}"
            f" (POST /v1/jobs/{stored.id}/fork). {state.message}",
        )
    attempt = _attempt(_next(site, stored)[2]) if state.reason == "review" else ""
    if attempt:
        what = f"job {stored.id} waits for a verdict of {attempt}: send verdict. {state.message}"
        raise Refused(409, "verdict_awaited", what)


def _attempt(key: str) -> str:
    """The attempt whose verdict is missing under that key; "" if it is no verdict's."""
    found = _AWAITED.search(key)
    return "" if found is None else key[: found.start()]


def _judge(site: Site, stored: StoredJob, verdict: Verdict, at: str | None) -> None:
    """Record it. Raises Refused, BackendUnavailable."""
    lease = take(site.database, f"job/{stored.id}", f"{process_name('review')}:{secrets.token_hex(4)}")
    if lease is None:
        raise BackendUnavailable(f"somebody works on job {stored.id} just now: send the verdict again")
    try:
        task, policy, key = _next(site, stored)
        state, attempt = stored.state, _attempt(key)
        if state.reason not in _REASONS_OF_VERDICTS or not attempt:
            what = f"job {stored.id} waits for another thing ({state.reason}): {state.message}"
            raise Refused(409, "no_verdict_awaited", what)
        if at not in (None, attempt):
            what = f"job {stored.id} waits with {attempt}, not with {at}: look at that one"
            raise Refused(409, "other_attempt", what)
        _record(site, stored.id, lease, task, policy, key, verdict)
    finally:
        hand_back(site.database, lease)


def _next(site: Site, stored: StoredJob) -> tuple[Task, Policy, str]:
    """What the job was asked, and the key that its journal lacks. Raises Refused."""
    try:
        task, policy = asked_of(stored)
    except ValidationError as error:
        raise Refused(409, "other_version", f"job {stored.id} was stored by another version") from error
    try:
        run(task, policy, NO_PORTS, ReadOnlyJournal(SqlJournal(site.database, stored.id)))
    except Suspended as missing:
        return task, policy, missing.keys[0]
    except CliploopError:  # it stops before any effect
        pass
    return task, policy, ""


def _record(
    site: Site, job_id: str, lease: Lease, task: Task, policy: Policy, key: str, verdict: Verdict
) -> None:
    def fence(connection: Connection, value: Mapping[str, Any]) -> None:
        require(connection, lease)
        references.hold(connection, job_id, value)

    def tell(event: Event) -> None:
        sequence = getattr(event, "sequence", None)
        if sequence is not None:
            with contextlib.suppress(BackendUnavailable):
                site.messages.tell(job_id, {"sequence": sequence})

    ports = replace(NO_PORTS, verifier=_Person(verdict), clock=SystemClock())
    journal = SqlJournal(site.database, job_id, watcher=tell, runnable=lambda each: each == key, fence=fence)
    try:
        run(task, policy, ports, journal)
    except Suspended:  # the verdict is recorded: what follows is for the workers
        pass
    except JobCancelled as error:
        raise Refused(409, "illegal_state", f"{error}: it waits for nobody") from error
    except (LeaseLost, EntryConflict) as error:
        raise BackendUnavailable(
            f"somebody else went on with job {job_id} meanwhile: look at it again"
        ) from error


class _Person:
    """A verifier that has made up its mind."""

    def __init__(self, verdict: Verdict) -> None:
        self._verdict = verdict

    def verify(
        self, task: Task, plan: Plan, prompt: str, candidate: Footage, notes: Sequence[str], view: View
    ) -> Answer[Verdict]:
        """See orchestrator.ports.Verifier."""
        return Answer[Verdict](value=self._verdict, model="person")
