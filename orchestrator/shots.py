"""The raw task prompt rendered k times, of which a selector picks one: the baselines pass@1 and pass@k.

Nothing is planned and nothing is judged. Quick checks are noted and rule nothing out: the baseline has none, and
the selector sees every clip. Attempt j has the same shot, seed included, whatever k is.

What gives way to a budget, first to last: clips beyond the first, the selection, the assessment, the first clip.
A second clip is begun only if a selection and the assessment can still be paid for: else nobody could choose it.
"""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.attempts import Start, check_call, plan_shot, render_call, with_candidate
from orchestrator.budget import Ledger, OutOfBudget
from orchestrator.errors import BackendFailed
from orchestrator.frame_counts import clip_seconds
from orchestrator.job import Job
from orchestrator.ports import Call
from orchestrator.records import Attempt, Check, Choice, Footage, Plan, Policy, Rendered, Spend, Step
from orchestrator.selecting import select

CALLS_TO_CHOOSE = 2  # the selection and the assessment


def play_shots(job: Job, key: str) -> tuple[Step | None, str]:
    """Render, choose; the step, if any render was begun, and why no more was done."""
    wanted, spent = job.policy.num_shots, ""
    start = Start(key, 1, job.first_picture, Plan(instruction=job.task.prompt))
    job.tape.begin(start.step, start.plan)
    while (begun := len(job.tape.attempts)) < wanted:
        shots = {n: plan_shot(job, start, n, job.task.prompt, None) for n in range(begun + 1, wanted + 1)}
        seconds = clip_seconds(shots[wanted].num_frames, shots[wanted].fps)
        try:
            many = affordable(job.ledger, job.policy, seconds, len(shots), rendered=len(_rendered(job)))
        except OutOfBudget as reason:
            spent = str(reason)
            break
        _render(job, key, [Attempt(index=n, shot=shot) for n, shot in shots.items()][:many])
    if not job.tape.attempts:
        return None, spent
    _check(job, key)
    chosen, choice = _choose(job, start)
    return _step(job, start, chosen, choice), "; ".join(part for part in (_told(job, chosen), spent) if part)


def affordable(ledger: Ledger, policy: Policy, seconds: float, wanted: int, *, rendered: int = 0) -> int:
    """How many clips of so many seconds may be begun at once. Raises OutOfBudget if not even one may.

    Where GPU or wall time is limited it is one at a time: what a clip costs of them is known only afterwards.
    """
    limited = ledger.allowed.gpu_seconds is not None or ledger.allowed.wall_seconds is not None
    most = 1 if limited else wanted
    usd = seconds * policy.capabilities.usd_per_video_second
    for many in range(1, most + 1):
        calls = CALLS_TO_CHOOSE if rendered + many > 1 else 0
        try:
            ledger.afford(video_seconds=many * seconds, usd=many * usd, vlm_calls=calls)
        except OutOfBudget:
            if many == 1:
                raise
            return many - 1
    return most


def _render(job: Job, key: str, attempts: Sequence[Attempt]) -> None:
    """All that are missing are asked for at once; what is there already is on the tape before that."""
    calls = [render_call(job, _key(key, attempt), attempt.shot) for attempt in attempts]
    known = [_peek(job, call) for call in calls]
    for attempt, found in zip(attempts, known, strict=True):
        _note(job, attempt, found)
        if found is not None:
            job.ledger.add(found.spend)
    for attempt, before, found in zip(attempts, known, job.journal.once_all(calls), strict=True):
        _note(job, attempt, found)
        if before is None:
            job.ledger.add(found.spend)


def _peek(job: Job, call: Call[Rendered]) -> Rendered | BackendFailed | None:
    try:
        return job.journal.peek(call.key, call.kind)
    except BackendFailed as failure:
        return failure


def _note(job: Job, attempt: Attempt, found: Rendered | BackendFailed | None) -> None:
    if isinstance(found, Rendered):
        attempt = with_candidate(job, attempt, found)
    elif found is not None:
        attempt = attempt.model_copy(update={"failed": str(found), "spend": found.spend})
    job.tape.note(attempt)


def _check(job: Job, key: str) -> None:
    rendered = _rendered(job)
    checks = job.journal.once_all([check_call(job, _key(key, attempt), attempt) for attempt in rendered])
    for attempt, check in zip(rendered, checks, strict=True):
        if isinstance(check, Check):
            job.tape.note(attempt.model_copy(update={"check": check}))


def _choose(job: Job, start: Start) -> tuple[Attempt | None, Choice | None]:
    """Of two or more. The first one stands where nobody can be asked, and where no answer is of use."""
    rendered = _rendered(job)
    if not rendered:
        return None, None
    job.ledger.vlm_calls_kept = 1
    if len(rendered) == 1 or job.policy.selector is None:
        return rendered[0], None
    try:
        choice = select(job, start, rendered, Choice(index=0, reason="the first one: no usable answer"))
    except OutOfBudget as spent:
        choice = Choice(index=0, reason=f"the first one: nobody could be asked, {spent}")
    return rendered[choice.index], choice


def _step(job: Job, start: Start, chosen: Attempt | None, choice: Choice | None) -> Step:
    shown = chosen is not None and chosen.clip is not None
    return Step(
        index=start.step,
        plan=start.plan,
        attempts=tuple(job.tape.attempts),
        status="unverified" if shown else "empty",
        chosen_attempt=chosen.index if chosen else None,
        choice=choice,
        footage=(chosen.candidate if chosen else None) or Footage(),
        last_frame=chosen.clip.last_frame if chosen and chosen.clip else start.frame,
        drift=chosen.check.drift if chosen and chosen.check else None,
        spend=sum((attempt.spend for attempt in job.tape.attempts), start=Spend()),
    )


def _told(job: Job, chosen: Attempt | None) -> str:
    many = len(_rendered(job))
    if chosen is None:
        return "no clip rendered"
    return "one clip rendered" if many == 1 else f"{many} clips rendered, attempt {chosen.index} chosen"


def _rendered(job: Job) -> list[Attempt]:
    return [attempt for attempt in job.tape.attempts if attempt.clip is not None]


def _key(key: str, attempt: Attempt) -> str:
    return f"{key}/attempt/{attempt.index}"
