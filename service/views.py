"""A job as the API shows it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, Field, ValidationError

from cliploop.estimate import Range, estimate
from cliploop.site import Site
from orchestrator.records import Policy, Spend
from service.crew import Muster
from service.hooks import HookView, hook_view
from service.tally import Tallies, Tally
from storage.jobs import State, StoredJob
from storage.submissions import Submitted, ahead_of, find, standing
from storage.tables import Priority

VIEWS_KEPT = 1024  # of a kilobyte or two


class Progress(BaseModel):
    """How far the job is. `fraction`: of the clip that is being rendered, 0 … 1; null when none is."""

    step: int | None = Field(description="The step under way; 0 is the single-shot gate.")
    max_steps: int | None
    attempt: int | None
    key: str = Field(description="The latest recorded effect, or the clip that is being rendered.")
    fraction: float | None = None


class Bounds(BaseModel):
    """From the best case to the worst."""

    least: float
    most: float


class Cost(BaseModel):
    """What the whole job may cost, by its policy; `remaining_seconds` at most, at the pace so far."""

    clips: Bounds
    video_seconds: Bounds
    vlm_calls: Bounds
    usd: Bounds
    remaining_seconds: float | None = None


class JobView(BaseModel):
    """A job: what was asked, how it stands, what it has used. Times are seconds since the epoch, UTC."""

    id: str
    object: Literal["job"] = "job"
    state: State
    reason: str | None = Field(default=None, description="Why it waits; only in state waiting.")
    outcome: str | None = Field(default=None, description="completed or exhausted; only in state succeeded.")
    message: str = ""
    at: str | None = Field(default=None, description="Where in the job it waits.")
    waits_for: str | None = Field(
        default=None, description="The worker that the job waits for, where none lives that could go on with it."
    )
    prompt: str
    preset: str
    priority: Priority
    generator: str
    planner: str
    verifier: str
    strategy: str
    seed: int
    parent_id: str | None = None
    submitted_at: float
    queue_position: int | None = Field(
        default=None, description="How many queued jobs are ahead; only in state queued."
    )
    progress: Progress
    spend: Spend
    estimate: Cost | None = None
    webhook: HookView | None = Field(default=None, description="How telling its webhook stands, if it has one.")
    links: dict[str, str]


class NewJob(JobView):
    """A job that was just submitted."""

    webhook_secret: str | None = Field(
        default=None, description="What signs the webhook's messages, where none was given. It is told only here."
    )


class JobList(BaseModel):
    """A page of jobs, newest first. `after` is the cursor of the next page, null on the last."""

    object: Literal["list"] = "list"
    data: list[JobView]
    after: str | None = None


def view(site: Site, tallies: Tallies, job: Submitted) -> JobView:
    """The job as it stands. Raises BackendUnavailable, BackendMisconfigured."""
    stored, state = job.job, job.job.state
    tally = tallies.of(site.database, stored.id)
    said = stored.policy
    return JobView(
        id=stored.id,
        state=state.state,
        reason=state.reason,
        outcome=state.outcome,
        message=state.message,
        at=state.key or None,
        waits_for=_waits_for(tallies, stored),
        prompt=str(stored.task.get("prompt", "")),
        preset=job.preset,
        priority=job.priority,
        generator=str(said.get("generator", "")),
        planner=str(said.get("planner", "")),
        verifier=str(said.get("verifier", "")),
        strategy=str(said.get("strategy", "")),
        seed=int(said.get("seed", 0)),
        parent_id=stored.parent_id,
        submitted_at=job.submitted_at,
        queue_position=ahead_of(site.database, job) if state.state == "queued" else None,
        progress=_progress(tallies, stored.id, state.state, tally, said.get("max_steps")),
        spend=tally.spend,
        estimate=_cost(said, tally, state.state),
        webhook=hook_view(site, tally, stored.id),
        links=links(stored.id),
    )


@dataclass(frozen=True)
class _Kept:
    """An answer, how its job stood, and the number of the database's changes when it stood so.

    A queued job's holds while the same workers live.
    """

    said: bytes
    standing: tuple[int, int | None]
    changes: int | None
    muster: Muster | None


class Shown:
    """Views as they are sent, kept for as long as nothing in them changes.

    While nobody commits anything the database is not even asked; else it is asked how the job stands. A running
    job is seen anew each time, for its progress is told without a commit; and one with a webhook, which is told
    when the job no longer changes.
    """

    def __init__(self, site: Site, tallies: Tallies) -> None:
        self._site, self._tallies = site, tallies
        self._kept: OrderedDict[tuple[str, str], _Kept] = OrderedDict()
        self._lock = threading.Lock()

    def known(self, job_id: str, caller: str) -> bytes | None:
        """The job as JSON, if it is known without asking the database; never waits."""
        with self._lock:
            kept = self._kept.get((job_id, caller))
        if kept is None or kept.changes is None or kept.changes != self._site.database.changes():
            return None
        crew = self._tallies.crew
        if kept.muster is not None and crew is not None and kept.muster != crew.latest:
            return None
        return kept.said

    def read(self, job_id: str, caller: str) -> bytes:
        """The job as JSON. Raises JobNotFound, BackendUnavailable, BackendMisconfigured."""
        database, crew = self._site.database, self._tallies.crew
        changes = database.changes()  # before the job is read: what is committed meanwhile makes it old
        muster = crew.look() if crew is not None else None
        stands = standing(database, job_id, caller)
        with self._lock:
            kept = self._kept.get((job_id, caller))
        if kept is not None and kept.standing == stands and kept.muster in (None, muster):
            said, muster = kept.said, kept.muster
        else:
            seen = view(self._site, self._tallies, find(database, job_id, caller))
            said = seen.model_dump_json().encode()
            if seen.state in ("running", "cancelling") or seen.webhook is not None:
                return said
            muster = muster if seen.state == "queued" else None
        with self._lock:
            self._kept[job_id, caller] = _Kept(said, stands, changes, muster)
            self._kept.move_to_end((job_id, caller))
            while len(self._kept) > VIEWS_KEPT:
                self._kept.popitem(last=False)
        return said


def links(job_id: str) -> dict[str, str]:
    """Where the parts of a job are."""
    here = f"/v1/jobs/{job_id}"
    return {
        "self": here,
        **{name: f"{here}/{name}" for name in ("events", "trajectory", "video", "contact-sheet")},
    }


def _progress(tallies: Tallies, job_id: str, state: State, tally: Tally, max_steps: int | None) -> Progress:
    known = Progress(step=tally.step, max_steps=max_steps, attempt=tally.attempt, key=tally.key)
    if state != "running":
        return known
    told = tallies.told(job_id)
    if told is None or str(told.get("key")) in tally.clips:  # of a clip that has been recorded since
        return known
    return known.model_copy(update={"key": told["key"], "fraction": told["fraction"]})


def _waits_for(tallies: Tallies, stored: StoredJob) -> str | None:
    if tallies.crew is None:
        return None
    return tallies.crew.waits_for(stored.id, stored.state.state, str(stored.policy.get("generator", "")))


def _cost(said: Any, tally: Tally, state: State) -> Cost | None:
    try:
        policy = Policy.model_validate(said)
    except ValidationError:  # of a version that had others
        return None
    whole = estimate(policy)
    cost = Cost(
        clips=_bounds(whole.clips),
        video_seconds=_bounds(whole.video_seconds),
        vlm_calls=_bounds(whole.vlm_calls),
        usd=_bounds(whole.usd),
    )
    done = (tally.step or 0) - (tally.attempt is not None)
    if state != "running" or tally.began_at is None or done < 1:
        return cost
    pace = (tally.last_at - tally.began_at) / done
    return cost.model_copy(update={"remaining_seconds": round(pace * max(0, policy.max_steps - done), 3)})


def _bounds(range: Range) -> Bounds:
    return Bounds(least=range.least, most=range.most)
