"""The embedded planner, verifier, router, assessor and selector: plans and judges from pixels alone.

Exact by default, or as fallible in its verdicts as a profile says. It knows the built-in worlds and nothing else.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np

from media.frames import FrameReader
from orchestrator.attempts import PROGRESS_ORDER
from orchestrator.footage import KEEP_ABOVE
from orchestrator.records import (
    CONFIDENCE_VALUE,
    Answer,
    Assessment,
    Attempt,
    Choice,
    Confidence,
    FailureKind,
    Footage,
    Plan,
    Record,
    Route,
    Spend,
    Task,
    Verdict,
    View,
)
from planners.fallible import Fallibility, err, load_fallibility
from planners.knowing import Known, Sight, actions_left, named_actions, readable
from planners.wording import fault_of, praise_of, suggestion_of, unfinished_of
from worlds.chain import Chain, chain, outcome
from worlds.judging import LEAP, MOVED, Judgement, judge
from worlds.steadiness import is_steady
from worlds.world import Action, Frame, Reading, Scene

SLIPS: tuple[FailureKind, ...] = ("no_motion", "scene_collapse", "incomplete", "identity_drift", "first_frame")
ONE_CALL = Spend(vlm_calls=1)
R = TypeVar("R", bound=Record)


class OracleOptions(Record):
    """Options of an oracle: `profile` makes its verdicts fallible."""

    profile: Literal["exact", "gemini-2.5-pro", "qwen3.5"] = "exact"


class Oracle:
    """Implements the ports Planner, Verifier, Router, Assessor and Selector."""

    def __init__(self, reader: FrameReader | None, fallibility: Fallibility | None = None) -> None:
        self._sight = Sight(reader)
        self._fallibility = fallibility
        self._model = f"oracle ({fallibility.name})" if fallibility else "oracle"

    def accepts(self, task: Task) -> None:
        """Raise TaskRejected, naming the remedy, if no built-in world reads the task or it has no solution."""
        self._sight.refuse_unreadable(task)

    def plan(self, task: Task, view: View) -> Answer[Plan]:
        """Step t < N holds ceil(actions left / steps left) actions, the last step all that remain."""
        known = self._sight.known(task, view)
        try:
            actions = actions_left(known, view.history)
        except ValueError as error:
            return self._answer(Plan(task_complete=True, observation=f"no way on: {error}", confidence="low"))
        if not actions:
            sure: Confidence = "low" if known.guessed else "high"
            return self._answer(Plan(task_complete=True, observation=_seen(known), confidence=sure))
        count = math.ceil(len(actions) / max(1, view.max_steps - view.step + 1))
        while count > 1 and len(known.world.describe(actions[:count], known.scene.legend)) > view.prompt_chars:
            count -= 1
        plan = Plan(
            observation=_seen(known),
            remaining_goal=known.world.describe(actions, known.scene.legend),
            instruction=known.world.describe(actions[:count], known.scene.legend),
            target_state=known.world.target(known.reading.state, actions[:count], known.scene.legend),
            estimated_steps_remaining=math.ceil(len(actions) / count),
            confidence="low" if known.guessed else "high",
        )
        return self._answer(plan)

    def verify(
        self, task: Task, plan: Plan, prompt: str, candidate: Footage, notes: Sequence[str], view: View
    ) -> Answer[Verdict]:
        """Judge every frame of the candidate; exact, but for what the profile errs.

        Right but unfinished is accepted, with what is due as suggestion; on the last step it is rejected.
        """
        return self._answer(self._judged(task, plan, candidate, view).verdict)

    def select(self, task: Task, plan: Plan, candidates: Sequence[Footage], view: View) -> Answer[Choice]:
        """The one with the best verdict; only an exact oracle sees which of two alike came farther.

        Every candidate is judged as `verify` would, errors of the profile included.
        """
        judged = [self._judged(task, plan, candidate, view) for candidate in candidates]
        exact = self._fallibility is None
        best = max(range(len(judged)), key=lambda place: (*_worth(judged[place], exact=exact), -place))
        return self._answer(Choice(index=best, reason=judged[best].verdict.reason))

    def _judged(self, task: Task, plan: Plan, candidate: Footage, view: View) -> _Judged:
        """The verdict on a candidate, with what the profile errs, and how far it really came."""
        known = self._sight.known(task, view)
        raw = not known.world.parse(plan.instruction)
        actions = actions_left(known, ()) if raw else named_actions(known, plan.instruction)
        readings = read_all(known.scene, self._sight.reader.iterate(candidate))
        if raw and plan.instruction != task.prompt:
            return _Judged(_not_understood(plan.instruction))
        if not actions:
            return _Judged(_not_possible(plan.instruction))
        way = chain(known.world, known.reading, actions)
        judged = judge(known.world, way, readings)
        if not judged.finished and _reached_otherwise(known, way, readings, whole_task=raw):
            verdict = _accepted(known, way, judged, finished=True)
        elif judged.failure in (None, "incomplete"):
            verdict = _accepted(known, way, judged, finished=judged.finished)
            if not judged.finished and view.step == view.max_steps:
                verdict = _last_step(verdict, way, judged)
        else:
            verdict = _rejected(known, way, judged)
        if self._fallibility is not None:
            verdict = err(verdict, self._fallibility, view.seed, candidate)
        return _Judged(verdict, judged.way)

    def route(self, task: Task, plan: Plan, attempts: Sequence[Attempt], view: View) -> Answer[Route]:
        """Split several actions if there is room for it; regenerate after a slip; else fall back."""
        known = self._sight.known(task, view)
        actions = named_actions(known, plan.instruction)
        verdicts = [attempt.verdict for attempt in attempts if attempt.verdict is not None]
        if len(actions) > 1 and _room_to_split(known, actions, view):
            subs = tuple(known.world.describe([action], known.scene.legend) for action in actions)
            route = Route(action="split", reason=f"{len(actions)} actions in one prompt", sub_actions=subs)
        elif actions and (len(actions) > 1 or _slipped(verdicts)):
            told = dict.fromkeys(verdict.suggestion for verdict in verdicts if verdict.suggestion)
            route = Route(action="regenerate", reason="the execution slips", suggestion=" ".join(told))
        else:
            route = Route(action="fallback", reason="one action that fails alike every time")
        return self._answer(route)

    def assess(self, task: Task, view: View) -> Answer[Assessment]:
        """Complete if the last frame, read against the first picture, is the goal at rest."""
        known = self._sight.known(task, view)
        if known.guessed:
            return self._answer(Assessment(task_complete=False, reason="the last frame cannot be read"))
        if not known.world.goal(known.reading.state):
            return self._answer(Assessment(task_complete=False, reason="the last frame is not the goal"))
        if known.reading.moving:
            return self._answer(Assessment(task_complete=False, reason="a piece has not come to rest"))
        return self._answer(Assessment(task_complete=True, reason="the last frame shows the goal"))

    def _answer(self, value: R) -> Answer[R]:
        return Answer(value=value, spend=ONE_CALL, model=self._model)


@dataclass(frozen=True)
class _Judged:
    """A candidate's verdict, and how far along the planned path it came."""

    verdict: Verdict
    way: float = 0.0


