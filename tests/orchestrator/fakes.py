"""Hand-written fakes of the loop's ports: frames are labels, so that a test can read what was kept.

A clip's frame i is labelled `<clip>.<i>`; frame 0 of a clip carries a label of its own, as a generator's
imperfect copy of its start frame does.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from pydantic import BaseModel

from orchestrator.errors import BackendFailed, BackendUnavailable, JobWaiting, TaskRejected
from orchestrator.loop import run
from orchestrator.ports import Call, Inputs, Ports
from orchestrator.records import (
    Answer,
    Assessment,
    Attempt,
    Box,
    Canvas,
    Capabilities,
    Check,
    Choice,
    Clip,
    Drift,
    Footage,
    Outcome,
    Plan,
    Policy,
    Record,
    Route,
    Shot,
    Size,
    Spend,
    Task,
    Trajectory,
    Verdict,
    Video,
    View,
)
from orchestrator.trajectory import trajectory_of

R = TypeVar("R", bound=Record)
SIZE = Size(width=64, height=64)
CANVAS = Canvas(size=SIZE, content=Box(left=0, top=0, width=64, height=64), fit="identity")
NO_DRIFT = Drift(saturation=1, brightness=1, sharpness=1, colour_levels=0)


def _plain(value: Any) -> Any:
    return value.model_dump(mode="json") if isinstance(value, BaseModel) else str(value)


def digest(inputs: Inputs) -> str:
    return hashlib.sha256(json.dumps(dict(inputs), sort_keys=True, default=_plain).encode()).hexdigest()


@dataclass
class MemoryJournal:
    """The port's rules in memory; `ran` lists every effect that ran, in order."""

    entries: dict[str, tuple[str, str | None, BackendFailed | None]] = field(default_factory=dict[str, Any])
    ran: list[str] = field(default_factory=list[str])
    renewed: dict[str, int] = field(default_factory=dict[str, int])

    def once(self, key: str, inputs: Inputs, kind: type[R], effect: Callable[[], R]) -> R:
        given = digest(inputs)
        if key in self.entries:
            if self.entries[key][0] != given:
                raise JobWaiting("changed", key, key=key)
            value = self.peek(key, kind)
            assert value is not None
            return value
        self.ran.append(key)
        try:
            value = effect()
        except BackendFailed as failure:
            self.entries[key] = (given, None, failure)
            raise
        self.entries[key] = (given, value.model_dump_json(), None)
        return kind.model_validate_json(value.model_dump_json())

    def once_all(self, calls: Sequence[Call[R]]) -> list[R | BackendFailed]:
        results: list[R | BackendFailed] = []
        for call in calls:
            try:
                results.append(self.once(call.key, call.inputs, call.kind, call.effect))
            except BackendFailed as failure:
                results.append(failure)
        return results

    def peek(self, key: str, kind: type[R]) -> R | None:
        if key not in self.entries:
            return None
        _, value, failure = self.entries[key]
        if failure is not None or value is None:
            raise failure or AssertionError(key)
        return kind.model_validate_json(value)

    def renewals(self, key: str) -> int:
        return self.renewed.get(key, 0)


def scripted(replies: Iterable[Any]) -> Callable[[], Any]:
    """Replies in order; the last one again and again."""
    items = list(replies)
    rest: Iterator[Any] = iter(items)
    return lambda: next(rest, items[-1])


