"""One trial: a strategy on a task with a seed, in this process, and whether the video really solves the task.

The judge reads every other frame of the answer's lossless footage with the world's exact reader; it asks
neither the verifier nor the assessor, and knows nothing of the generator's plans.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from bench.subjects import Subject, scene_of
from cliploop.compose import Composition, Wanted
from cliploop.local import SystemClock
from media.frames import FrameReader
from media.uploads import normalise
from orchestrator.loop import run
from orchestrator.ports import Editor, Frames
from orchestrator.records import (
    ArtifactKey,
    Canvas,
    Check,
    Clip,
    Footage,
    Shot,
    Size,
    Step,
    Task,
    Trajectory,
    Video,
)
from orchestrator.trajectory import trajectory_of
from storage.artifacts import MemoryArtifacts
from storage.database import Database
from storage.jobs import create_job
from storage.journal import SqlJournal
from worlds.world import Frame, Reading, Scene

STRIDE = 2  # frames; a piece that crosses a wall is inside it for longer
JOB = "trial"


@dataclass(frozen=True)
class Trial:
    """What came of it. `solved`: the goal at rest in the last frame, and no illegal or unreadable frame."""

    subject: str
    row: str
    game: str
    num_actions: int
    seed: int
    strategy: str
    max_steps: int
    solved: bool
    goal_in_last_frame: bool
    completed: bool  # the assessor's word
    video_seconds: float
    vlm_calls: int
    clips: int
    steps_at_first: int  # accepted at the first attempt
    steps_after: int  # accepted after a re-render
    steps_never: int  # split or gone on from the best attempt
    error: str = ""  # why there is nothing of it

    @property
    def steps(self) -> int:
        return self.steps_at_first + self.steps_after + self.steps_never


class Undelivered:
    """An editor that notes the answer's footage instead of encoding it."""

    def __init__(self, editor: Editor) -> None:
        self._editor = editor
        self.answer = Footage()

    def place(self, task: Task, canvas: Canvas) -> ArtifactKey:
        return self._editor.place(task, canvas)

    def store(self, frames: Frames, shot: Shot) -> Clip:
        return self._editor.store(frames, shot)

    def frame(self, footage: Footage, index: int) -> ArtifactKey:
        return self._editor.frame(footage, index)

    def check(self, candidate: Footage, clip: Clip, first_picture: ArtifactKey, *, psnr_min: float) -> Check:
        return self._editor.check(candidate, clip, first_picture, psnr_min=psnr_min)

    def deliver(self, footage: Footage, canvas: Canvas, size: Size, *, long_side_max: int) -> Video:
        self.answer = footage
        return Video(artifact="none", num_frames=footage.num_frames, seconds=footage.seconds, size=canvas.size)


def play(subject: Subject, seed: int, wanted: Wanted, composition: Composition) -> Trial:
    """Run the loop, or the baseline, on the task; `wanted` names strategy, steps, seed and backends."""
    artifacts = MemoryArtifacts()
    upload = normalise(subject.png)
    task = Task(prompt=subject.prompt, picture=artifacts.put(upload.png, ".png"), size=upload.size)
    policy = composition.policy(replace(wanted, seed=seed), task.size)
    ports = composition.ports(policy, artifacts, clock=SystemClock())
    editor = Undelivered(ports.editor)
    with (
        tempfile.TemporaryDirectory(prefix="cliploop-trial-") as folder,
        Database(Path(folder) / "journal.sqlite") as database,
    ):
        create_job(database, JOB, task, policy)
        journal = SqlJournal(database, JOB)
        ports = replace(ports, editor=editor)
        run(task, policy, ports, journal)
        trajectory = trajectory_of(JOB, task, policy, ports, journal)
    first = artifacts.read(trajectory.first_frame)
    seen = look(scene_of(first, subject.prompt), FrameReader(artifacts).iterate(editor.answer))
    return _trial(subject, trajectory, seen)


@dataclass(frozen=True)
class Seen:
    """What an answer shows: the goal at rest in its last frame; only legal, readable frames."""

    goal: bool
    legal: bool


def look(scene: Scene, frames: Iterable[Frame]) -> Seen:
    """Read every other frame and the last one; no frames at all are no goal."""
    goal, legal = False, True
    last: Frame | None = None
    for index, frame in enumerate(frames):
        last = frame
        if index % STRIDE == 0:
            reading = scene.read(frame)
            legal = legal and reading is not None and _allowed(scene, reading)
    reading = scene.read(last) if last is not None else None
    if reading is not None:
        goal = not reading.moving and not reading.unreadable and scene.world.goal(reading.state)
    return Seen(goal, legal)


def _allowed(scene: Scene, reading: Reading) -> bool:
    return not reading.unreadable and not scene.world.forbidden(reading.state, reading.configuration)


def _trial(subject: Subject, trajectory: Trajectory, seen: Seen) -> Trial:
    policy, outcome = trajectory.policy, trajectory.outcome
    fates = [_fate(step) for step in trajectory.steps]
    return Trial(
        subject=subject.name,
        row=subject.row,
        game=subject.game,
        num_actions=subject.num_actions,
        seed=policy.seed,
        strategy=policy.strategy,
        max_steps=policy.max_steps,
        solved=seen.goal and seen.legal,
        goal_in_last_frame=seen.goal,
        completed=outcome is not None and outcome.kind == "completed",
        video_seconds=trajectory.spend.video_seconds,
        vlm_calls=trajectory.spend.vlm_calls,
        clips=sum(attempt.clip is not None for step in trajectory.steps for attempt in step.attempts),
        steps_at_first=fates.count("first"),
        steps_after=fates.count("after"),
        steps_never=fates.count("never"),
    )


def broken(subject: Subject, seed: int, strategy: str, max_steps: int, error: str) -> Trial:
    """A trial that could not be played."""
    return Trial(
        subject=subject.name,
        row=subject.row,
        game=subject.game,
        num_actions=subject.num_actions,
        seed=seed,
        strategy=strategy,
        max_steps=max_steps,
        solved=False,
        goal_in_last_frame=False,
        completed=False,
        video_seconds=0.0,
        vlm_calls=0,
        clips=0,
        steps_at_first=0,
        steps_after=0,
        steps_never=0,
        error=error,
    )


def _fate(step: Step) -> str:
    if step.status != "accepted":
        return "never"
    return "first" if step.chosen_attempt == 1 else "after"
