"""The attempts of one step: render, check, verify; on a reject evolve the prompt and keep what was good."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from orchestrator.asking import ask
from orchestrator.errors import BackendFailed
from orchestrator.evolution import QUICK_SUGGESTIONS, Evolved, evolve
from orchestrator.footage import first_frames, join, last_good_index, still, whole
from orchestrator.frame_counts import clip_seconds, frames_for, retry_seconds
from orchestrator.job import Job
from orchestrator.ports import Call
from orchestrator.records import (
    CONFIDENCE_VALUE,
    ArtifactKey,
    Attempt,
    Check,
    Clip,
    Plan,
    Prefix,
    Progressed,
    Rendered,
    Shot,
    Spend,
    Verdict,
)
from orchestrator.rendering import Render
from orchestrator.seeds import attempt_seed

PROGRESS_ORDER = {"none": 0, "partial": 1, "complete": 2}


@dataclass(frozen=True)
class Start:
    """Where a step begins. `key` is `step/<t>` or `gate`; `step` is 0 for the gate."""

    key: str
    step: int
    frame: ArtifactKey
    plan: Plan
    history: tuple[Progressed, ...] = ()
    must_finish: bool = False  # nobody plans the rest: a right but unfinished action is not enough


def attempt_until_accepted(
    job: Job, start: Start, indices: Iterable[int], suggestions: tuple[str, ...] = ()
) -> Attempt | None:
    """Make attempts until one is accepted; all of them, in order, are on the tape. Raises OutOfBudget."""
    prefix: Prefix | None = None
    for index in indices:
        evolved = evolve(start.plan.instruction, suggestions, job.policy.capabilities.prompt_chars)
        attempt = _attempt(job, start, index, evolved, prefix)
        verdict = attempt.verdict
        if verdict is None:
            continue
        if verdict.decision == "accept":
            return attempt
        suggestions = (*suggestions, verdict.suggestion)
        prefix = keep(job, f"{start.key}/attempt/{index}/cut", attempt)
    return None


def _attempt(job: Job, start: Start, index: int, evolved: Evolved, prefix: Prefix | None) -> Attempt:
    key = f"{start.key}/attempt/{index}"
    shot = plan_shot(job, start, index, evolved.prompt, prefix)
    notes = tuple(f"did not fit into the prompt: {text}" for text in evolved.dropped)
    attempt = Attempt(index=index, shot=shot, kept=prefix, notes=notes)
    seconds = clip_seconds(shot.num_frames, shot.fps)
    usd = seconds * job.policy.capabilities.usd_per_video_second
    job.ledger.afford(video_seconds=seconds, usd=usd, vlm_calls=1)
    try:
        rendered = render(job, key, shot)
    except BackendFailed as failure:
        job.ledger.add(failure.spend)
        return job.tape.note(attempt.model_copy(update={"failed": str(failure), "spend": failure.spend}))
    job.ledger.add(rendered.spend)
    job.ledger.vlm_calls_kept = 1
    attempt = job.tape.note(with_candidate(job, attempt, rendered))  # stays if no verdict can be had
    check = check_candidate(job, key, attempt)
    verdict, spend = _judge(job, start, key, attempt, check)
    return job.tape.note(
        attempt.model_copy(update={"check": check, "verdict": verdict, "spend": rendered.spend + spend})
    )


def plan_shot(job: Job, start: Start, index: int, prompt: str, prefix: Prefix | None) -> Shot:
    """The shot of an attempt: a full retry has the step's own seconds, a partial one what is left."""
    policy = job.policy
    own_seconds = policy.first_step_seconds if start.step <= 1 else policy.step_seconds
    kept_frames = prefix.footage.num_frames if prefix else 0
    seconds = retry_seconds(own_seconds, kept_frames, policy.fps) if prefix else own_seconds
    num_frames = frames_for(seconds, policy.fps, policy.capabilities)
    return Shot(
        prompt=prompt,
        start_frame=prefix.last_frame if prefix else start.frame,
        seconds=clip_seconds(num_frames, policy.fps),
        num_frames=num_frames,
        fps=policy.fps,
        seed=attempt_seed(policy.seed, start.step, index),
        canvas=policy.canvas.size,
        denoising_steps=policy.denoising_steps,
        guidance=policy.guidance,
    )


def render(job: Job, key: str, shot: Shot) -> Rendered:
    """The recorded clip of an attempt, or render it. Raises BackendFailed, Suspended."""
    call = render_call(job, key, shot)
    return job.journal.once(call.key, call.inputs, call.kind, call.effect)


def render_call(job: Job, key: str, shot: Shot) -> Call[Rendered]:
    """The entry of an attempt's clip. `key` is the attempt's."""
    work = Render(key=f"{key}/clip", shot=shot, policy=job.policy, ports=job.ports, journal=job.journal)

    def effect() -> Rendered:
        job.stop_if_cancelled()
        return work()

    return Call(work.key, job.inputs(shot=shot), Rendered, effect)