class ScriptedModel:
    """Planner, verifier, router, assessor and selector from lists of replies; keeps what it was asked.

    The same ask (same seed) gets the same reply again, as after a crash; an unavailable backend may recover.
    """

    def __init__(self, **replies: Iterable[Any]) -> None:
        self._replies = {role: scripted(items) for role, items in replies.items()}
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self._given: dict[tuple[str, int], Any] = {}

    def _answer(self, role: str, kind: type[R], **asked: Any) -> Answer[R]:
        self.asked.append((role, asked))
        ask = (role, asked["view"].seed)
        reply = self._given[ask] if ask in self._given else self._replies[role]()
        if isinstance(reply, BackendUnavailable):
            raise reply
        self._given[ask] = reply
        if isinstance(reply, BaseException):
            raise reply
        return Answer[kind](value=reply, spend=Spend(vlm_calls=1, vlm_tokens=100), raw="{}")

    def accepts(self, task: Task) -> None:
        if "photo" in task.prompt:
            raise TaskRejected("cannot read it; configure a real VLM")

    def plan(self, task: Task, view: View) -> Answer[Plan]:
        return self._answer("plan", Plan, task=task, view=view)

    def verify(
        self, task: Task, plan: Plan, prompt: str, candidate: Footage, notes: Sequence[str], view: View
    ) -> Answer[Verdict]:
        asked = {"plan": plan, "prompt": prompt, "candidate": candidate, "notes": tuple(notes), "view": view}
        return self._answer("verdict", Verdict, **asked)

    def route(self, task: Task, plan: Plan, attempts: Sequence[Attempt], view: View) -> Answer[Route]:
        return self._answer("route", Route, plan=plan, attempts=attempts, view=view)

    def assess(self, task: Task, view: View) -> Answer[Assessment]:
        return self._answer("assessment", Assessment, view=view)

    def select(self, task: Task, plan: Plan, candidates: Sequence[Footage], view: View) -> Answer[Choice]:
        return self._answer("choice", Choice, candidates=candidates, view=view)

    def roles(self) -> list[str]:
        return [role for role, _ in self.asked]

    def of(self, role: str) -> list[dict[str, Any]]:
        return [asked for asked_role, asked in self.asked if asked_role == role]


class LabelGenerator:
    """Renders labels; `failures` are raised for the shots with these numbers (from 1)."""

    def __init__(
        self, capabilities: Capabilities, failures: dict[int, Exception] | None = None, same: bool = False
    ) -> None:
        self.capabilities = capabilities
        self.shots: list[Shot] = []
        self._failures = failures or {}
        self._same = same
        self._numbers: dict[int, int] = {}
        self._unavailable = 0

    def render(self, shot: Shot, *, resume: Any, checkpoint: Any, progress: Any, cancelled: Any) -> list[str]:
        self.shots.append(shot)
        number = self._numbers.get(shot.seed) or len(self._numbers) + 1 + self._unavailable
        failure = self._failures.get(number)
        if not isinstance(failure, BackendUnavailable):
            self._numbers[shot.seed] = number
        else:
            self._unavailable += 1
        if failure is not None:
            raise failure
        progress(1.0)
        name = "same" if self._same else f"c{number}"
        return [f"{name}.{i}" for i in range(shot.num_frames)]


class LabelEditor:
    """Stores labels under keys that spell them out."""

    def __init__(self) -> None:
        self.mezzanines: dict[str, list[str]] = {}
        self.checks: list[Check] = []
        self.delivered: list[str] = []

    def place(self, task: Task, canvas: Canvas) -> str:
        return "first.png"

    def store(self, frames: list[str], shot: Shot) -> Clip:
        key = f"{frames[0]}.mp4"
        self.mezzanines[key] = frames
        return Clip(
            mezzanine=key,
            last_frame=f"{frames[-1]}.png",
            num_frames=len(frames),
            fps=shot.fps,
            size=SIZE,
            rendered_size=SIZE,
            frames_digest=digest({"frames": frames}),
            first_frame_psnr=100.0,
            first_frame_ssim=1.0,
        )

    def labels(self, footage: Footage) -> list[str]:
        found: list[str] = []
        for segment in footage.segments:
            if segment.mezzanine.endswith(".png"):
                found.append(segment.mezzanine)
            else:
                found.extend(self.mezzanines[segment.mezzanine][segment.first : segment.stop])
        return found

    def frame(self, footage: Footage, index: int) -> str:
        label = self.labels(footage)[index]
        return label if label.endswith(".png") else f"{label}.png"

    def check(self, candidate: Footage, clip: Clip, first_picture: str, *, psnr_min: float) -> Check:
        return self.checks.pop(0) if self.checks else Check(drift=NO_DRIFT)

    def deliver(self, footage: Footage, canvas: Canvas, size: Size, *, long_side_max: int) -> Video:
        self.delivered = self.labels(footage)
        return Video(artifact="video.mp4", num_frames=footage.num_frames, seconds=footage.seconds, size=size)


