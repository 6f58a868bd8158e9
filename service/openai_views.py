"""A job as OpenAI's video API shows it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field, ValidationError

from cliploop.site import Site
from orchestrator.records import Policy
from service.tally import Tallies, Tally
from storage.jobs import FINAL_STATES, JobState, State
from storage.submissions import Submitted

DAY_SECONDS = 86_400
Status = Literal["queued", "in_progress", "completed", "failed"]
_STATUSES: dict[State, Status] = {
    "queued": "queued",
    "running": "in_progress",
    "waiting": "in_progress",
    "cancelling": "in_progress",
    "succeeded": "completed",
    "failed": "failed",
    "cancelled": "failed",
}


class VideoError(BaseModel):
    """Why there is no answer: `cancelled`, or `failed`."""

    code: str
    message: str


class JobWords(BaseModel):
    """What the native API says of the same job, which is at GET /v1/jobs/{id}."""

    state: State
    outcome: str | None = Field(
        default=None, description="completed, or exhausted: steps or budget used up, the best video delivered."
    )
    reason: str | None = Field(default=None, description="Why it waits.")
    message: str = ""


class VideoView(BaseModel):
    """A video job. Times are whole seconds since the epoch, UTC."""

    id: str
    object: Literal["video"] = "video"
    model: str
    status: Status
    progress: int = Field(
        ge=0, le=100, description="By the steps that the job may take; 100 when it is completed."
    )
    created_at: int
    completed_at: int | None = None
    expires_at: int | None = Field(default=None, description="When it is deleted, where the server deletes.")
    prompt: str
    seconds: str = Field(description="Of the video when it is completed; until then the most that it may last.")
    size: str = Field(description="Of the video when it is completed; until then of the first picture.")
    remixed_from_video_id: str | None = None
    error: VideoError | None = None
    cliploop: JobWords


class VideoList(BaseModel):
    """A page of videos. `last_id` is the cursor of the next."""

    object: Literal["list"] = "list"
    data: list[VideoView]
    first_id: str | None = None
    last_id: str | None = None
    has_more: bool = False


class DeletedVideo(BaseModel):
    """It is gone, and its files with it."""

    id: str
    object: Literal["video.deleted"] = "video.deleted"
    deleted: bool = True


def video_view(site: Site, tallies: Tallies, job: Submitted) -> VideoView:
    """The job as it stands. Raises BackendUnavailable, BackendMisconfigured."""
    state, task = job.job.state, job.job.task
    tally = tallies.of(site.database, job.job.id)
    ended_at = int(tally.last_at) if state.state in FINAL_STATES else None
    days = site.composition.settings.service.retention_days
    return VideoView(
        id=job.job.id,
        model=str(job.asked.get("model") or job.preset),
        status=_STATUSES[state.state],
        progress=_progress(tallies, job, tally),
        created_at=int(job.submitted_at),
        completed_at=ended_at,
        expires_at=None if ended_at is None or days is None else int(ended_at + days * DAY_SECONDS),
        prompt=str(task.get("prompt", "")),
        seconds=_seconds(job, tally),
        size=_size(task.get("size"), tally),
        remixed_from_video_id=job.job.parent_id,
        error=_error(state),
        cliploop=JobWords(state=state.state, outcome=state.outcome, reason=state.reason, message=state.message),
    )


def _progress(tallies: Tallies, job: Submitted, tally: Tally) -> int:
    """Never less than what was told before: a clip that is rendered again is no step back."""
    state = job.job.state.state
    if state == "succeeded":
        return 100
    if state != "queued":
        percent = _percent(tally, job.job.policy, _fraction(tallies, job.job.id, tally))
        tally.percent = max(tally.percent, percent, state == "running")
    return tally.percent


def _percent(tally: Tally, policy: Any, fraction: float) -> int:
    """Of all attempts in all steps that there may be, how many are behind; at most 99.

    Of pass@k, whose clips are rendered in any order, how many of them are there.
    """
    name, _, shots = str(policy.get("strategy")).partition("@")
    if name == "pass":
        return min(99, int(100 * (len(tally.clips) + fraction) / int(shots)))
    step, attempt = tally.furthest
    max_steps, max_attempts = int(policy.get("max_steps", 1)), int(policy.get("max_attempts", 1))
    done = min(1.0, (max(0, attempt - 1) + fraction) / max_attempts)
    return max(0, min(99, int(100 * (max(0, step - 1) + done) / max_steps)))


def _fraction(tallies: Tallies, job_id: str, tally: Tally) -> float:
    """How much of the clip that is being rendered is there."""
    told = tallies.told(job_id)
    if told is None or str(told.get("key")) in tally.clips:  # of a clip that has been recorded since
        return 0.0
    return float(told["fraction"])


def _seconds(job: Submitted, tally: Tally) -> str:
    if tally.video_seconds is not None:
        return f"{tally.video_seconds:.6g}"
    asked = job.asked.get("seconds")
    if asked is not None:
        return str(asked)
    try:
        policy = Policy.model_validate(job.job.policy)
    except ValidationError:  # of a version that had others
        return "0"
    return f"{policy.first_step_seconds + policy.step_seconds * (policy.max_steps - 1):.6g}"


def _size(picture: Any, tally: Tally) -> str:
    if tally.video_size is not None:
        return "{}x{}".format(*tally.video_size)
    return f"{picture['width']}x{picture['height']}" if picture else "0x0"


def _error(state: JobState) -> VideoError | None:
    if state.state == "cancelled":
        return VideoError(code="cancelled", message=state.message or "the job was cancelled")
    if state.state == "failed":
        return VideoError(code="failed", message=state.message or "the job failed")
    return None
