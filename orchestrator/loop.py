"""The closed loop: plan one action, render it, verify it, repair it, stitch (CollabVR, arXiv 2605.08735).

A plain function over a journal. It knows ports, records and rules; every effect and every decision that
reads a clock goes through the journal, so that the same call goes on after a crash.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from orchestrator.asking import ask
from orchestrator.attempts import Start, attempt_until_accepted, rank
from orchestrator.budget import Ledger, OutOfBudget
from orchestrator.errors import BackendFailed, BackendMisconfigured, TaskRejected
from orchestrator.footage import join, still
from orchestrator.job import Job
from orchestrator.ports import Journal, Ports
from orchestrator.records import (
    STRATEGY_NAMES,
    ArtifactKey,
    Assessment,
    Attempt,
    Footage,
    Outcome,
    Plan,
    Policy,
    Progressed,
    Record,
    Step,
    Task,
    Video,
)
from orchestrator.shots import play_shots
from orchestrator.steps import merged, play_step


class Placed(Record):
    """The first picture on the canvas, as recorded under `start`."""

    picture: ArtifactKey


@dataclass(frozen=True)
class Ending:
    """What a strategy hands over: the accepted footage, the frame it ends on, and why it stopped."""

    footage: Footage
    frame: ArtifactKey
    history: tuple[Progressed, ...]
    reason: str


def run(task: Task, policy: Policy, ports: Ports, journal: Journal) -> Outcome:
    """Play the job to its end, or go on where its journal stops.

    Raises JobWaiting, JobCancelled, BackendFailed (nothing could be rendered), TaskRejected,
    BackendMisconfigured; Suspended where an effect must run elsewhere.
    """
    return play(Job(task, policy, ports, journal, Ledger(policy.budget)))


def play(job: Job) -> Outcome:
    """`run` on a job whose tape the caller keeps."""
    refuse_unplayable(job.task, job.policy)
    placed = job.journal.once(
        "start",
        job.inputs(canvas=job.policy.canvas),
        Placed,
        lambda: Placed(picture=job.ports.editor.place(job.task, job.policy.canvas)),
    )
    job.first_picture = placed.picture
    ending = STRATEGIES[job.policy.strategy](job)
    assessment = _assess(job, ending)
    job.tape.assessment = assessment
    outcome = _deliver(job, ending, assessment)
    job.tape.outcome = outcome
    return outcome


def refuse_unplayable(task: Task, policy: Policy) -> None:
    """Raise TaskRejected or BackendMisconfigured for what could never run; asked at submission too."""
    capabilities = policy.capabilities
    if not task.prompt.strip():
        raise TaskRejected("the prompt is empty; say what should happen in the picture", reason="empty_prompt")
    if "\0" in task.prompt:
        raise TaskRejected("the prompt holds a NUL character; remove it", reason="not_text")
    if len(task.prompt) > capabilities.prompt_chars:
        raise TaskRejected(
            f"the prompt has {len(task.prompt)} characters, {capabilities.name} takes at most "
            f"{capabilities.prompt_chars}; shorten it or choose another generator",
            reason="prompt_too_long",
        )
    if not capabilities.chainable and not policy.allow_unchainable and not policy.num_shots:
        raise BackendMisconfigured(
            f"{capabilities.name} re-imagines its first frame, so its clips cannot be chained; choose another "
            "generator, a strategy pass@k, or set allow_unchainable"
        )


def collabvr(job: Job) -> Ending:
    """Progressive planning: each plan sees what the steps before it really did."""
    gate = _gate(job)
    if gate is not None:
        return gate
    frame, footage = job.first_picture, Footage()
    history: tuple[Progressed, ...] = ()
    sub_actions: tuple[str, ...] = ()
    reason = f"all {job.policy.max_steps} steps used" if job.policy.max_steps > 1 else "the one step used"
    for t in range(1, job.policy.max_steps + 1):
        last = t == job.policy.max_steps
        start = Start(f"step/{t}", t, frame, Plan(), history, must_finish=last or len(sub_actions) > 1)
        try:
            plan = _sub_plan(sub_actions[0]) if sub_actions else _plan(job, start)
        except OutOfBudget as spent:
            reason = str(spent)
            break
        sub_actions = sub_actions[1:]
        if plan.task_complete:
            reason = "the planner sees the task done"
            break
        end = play_step(job, replace(start, plan=plan))
        job.tape.steps.append(end.step)
        job.tape.end()
        if end.step.footage.segments:
            footage, frame = join(footage, end.step.footage), end.step.last_frame
            history = (*history, *end.history)
        if end.step.status in ("accepted", "split"):
            pending, left = (*end.sub_actions, *sub_actions), job.policy.max_steps - t
            sub_actions = merged(pending, left, job.policy.capabilities.prompt_chars)
        else:
            sub_actions = ()  # they built on what did not happen: the planner looks again
        if end.out_of_budget is not None:
            reason = str(end.out_of_budget)
            break
    return Ending(footage, frame, history, reason)


def pass_at_k(job: Job) -> Ending:
    """The task prompt itself, k clips of which one is chosen, no plan and no verdict."""
    step, reason = play_shots(job, "step/1")
    job.tape.end()
    if step is None:
        return Ending(Footage(), job.first_picture, (), reason)
    job.tape.steps.append(step)
    return Ending(step.footage, step.last_frame, (), reason)


STRATEGIES: dict[str, Callable[[Job], Ending]] = {
    name: pass_at_k if name.startswith("pass@") else collabvr for name in STRATEGY_NAMES
}


def _sub_plan(instruction: str) -> Plan:
    return Plan(observation="a part of a step that was split", instruction=instruction)


def _plan(job: Job, start: Start) -> Plan:
    """The next action, or the word that the task is done."""
    limit = job.policy.capabilities.prompt_chars

    def refuse(plan: Plan) -> str:
        if not plan.task_complete and not plan.instruction.strip():
            return "an empty instruction"
        if not plan.task_complete and len(plan.instruction) > limit:
            return f"an instruction of {len(plan.instruction)} characters, the generator takes {limit}"
        return ""

    key = f"{start.key}/plan"
    return ask(
        job,
        key,
        Plan,
        job.view(key, start.step, start.frame, start.history),
        lambda view: job.ports.planner.plan(job.task, view),
        given={"planner": job.policy.planner},
        refuse=refuse,
    ).value


def _gate(job: Job) -> Ending | None:
    """The single-shot gate: the raw task is rendered once; the verifier accepts it or the loop begins."""
    if job.policy.gate != "single_shot":
        return None
    plan = Plan(instruction=job.task.prompt, target_state="The task is done.")
    start = Start("gate", 0, job.first_picture, plan, must_finish=True)
    job.tape.begin(0, plan)
    try:
        accepted = attempt_until_accepted(job, start, range(1, 2))
    except OutOfBudget:
        accepted = None
    attempts = tuple(job.tape.attempts)
    footage = accepted.candidate if accepted and accepted.candidate else Footage()
    last = accepted.clip.last_frame if accepted and accepted.clip else job.first_picture
    job.tape.gate = Step(
        index=0,
        plan=plan,
        attempts=attempts,
        status="accepted" if accepted else "empty",
        chosen_attempt=1 if accepted else None,
        footage=footage,
        last_frame=last,
    )
    job.tape.end()
    if accepted is None:
        return None
    history = (Progressed(step=0, instruction=job.task.prompt, progress="complete"),)
    return Ending(footage, last, history, "the single shot was accepted")


def _assess(job: Job, ending: Ending) -> Assessment | None:
    """One call on the task, the first picture, the last frame and the history; only it gives completed."""
    key = "final/assessment"
    try:
        return ask(
            job,
            key,
            Assessment,
            job.view(key, job.policy.max_steps, ending.frame, ending.history),
            lambda view: job.ports.assessor.assess(job.task, view),
            given={"assessor": job.policy.assessor},
            default=Assessment(task_complete=False, reason="the assessor gave no readable answer"),
            final=True,
        ).value
    except OutOfBudget:
        return None


def _deliver(job: Job, ending: Ending, assessment: Assessment | None) -> Outcome:
    footage, best_effort = ending.footage, _has_best_effort(job)
    if not footage.segments and (remedy := _unchained(job)):
        ending = replace(ending, reason=f"{ending.reason}; {remedy}")
    if not footage.segments:
        best = _best_of_all(job)
        if best is None:
            return _nothing_rendered(job, ending, assessment)
        footage, best_effort = best, True
    footage = join(still(job.first_picture, footage.segments[0].fps), footage)
    policy = job.policy
    video = job.journal.once(
        "final/video",
        job.inputs(footage=footage, canvas=policy.canvas, long_side_max=policy.deliver_long_side_max),
        Video,
        lambda: job.ports.editor.deliver(
            footage, policy.canvas, job.task.size, long_side_max=policy.deliver_long_side_max
        ),
    )
    return _outcome(ending, assessment, best_effort, video)


def _outcome(ending: Ending, assessment: Assessment | None, best_effort: bool, video: Video | None) -> Outcome:
    if assessment is not None and assessment.task_complete:
        return Outcome(kind="completed", reason=assessment.reason, best_effort=best_effort, video=video)
    doubt = f"; assessment: {assessment.reason}" if assessment else "; no budget left for the assessment"
    return Outcome(kind="exhausted", reason=ending.reason + doubt, best_effort=best_effort, video=video)


def _nothing_rendered(job: Job, ending: Ending, assessment: Assessment | None) -> Outcome:
    failures = [a.failed for a in _all_attempts(job) if a.failed]
    if failures:
        raise BackendFailed(f"the generator failed every attempt; the last: {failures[-1]}")
    return _outcome(ending, assessment, best_effort=False, video=None)


def _has_best_effort(job: Job) -> bool:
    return any(step.status in ("best_effort", "unverified") for step in job.tape.steps)


def _unchained(job: Job) -> str:
    """What to do where every clip began with another picture than it was given, else ""."""
    verdicts = [attempt.verdict for attempt in _all_attempts(job) if attempt.clip is not None]
    if not verdicts or any(verdict is None or verdict.failure != "first_frame" for verdict in verdicts):
        return ""
    return (
        f"no clip began with the picture that it was given, so clips of {job.policy.capabilities.name} cannot be"
        " chained: choose another generator (cliploop generators check says which can), strategy pass@1, or set"
        " allow_unchainable"
    )


def _best_of_all(job: Job) -> Footage | None:
    """With nothing accepted, the whole of the best candidate of all: shown, and marked so."""
    rendered = [a for a in _all_attempts(job) if a.candidate is not None]
    return max(rendered, key=rank).candidate if rendered else None


def _all_attempts(job: Job) -> list[Attempt]:
    steps = ([job.tape.gate] if job.tape.gate else []) + job.tape.steps
    return [attempt for step in steps for attempt in step.attempts]