class StoppedClock:
    """Time that only passes by sleeping, and a tick per look."""

    def __init__(self) -> None:
        self.time = 0.0
        self.slept: list[float] = []

    def now(self) -> float:
        self.time += 0.5
        return self.time

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds


ACCEPT = Verdict(decision="accept", progress="complete", confidence="high")
PARTIAL = Verdict(decision="accept", progress="partial", confidence="high", suggestion="Go on.")
REJECT = Verdict(decision="reject", failure="wrong_direction", confidence="high", suggestion="Go right.")
MOVE = Plan(instruction="Move right.", target_state="It is right.")
DONE = Plan(task_complete=True)
YES = Assessment(task_complete=True, reason="at the goal")
NO = Assessment(task_complete=False, reason="not there")
FALLBACK = Route(action="fallback")
TASK = Task(prompt="Solve it.", picture="task.png", size=SIZE)
CAPABILITIES = Capabilities(name="labels", frame_step=4, frame_offset=1, max_frames=161)


def reject(good_fraction: float, suggestion: str = "Go right.", **more: Any) -> Verdict:
    return REJECT.model_copy(update={"good_fraction": good_fraction, "suggestion": suggestion, **more})


def policy(**changes: Any) -> Policy:
    base = Policy(
        generator="labels",
        planner="scripted",
        verifier="scripted",
        router="scripted",
        assessor="scripted",
        capabilities=CAPABILITIES,
        canvas=CANVAS,
        encoder="none",
    )
    return Policy.model_validate({**base.model_dump(), **changes})


@dataclass
class Stage:
    """A loop with scripted ports, and everything a test wants to look at."""

    model: ScriptedModel
    generator: LabelGenerator
    editor: LabelEditor
    clock: StoppedClock
    journal: MemoryJournal
    ports: Ports
    policy: Policy
    task: Task = TASK

    def run(self) -> Outcome:
        return run(self.task, self.policy, self.ports, self.journal)

    def trajectory(self) -> Trajectory:
        return trajectory_of("job", self.task, self.policy, self.ports, self.journal)

    @property
    def prompts(self) -> list[str]:
        return [shot.prompt for shot in self.generator.shots]


def stage(
    plans: Sequence[Any] = (MOVE,),
    verdicts: Sequence[Any] = (ACCEPT,),
    routes: Sequence[Any] = (FALLBACK,),
    assessments: Sequence[Any] = (YES,),
    choices: Sequence[Any] | None = None,
    failures: dict[int, Exception] | None = None,
    same: bool = False,
    cancelled: Callable[[], bool] = lambda: False,
    capabilities: Capabilities = CAPABILITIES,
    **changes: Any,
) -> Stage:
    model = ScriptedModel(
        plan=plans, verdict=verdicts, route=routes, assessment=assessments, choice=choices or [Choice(index=0)]
    )
    generator = LabelGenerator(capabilities, failures, same)
    editor, clock = LabelEditor(), StoppedClock()
    ports = Ports(
        planner=model,
        verifier=model,
        router=model,
        assessor=model,
        generator=generator,
        editor=editor,
        clock=clock,
        cancelled=cancelled,
    )
    if choices is not None:
        ports = replace(ports, selector=model)
        changes["selector"] = "scripted"
    settled = policy(capabilities=capabilities, **changes)
    return Stage(model, generator, editor, clock, MemoryJournal(), ports, settled)