def with_candidate(job: Job, attempt: Attempt, rendered: Rendered) -> Attempt:
    """The attempt with what was rendered, and what is to be said of that."""
    clip, shot = rendered.clip, attempt.shot
    before = attempt.kept.footage if attempt.kept else still(shot.start_frame, clip.fps)
    earlier = {
        other.index: other.clip
        for other in job.tape.attempts
        if other.index < attempt.index and other.clip is not None
    }
    notes = (*attempt.notes, *clip_notes(shot, clip, earlier))
    candidate = join(before, whole(clip))
    return attempt.model_copy(
        update={"clip": clip, "candidate": candidate, "notes": notes, "spend": rendered.spend}
    )


def clip_notes(shot: Shot, clip: Clip, earlier: Mapping[int, Clip]) -> Iterator[str]:
    """What is to be said of a clip: frames like an earlier attempt's, and what is otherwise than asked."""
    alike = [str(index) for index, other in earlier.items() if other.frames_digest == clip.frames_digest]
    if alike:
        yield f"the same frames as attempt {', '.join(alike)}, although the seed differs"
    if clip.num_frames != shot.num_frames or clip.rendered_size != shot.canvas:
        yield (
            f"asked for {shot.num_frames} frames of {shot.canvas}, "
            f"rendered {clip.num_frames} of {clip.rendered_size}"
        )


def check_candidate(job: Job, key: str, attempt: Attempt) -> Check:
    """Quick checks, without a VLM."""
    call = check_call(job, key, attempt)
    return job.journal.once(call.key, call.inputs, call.kind, call.effect)


def check_call(job: Job, key: str, attempt: Attempt) -> Call[Check]:
    """The entry of an attempt's quick checks. `key` is the attempt's, which has a clip."""
    candidate, clip = attempt.candidate, attempt.clip
    assert candidate is not None
    assert clip is not None
    least = job.policy.capabilities.first_frame_psnr_min
    limit = 0.0 if job.policy.allow_unchainable else least

    def effect() -> Check:
        check = job.ports.editor.check(candidate, clip, job.first_picture, psnr_min=limit)
        if clip.first_frame_psnr >= least or check.failure is not None:
            return check
        note = f"the clip does not begin with its start frame ({clip.first_frame_psnr:.1f} dB of {least:g})"
        return check.model_copy(update={"notes": (note, *check.notes)})

    return Call(f"{key}/check", job.inputs(candidate=candidate, limit=limit), Check, effect)


def _judge(job: Job, start: Start, key: str, attempt: Attempt, check: Check) -> tuple[Verdict, Spend]:
    if check.failure is not None:
        suggestion = QUICK_SUGGESTIONS[check.failure]
        return Verdict(
            decision="reject",
            confidence="high",
            failure=check.failure,
            reason=check.reason,
            suggestion=suggestion,
            source="quick_check",
        ), Spend()
    candidate = attempt.candidate
    assert candidate is not None
    answer = ask(
        job,
        f"{key}/verdict",
        Verdict,
        job.view(f"{key}/verdict", start.step, start.frame, start.history),
        lambda view: job.ports.verifier.verify(
            job.task, start.plan, attempt.shot.prompt, candidate, check.notes, view
        ),
        given={
            "verifier": job.policy.verifier,
            "plan": start.plan,
            "prompt": attempt.shot.prompt,
            "candidate": candidate,
            "notes": check.notes,
        },
        refuse=lambda verdict: verdict.reason or "unclear" if verdict.decision == "unclear" else "",
    )
    return settle(answer.value, start.plan, must_finish=start.must_finish), answer.spend


def settle(verdict: Verdict, plan: Plan, *, must_finish: bool) -> Verdict:
    """Right but unfinished is accepted, except where the action must be finished: then all of it is kept.

    The next attempt is asked for the remainder: in the verifier's words, or in ours if it has none.
    """
    if verdict.decision != "accept" or verdict.progress != "partial" or not must_finish:
        return verdict
    remainder = verdict.suggestion or f"So far it is right: continue from here to the end. {plan.target_state}"
    return verdict.model_copy(
        update={
            "decision": "reject",
            "failure": "incomplete",
            "reason": "; ".join(
                part for part in ("unfinished, and this step must finish", verdict.reason) if part
            ),
            "good_fraction": 1.0,
            "suggestion": remainder.strip(),
        }
    )


def keep(job: Job, key: str, attempt: Attempt) -> Prefix | None:
    """What is kept of a rejected candidate: frames 0 … k, and frame k as picture; None if nothing is."""
    candidate, verdict = attempt.candidate, attempt.verdict
    if candidate is None or verdict is None:
        return None
    last = last_good_index(verdict.good_fraction, candidate.num_frames)
    if last is None:
        return None

    def effect() -> Prefix:
        picture = job.ports.editor.frame(candidate, last)
        return Prefix(footage=first_frames(candidate, last + 1), last_frame=picture)

    return job.journal.once(key, job.inputs(candidate=candidate, last=last), Prefix, effect)


def rank(attempt: Attempt) -> tuple[int, float, float, int]:
    """Larger is better: progress, then good fraction, then confidence, then the earliest."""
    verdict = attempt.verdict or Verdict(decision="unclear", confidence="low")
    return (
        PROGRESS_ORDER[verdict.progress],
        verdict.good_fraction,
        CONFIDENCE_VALUE[verdict.confidence],
        -attempt.index,
    )
