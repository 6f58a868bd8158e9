"""One clip of the raw task prompt, unverified: the baseline pass@1."""

from __future__ import annotations

from orchestrator.attempts import Start, check_candidate, plan_shot, render
from orchestrator.errors import BackendFailed
from orchestrator.footage import join, still, whole
from orchestrator.frame_counts import clip_seconds
from orchestrator.job import Job
from orchestrator.records import Attempt, Footage, Plan, Step


def play_single_shot(job: Job, key: str, number: int) -> Step:
    """Render the task prompt once; quick checks are noted, nothing is judged. Raises OutOfBudget."""
    plan = Plan(instruction=job.task.prompt)
    start = Start(key, 1, job.first_picture, plan)
    shot = plan_shot(job, start, number, job.task.prompt, None)
    attempt = Attempt(index=number, shot=shot)
    seconds = clip_seconds(shot.num_frames, shot.fps)
    job.ledger.afford(video_seconds=seconds, usd=seconds * job.policy.capabilities.usd_per_video_second)
    try:
        rendered = render(job, f"{key}/attempt/{number}", shot)
    except BackendFailed as failure:
        job.ledger.add(failure.spend)
        attempt = attempt.model_copy(update={"failed": str(failure), "spend": failure.spend})
        return Step(index=1, plan=plan, attempts=(attempt,), status="empty", last_frame=job.first_picture)
    job.ledger.add(rendered.spend)
    clip = rendered.clip
    candidate: Footage = join(still(job.first_picture, clip.fps), whole(clip))
    attempt = attempt.model_copy(update={"clip": clip, "candidate": candidate, "spend": rendered.spend})
    check = check_candidate(job, f"{key}/attempt/{number}", attempt)
    attempt = attempt.model_copy(update={"check": check})
    return Step(
        index=1,
        plan=plan,
        attempts=(attempt,),
        status="unverified",
        chosen_attempt=number,
        footage=candidate,
        last_frame=clip.last_frame,
        drift=check.drift,
        spend=rendered.spend,
    )