def _worth(judged: _Judged, *, exact: bool) -> tuple[bool, int, float, float, float]:
    """Larger is better: accepted, progress, good fraction, how sure that is, and how far it came."""
    verdict = judged.verdict
    return (
        verdict.decision == "accept",
        PROGRESS_ORDER[verdict.progress],
        verdict.good_fraction,
        CONFIDENCE_VALUE[verdict.confidence],
        judged.way if exact else 0.0,
    )


def read_all(scene: Scene, frames: Iterable[Frame]) -> list[Reading | None]:
    """A reading of every frame, None where the scene is gone; a frame like the last one is not read again."""
    readings: list[Reading | None] = []
    shown: list[Frame] = []  # the first frame and the last one
    for frame in frames:
        if shown and np.array_equal(frame, shown[-1]):
            readings.append(readings[-1])
            continue
        reading = readable(scene, frame)
        start = readings[0] if readings else reading
        if shown and start is not None and reading is not None:
            reading = reading if is_steady(scene, shown[0], start, frame, reading) else None
        readings.append(reading)
        shown = [*shown[:1], frame]
    return readings


def _slipped(verdicts: Sequence[Verdict]) -> bool:
    """Whether the action is being done, only badly: it fails in several ways, or part of it is right."""
    failures = {verdict.failure for verdict in verdicts}
    kept = max((verdict.good_fraction for verdict in verdicts), default=0.0)
    return len(failures) > 1 or kept > KEEP_ABOVE or bool(failures & set(SLIPS))


