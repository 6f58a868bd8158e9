"""The story of a job in lines for people: from journal entries as they come, or from a whole trajectory.

Every word that is not ours (prompts, reasons, replies) is escaped here. Knows no terminal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from cliploop.terminal import counted, one_line
from orchestrator.attempts import clip_notes
from orchestrator.ports import Inputs
from orchestrator.records import (
    Answer,
    Assessment,
    Attempt,
    Check,
    Choice,
    Clip,
    Outcome,
    Plan,
    Policy,
    Prefix,
    Record,
    Rendered,
    Route,
    Shot,
    Spend,
    Step,
    Trajectory,
    Verdict,
)

Tone = Literal["plain", "head", "good", "bad", "note", "quiet"]
_KEY = re.compile(
    r"(?:(gate|step|final)(?:/(\d+))?)(?:/attempt/(\d+))?/(plan|clip|check|verdict|cut|best|route|select|assessment|video)"
)


@dataclass(frozen=True)
class Line:
    """One line of the story; `depth` indents it. `whole`: a path or a command to copy, never broken in two."""

    text: str
    tone: Tone = "plain"
    depth: int = 0
    whole: bool = False

    def __str__(self) -> str:
        return "  " * self.depth + self.text


@dataclass(frozen=True)
class Where:
    """What a journal key is about; step 0 is the gate."""

    part: str
    step: int = 0
    attempt: int = 0
    what: str = ""

    @classmethod
    def of(cls, key: str) -> Where | None:
        """None for entries that are not told: asks, tokens, cuts."""
        match = _KEY.fullmatch(key)
        return cls(match[1], int(match[2] or 0), int(match[3] or 0), match[4]) if match else None

    @property
    def doing(self) -> str:
        """What is under way, for a status line."""
        attempt = f", attempt {self.attempt}" if self.attempt else ""
        place = {"gate": "single shot", "shots": attempt.removeprefix(", ")}.get(
            self.part, f"step {self.step}{attempt}"
        )
        return {
            "plan": f"step {self.step}: planning",
            "clip": f"{place}: rendering",
            "check": f"{place}: checking",
            "verdict": f"{place}: verifying",
            "cut": f"{place}: keeping what is good",
            "best": f"step {self.step}: keeping the best",
            "route": f"step {self.step}: routing",
            "select": "choosing among the clips",
            "assessment": "assessing the last frame",
            "video": "encoding the video",
        }[self.what]


def plan_lines(step: int, max_steps: int, plan: Plan) -> Iterator[Line]:
    """The head of a step; `max_steps` is a limit, no count."""
    if plan.task_complete:
        yield Line("The planner sees the task done", "head")
    else:
        yield Line(f"Step {step} (at most {max_steps}): {one_line(plan.instruction)}", "head")


def verdict_line(attempt: int, verdict: Verdict, clip: str) -> Line:
    """`attempt 2, 49 frames: rejected, wrong_direction (good to 34 %) - reason`."""
    tone: Tone
    if verdict.decision == "accept":
        said, tone = f"accepted, {verdict.progress}", "good"
    elif verdict.decision == "reject":
        kind = verdict.failure or "other"
        said, tone = f"rejected, {kind} (good to {100 * verdict.good_fraction:.0f} %)", "bad"
    else:
        said, tone = "unclear", "note"
    reason = f" - {one_line(verdict.reason)}" if verdict.reason else ""
    return Line(f"attempt {attempt}{clip}: {said}{reason}", tone, 1)


def unjudged_lines(attempt: int, clip: str, check: Check | None) -> Iterator[Line]:
    """A clip without a verdict, and what the quick checks saw in it."""
    yield Line(f"attempt {attempt}{clip}: rendered, not judged", "note", 1)
    if check is not None:
        yield from check_lines(check)


def check_lines(check: Check) -> Iterator[Line]:
    """What the quick checks saw, where nobody judges it."""
    for note in _noticed(check):
        yield Line(f"noticed: {one_line(note)}", "note", 2)


def shot_check_lines(attempt: int, check: Check) -> Iterator[Line]:
    """The same of one of several shots: all are rendered before any is checked."""
    for note in _noticed(check):
        yield Line(f"attempt {attempt}, noticed: {one_line(note)}", "note", 1)


def _noticed(check: Check) -> tuple[str, ...]:
    return (*([check.reason] if check.failure is not None else []), *check.notes)


def choice_line(attempt: int, choice: Choice) -> Line:
    """What the selector chose."""
    reason = f" - {one_line(choice.reason)}" if choice.reason else ""
    return Line(f"attempt {attempt} chosen{reason}", "note", 1)


def route_lines(route: Route) -> Iterator[Line]:
    """What the router decided."""
    reason = f" - {one_line(route.reason)}" if route.reason else ""
    yield Line(f"all attempts rejected; {route.action}{reason}", "note", 1)
    for action in route.sub_actions:
        yield Line(one_line(action), "quiet", 2)


def assessment_line(assessment: Assessment) -> Line:
    """The final judgement."""
    said = "the task is done" if assessment.task_complete else "the task is not done"
    reason = f" - {one_line(assessment.reason)}" if assessment.reason else ""
    return Line(f"Assessment: {said}{reason}", "good" if assessment.task_complete else "note")


def spend_text(spend: Spend) -> str:
    """`12.4 s of video, 7 VLM calls`; nothing that was measured."""
    parts = [f"{spend.video_seconds:.1f} s of video rendered", counted(spend.vlm_calls, "VLM call")]
    if spend.vlm_tokens:
        parts.append(counted(spend.vlm_tokens, "token"))
    if spend.usd:
        parts.append(f"${spend.usd:.2f}")
    return ", ".join(parts)


def outcome_lines(trajectory: Trajectory) -> Iterator[Line]:
    """How it ended; nothing while it has not."""
    outcome, spend = trajectory.outcome, trajectory.spend
    if outcome is None:
        return
    tone: Tone = "good" if outcome.kind == "completed" else "note"
    remark = _remark(trajectory, outcome)
    yield Line(f"{outcome.kind.capitalize()}{remark}: {one_line(outcome.reason)}", tone)
    if outcome.video is not None:
        video = outcome.video
        notes = "".join(f"; {one_line(note)}" for note in video.notes)
        yield Line(
            f"video {video.size}, {counted(video.num_frames, 'frame')}, {video.seconds:.1f} s{notes}", "quiet", 1
        )
    yield Line(spend_text(spend), "quiet", 1)


def _remark(trajectory: Trajectory, outcome: Outcome) -> str:
    """What the kind of the outcome alone would hide."""
    if trajectory.policy.num_shots:
        assessed = ", its last frame assessed" if trajectory.assessment is not None else ""
        clips = sum(attempt.clip is not None for step in trajectory.steps for attempt in step.attempts)
        which = f"one of {clips} shots" if clips > 1 else "a single shot"
        return f" ({which}, not judged{assessed})" if outcome.video is not None else ""
    return " (best effort: not every clip was accepted)" if outcome.best_effort else ""


def shots_line(policy: Policy) -> Line:
    """The head of what pass@k does."""
    if policy.num_shots == 1:
        return SINGLE_SHOT
    return Line(f"{policy.num_shots} shots of the whole task, one of them is chosen", "head")


def attempt_lines(attempt: Attempt) -> Iterator[Line]:
    """One attempt of a trajectory."""
    clip = clip_text(attempt)
    if attempt.failed is not None:
        yield Line(f"attempt {attempt.index}: no clip - {one_line(attempt.failed)}", "bad", 1)
    elif attempt.verdict is not None:
        yield verdict_line(attempt.index, attempt.verdict, clip)
    elif attempt.clip is not None:
        yield from unjudged_lines(attempt.index, clip, attempt.check)
    for note in attempt.notes:
        yield Line(one_line(note), "quiet", 2)


def clip_text(attempt: Attempt) -> str:
    """`, 49 frames after 12 kept`."""
    if attempt.clip is None:
        return ""
    kept = f" after {attempt.kept.footage.num_frames} kept" if attempt.kept else ""
    return f", {counted(attempt.clip.num_frames, 'frame')}{kept}"


def step_lines(step: Step, policy: Policy, *, stopped: bool = False) -> Iterator[Line]:
    """One step of a trajectory, in the order in which it happened; `stopped`: nobody is at work on it."""
    if step.index == 0:
        yield SINGLE_SHOT
    elif policy.num_shots:
        yield shots_line(policy)
    else:
        yield from plan_lines(step.index, policy.max_steps, step.plan)
    if policy.num_shots > 1:
        yield from _shots_lines(step)
    else:
        yield from _attempts_lines(step, policy)
    if step.status == "running" and stopped:
        yield Line("stopped here", "note", 1)
    elif step.status in STATUS_WORDS:
        yield Line(STATUS_WORDS[step.status], "note", 1)


def _attempts_lines(step: Step, policy: Policy) -> Iterator[Line]:
    before = [attempt for attempt in step.attempts if attempt.index <= policy.max_attempts]
    for attempt in before:
        yield from attempt_lines(attempt)
    if step.route is not None:
        yield from route_lines(step.route)
    for attempt in step.attempts[len(before) :]:
        yield from attempt_lines(attempt)


def _shots_lines(step: Step) -> Iterator[Line]:
    for attempt in step.attempts:
        yield from attempt_lines(attempt.model_copy(update={"check": None}))
    for attempt in step.attempts:
        if attempt.check is not None:
            yield from shot_check_lines(attempt.index, attempt.check)
    if step.choice is not None and step.chosen_attempt is not None:
        yield choice_line(step.chosen_attempt, step.choice)


SINGLE_SHOT = Line("Single shot of the whole task", "head")
STATUS_WORDS = {
    "best_effort": "best attempt propagated (best effort)",
    "empty": "nothing good to keep",
    "running": "under way",
}


def story(trajectory: Trajectory, *, stopped: bool = False) -> Iterator[Line]:
    """All steps and the final judgement, without the end."""
    steps = ([trajectory.gate] if trajectory.gate else []) + list(trajectory.steps)
    for step in steps:
        yield from step_lines(step, trajectory.policy, stopped=stopped)
    if trajectory.assessment is not None:
        yield assessment_line(trajectory.assessment)


def trajectory_lines(trajectory: Trajectory, *, stopped: bool = False) -> Iterator[Line]:
    """The whole story, and how it ended."""
    yield from story(trajectory, stopped=stopped)
    yield from outcome_lines(trajectory)


class Narrator:
    """Turns journal entries into lines, one by one, as the loop makes or remembers them."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._shots = policy.num_shots
        self._rendered: dict[int, Clip] = {}  # by attempt, of shots of the raw task
        self._shot: object = None  # of the entry that is told
        self._clip = self._kept = ""
        self._rejected = False  # the step under way has only rejected clips so far
        self._headed: set[tuple[str, int]] = set()
        self.spend = Spend()

    def where(self, key: str) -> Where | None:
        """What the key is about: where the raw task is rendered, no step is one."""
        where = Where.of(key)
        if where is None or not self._shots or where.part != "step":
            return where
        return replace(where, part="gate" if self._shots == 1 else "shots")

    def begin(self, key: str, inputs: Inputs) -> Iterator[Line]:
        """The head of a step that had no plan of its own: a part of a split, a single shot."""
        where, shot = self.where(key), inputs.get("shot")
        if where is None or not isinstance(shot, Shot) or (where.part, where.step) in self._headed:
            return
        self._headed.add((where.part, where.step))
        yield from self._ended()
        if where.part == "gate":
            yield SINGLE_SHOT
        elif where.part == "shots":
            yield shots_line(self._policy)
        else:
            yield from plan_lines(where.step, self._policy.max_steps, Plan(instruction=shot.prompt))

    def tell(self, key: str, inputs: Inputs, value: Record) -> Iterator[Line]:
        """The lines of one entry; none for most."""
        where = self.where(key)
        if where is None:
            return
        yield from self.begin(key, inputs)
        self._shot = inputs.get("shot")
        content: Any = value
        if isinstance(value, Answer):
            answer = cast("Answer[Record]", value)
            self.spend = self.spend + answer.spend
            content = answer.value
        if isinstance(content, Rendered):
            self.spend = self.spend + content.spend
            self._clip = f", {counted(content.clip.num_frames, 'frame')}{self._kept}"
            self._kept = ""
        yield from self._lines(where, content)

    def _lines(self, where: Where, content: Any) -> Iterator[Line]:
        if self._shots and isinstance(content, Rendered | Check | Choice):
            yield from self._shot_lines(where, content)
            return
        match content:
            case Plan():
                yield from self._ended()
                self._headed.add((where.part, where.step))
                yield from plan_lines(where.step, self._policy.max_steps, content)
            case Verdict():
                self._rejected = content.decision == "reject"
                yield verdict_line(where.attempt, content, self._clip)
            case Check() if content.failure is not None:
                self._rejected = True
                verdict = Verdict(decision="reject", failure=content.failure, reason=content.reason)
                yield verdict_line(where.attempt, verdict, self._clip)
            case Route():
                self._kept = ""  # a new round begins from the step's own start
                self._rejected = content.action != "split"
                yield from route_lines(content)
            case Prefix() if where.what == "cut":
                self._kept = f" after {content.footage.num_frames} kept"
            case Prefix():
                self._rejected = False
                yield Line(STATUS_WORDS["best_effort"], "note", 1)
            case Assessment():
                yield from self._ended()
                yield assessment_line(content)
            case _:
                return

    def _shot_lines(self, where: Where, content: Rendered | Check | Choice) -> Iterator[Line]:
        if isinstance(content, Rendered):
            yield from unjudged_lines(where.attempt, self._clip, None)
            if isinstance(self._shot, Shot):
                for note in clip_notes(self._shot, content.clip, self._rendered):
                    yield Line(one_line(note), "quiet", 2)
            self._rendered[where.attempt] = content.clip
        elif isinstance(content, Choice):
            yield choice_line(list(self._rendered)[content.index], content)
        elif self._shots > 1:
            yield from shot_check_lines(where.attempt, content)
        else:
            yield from check_lines(content)

    def _ended(self) -> Iterator[Line]:
        """The last word on a step of which nothing could be kept, told when the next thing begins."""
        if self._rejected:
            yield Line(STATUS_WORDS["empty"], "note", 1)
        self._rejected, self._kept = False, ""

    def tell_lost(self, key: str, reason: str) -> Iterator[Line]:
        """A counted failure."""
        where = self.where(key)
        if where is not None and where.what == "clip":
            yield Line(f"attempt {where.attempt}: no clip - {one_line(reason)}", "bad", 1)