def _room_to_split(known: Known, actions: Sequence[Action], view: View) -> bool:
    """Whether a step is left for every action by itself, and one for what remains of the task after them."""
    state = known.reading.state
    for action in actions:
        after = outcome(known.world, state, action)
        state = state if after is None else after
    return view.step + len(actions) + (not known.world.goal(state)) <= view.max_steps


def _seen(known: Known) -> str:
    told = f"A {known.world.name.replace('_', ' ')}"
    if known.guessed:
        return f"{told}; this frame cannot be read, so this goes by the last state known."
    way = ", one is under way" if known.reading.moving else ""
    return f"{told}; every piece is seen{way}."


def _not_understood(instruction: str) -> Verdict:
    return Verdict(
        decision="unclear",
        confidence="low",
        reason=f"the oracle cannot read the instruction: {instruction[:120]}",
    )


def _not_possible(instruction: str) -> Verdict:
    return Verdict(decision="reject", failure="other", reason=f"not possible from here: {instruction[:120]}")


def _accepted(known: Known, way: Chain, judged: Judgement, *, finished: bool) -> Verdict:
    return Verdict(
        decision="accept",
        progress="complete" if finished else "partial",
        confidence="high",
        reason=praise_of(way, judged, finished=finished),
        suggestion="" if finished else suggestion_of(known, way, "incomplete", judged),
        good_fraction=1.0,
    )


def _last_step(verdict: Verdict, way: Chain, judged: Judgement) -> Verdict:
    """On the last step, right but unfinished is not enough: all of it is kept and the rest asked for."""
    update = {"decision": "reject", "failure": "incomplete", "reason": unfinished_of(way, judged)}
    return verdict.model_copy(update=update)


def _rejected(known: Known, way: Chain, judged: Judgement) -> Verdict:
    failure = judged.failure or "other"
    confidence: Confidence = "high"
    return Verdict(
        decision="reject",
        progress="partial" if judged.way >= MOVED else "none",
        confidence=confidence,
        failure=failure,
        reason=fault_of(known, way, failure, judged),
        suggestion=suggestion_of(known, way, failure, judged),
        good_fraction=judged.good_fraction,
    )


def _reached_otherwise(known: Known, way: Chain, readings: Sequence[Reading | None], *, whole_task: bool) -> bool:
    """Whether the clip is where it should be by another way, on which nothing was ever where it must not be.

    Which way round other pieces a piece goes is not said in an instruction; that others stay is.
    """
    seen = [reading for reading in readings if reading is not None]
    last = readings[-1] if readings else None
    if last is None or last.moving:
        return False
    arrived = known.world.goal(last.state) if whole_task else last.state == way.states[-1]
    if not arrived or any(_apart(a, b) > LEAP for a, b in itertools.pairwise(seen)):
        return False
    if any(known.world.forbidden(reading.state, reading.configuration) for reading in seen):
        return False
    return whole_task or all(reading.moving.keys() <= _movers(way) for reading in seen)


def _movers(way: Chain) -> set[str]:
    first, last = way.path[0], way.path[-1]
    return {piece for waypoint in (*way.path, last) for piece in waypoint if waypoint[piece] != first[piece]}


def _apart(one: Reading, other: Reading) -> float:
    places = other.configuration
    return max((math.dist(at, places[p]) for p, at in one.configuration.items() if p in places), default=0.0)


def build(options: OracleOptions, reader: FrameReader | None) -> Oracle:
    """An oracle, exact or of a profile. Raises BackendMisconfigured."""
    exact = options.profile == "exact"
    return Oracle(reader, None if exact else load_fallibility(options.profile))


def figures(options: OracleOptions) -> dict[str, Any]:
    """The profile's figures."""
    return {} if options.profile == "exact" else load_fallibility(options.profile).model_dump(mode="json")
