"""One job in one folder, with real journal, artifacts, editor and files; the models are small and scripted."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cliploop.folder import JobFolder
from cliploop.local import Ending, LocalJob, SystemClock, play, slug
from media.editor import VideoEditor
from media.frames import FrameReader
from media.pictures import encode_png
from orchestrator.errors import BackendFailed, BackendUnavailable, JobWaiting, ReplyUnreadable, TaskRejected
from orchestrator.ports import Artifacts, Inputs, Ports
from orchestrator.records import (
    Answer,
    Assessment,
    Capabilities,
    Footage,
    Plan,
    Record,
    Route,
    Shot,
    Spend,
    Task,
    Verdict,
    View,
)
from storage.database import Database
from tests.cliploop import records
from tests.orchestrator.fakes import ScriptedModel

MOVE = Plan(instruction="The square moves right.", target_state="It is further right.")
YES = Assessment(task_complete=True, reason="it is there")
CAPABILITIES = Capabilities(name="sliding", prompt_chars=500)


class SlidingGenerator:
    """Moves the white square of the start frame to the right, by the seed's remainder faster or slower."""

    capabilities = CAPABILITIES

    def __init__(self, artifacts: Artifacts, fails: Sequence[BaseException | None] = ()) -> None:
        self._reader = FrameReader(artifacts)
        self._fails = list(fails)

    def render(self, shot: Shot, *, resume: Any, checkpoint: Any, progress: Any, cancelled: Any) -> Any:
        fail = self._fails.pop(0) if self._fails else None
        if fail is not None:
            raise fail
        start = self._reader.picture(shot.start_frame)
        progress(1.0)
        return np.stack([np.roll(start, number // 4, axis=1) for number in range(shot.num_frames)])


class ContentJudge(ScriptedModel):
    """As real models: the same question has the same answer, so that a resume can be compared."""

    def plan(self, task: Task, view: View) -> Answer[Plan]:
        value = Plan(task_complete=True) if view.history else MOVE
        return Answer[Plan](value=value, spend=Spend(vlm_calls=1))

    def verify(
        self, task: Task, plan: Plan, prompt: str, candidate: Footage, notes: Sequence[str], view: View
    ) -> Answer[Verdict]:
        value = records.reject() if prompt == plan.instruction else records.accept()
        return Answer[Verdict](value=value, spend=Spend(vlm_calls=1))


class Quiet:
    """A watcher that counts what runs."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def began(self, key: str, inputs: Inputs) -> None:
        self.ran.append(key)

    def recorded(self, key: str, inputs: Inputs, value: Record, *, remembered: bool) -> None: ...

    def lost(self, key: str, reason: str, *, remembered: bool) -> None: ...


def job(prompt: str = "Move the square.", **changes: Any) -> LocalJob:
    frame = np.zeros((48, 64, 3), np.uint8)
    frame[20:28, 4:12] = 255
    png = encode_png(frame)
    task = Task(prompt=prompt, picture=hashlib.sha256(png).hexdigest() + ".png", size=records.SIZE)
    short = {"first_step_seconds": 1.0, "step_seconds": 1.0, "max_attempts": 2, **changes}
    return LocalJob(task=task, policy=records.policy(capabilities=CAPABILITIES, **short), png=png, slug="test")


def ports(
    fails: Sequence[BaseException | None] = (), cancelled: Callable[[], bool] = lambda: False, **replies: Any
) -> Callable[[Artifacts], Ports]:
    """Rejected once, then accepted, then done; unless told otherwise."""
    script: dict[str, Any] = {
        "plan": [MOVE, Plan(task_complete=True)],
        "verdict": [records.reject(), records.accept()],
        "assessment": [YES],
        "route": [Route(action="fallback")],
        **replies,
    }

    def make(artifacts: Artifacts) -> Ports:
        model = ScriptedModel(**script) if replies else ContentJudge(**script)
        return Ports(
            planner=model,
            verifier=model,
            router=model,
            assessor=model,
            generator=SlidingGenerator(artifacts, fails),
            editor=VideoEditor(artifacts, FrameReader(artifacts)),
            clock=SystemClock(),
            cancelled=cancelled,
        )

    return make


def run(
    folder: Path, make: Any = None, what: LocalJob | None = None, *, fresh: bool = False, **hooks: Any
) -> Ending:
    watcher = hooks.pop("watcher", None) or Quiet()
    return play(
        what or job(), folder, fresh=fresh, make_ports=make or ports(), watcher=watcher, journal_options=hooks
    )


def exported(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and ".cliploop" not in path.parts
    }


def test_a_job_runs_and_leaves_its_files(tmp_path: Path) -> None:
    ending = run(tmp_path / "job")
    assert ending.state == "succeeded"
    assert sorted(exported(tmp_path / "job")) == [
        "contact-sheet.png",
        "steps/1/attempt-1.mp4",
        "steps/1/attempt-2.mp4",
        "trajectory.json",
        "video.mp4",
    ]
    assert set(ending.files) == set(exported(tmp_path / "job"))
    assert not list((tmp_path / "job" / ".cliploop" / "parts").iterdir())


def test_a_finished_job_is_recalled_and_runs_nothing(tmp_path: Path) -> None:
    first, watcher = run(tmp_path / "job"), Quiet()
    again = run(tmp_path / "job", watcher=watcher)
    assert again.recalled
    assert again.trajectory == first.trajectory
    assert watcher.ran == []


def test_a_deleted_file_comes_back_without_running_anything(tmp_path: Path) -> None:
    run(tmp_path / "job")
    before = exported(tmp_path / "job")
    (tmp_path / "job" / "contact-sheet.png").unlink()
    watcher = Quiet()
    assert run(tmp_path / "job", watcher=watcher).state == "succeeded"
    assert exported(tmp_path / "job") == before
    assert watcher.ran == []


class Stopped(BaseException):
    """Stands for a crash that leaves no time to tidy up."""


def test_a_crash_between_any_two_entries_is_resumed_with_equal_files(tmp_path: Path) -> None:
    run(tmp_path / "undisturbed")
    expected = exported(tmp_path / "undisturbed")
    seen: list[str] = []
    for number in range(0, 100, 5):
        folder, commits = tmp_path / str(number), iter(range(1000))

        def crash(moment: str, key: str, commits: Any = commits, number: int = number) -> None:
            if next(commits) == number:
                seen.append(f"{moment} {key}")
                raise Stopped

        try:
            run(folder, on_commit=crash)
            break
        except Stopped:
            assert run(folder).state == "succeeded"
            resumed = exported(folder)
            assert {name: data for name, data in resumed.items() if name != "trajectory.json"} == {
                name: data for name, data in expected.items() if name != "trajectory.json"
            }
    assert len(seen) >= 8
    assert {moment.split()[0] for moment in seen} == {"before", "after"}


def test_cancelled_and_interrupted_jobs_go_on(tmp_path: Path) -> None:
    asked = iter([False] * 2 + [True])
    ending = run(tmp_path / "job", ports(cancelled=lambda: next(asked)))
    assert ending.state == "interrupted"
    assert ending.trajectory is not None
    assert ending.trajectory.steps
    assert run(tmp_path / "job", ports(fails=[KeyboardInterrupt()])).state == "interrupted"
    assert run(tmp_path / "job").state == "succeeded"


def test_a_job_that_waits_says_why_and_goes_on(tmp_path: Path) -> None:
    unreadable = ReplyUnreadable("not JSON")
    waiting = run(tmp_path / "job", ports(verdict=[unreadable]))
    assert (waiting.state, waiting.reason) == ("waiting", "unclear")
    away = BackendUnavailable("busy", retry_after_seconds=3600)
    waiting = run(tmp_path / "job", ports(fails=[away], verdict=[records.reject(), records.accept()]))
    assert (waiting.state, waiting.reason) == ("waiting", "backend")
    assert run(tmp_path / "job", ports(verdict=[records.accept()])).state == "succeeded"


def test_a_disk_that_fills_up_later_waits_and_nothing_is_lost(tmp_path: Path) -> None:
    full = JobWaiting("disk", "no room: free some space")
    waiting = run(tmp_path / "job", ports(fails=[None, full]))
    assert (waiting.state, waiting.reason) == ("waiting", "disk")
    watcher = Quiet()
    assert run(tmp_path / "job", watcher=watcher).state == "succeeded"
    assert "step/1/attempt/1/clip" not in watcher.ran


def test_a_generator_that_fails_every_attempt_fails_the_job_for_good(tmp_path: Path) -> None:
    make = ports(fails=[BackendFailed("out of memory")] * 20)
    ending = run(tmp_path / "job", make)
    assert ending.state == "failed"
    assert "out of memory" in ending.message
    assert (tmp_path / "job" / "trajectory.json").exists()
    again = run(tmp_path / "job")
    assert again.state == "failed"
    assert "--fresh" in again.message
    assert run(tmp_path / "job", fresh=True).state == "succeeded"


def test_a_refusal_leaves_nothing_behind(tmp_path: Path) -> None:
    def refusing(_artifacts: Artifacts) -> Ports:
        raise TaskRejected("no", reason="test")

    with pytest.raises(TaskRejected):
        run(tmp_path / "a" / "b" / "job", refusing)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "notes.txt").write_text("mine")
    with pytest.raises(TaskRejected):
        run(tmp_path / "job", refusing)
    assert [path.name for path in (tmp_path / "job").iterdir()] == ["notes.txt"]


def test_a_later_refusal_of_a_begun_job_removes_nothing(tmp_path: Path) -> None:
    make = ports(fails=[None, TaskRejected("the picture is not allowed", reason="policy")])
    ending = run(tmp_path / "job", make)
    assert ending.state == "failed"
    assert JobFolder(tmp_path / "job").database.exists()
    assert run(tmp_path / "job").state == "succeeded"


def test_what_differs_is_said(tmp_path: Path) -> None:
    run(tmp_path / "job")
    for other, says in (
        (job("Move it left."), "prompt differs"),
        (job(max_steps=5), r"policy max_steps \(3 there, 5 now\) differs"),
    ):
        with pytest.raises(TaskRejected, match=says):
            run(tmp_path / "job", what=other)


def test_slugs_are_safe_names() -> None:
    assert slug("The red circle slides smoothly along the white path") == "the-red-circle-slides-smoothly-along"
    assert slug("../../etc/passwd") == "etc-passwd"
    assert slug("Größe: naïve") == "groe-naive" or slug("Größe: naïve") == "gro-e-naive"
    assert slug("日本語") == "job"
    assert len(slug("x" * 500)) <= 40


def artifact_of(ending: Ending, folder: Path) -> Path:
    """The stored file of the job's video."""
    assert ending.trajectory is not None
    assert ending.trajectory.outcome is not None
    assert ending.trajectory.outcome.video is not None
    return folder / ".cliploop" / "artifacts" / ending.trajectory.outcome.video.artifact


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0x5A
    path.write_bytes(data)


@pytest.mark.parametrize("damage", [Path.unlink, flip])
def test_a_video_that_is_gone_or_damaged_is_encoded_again(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    video = artifact_of(run(tmp_path / "job"), tmp_path / "job")
    before, stored = exported(tmp_path / "job"), video.read_bytes()
    damage(video)
    damage(tmp_path / "job" / "video.mp4")
    watcher = Quiet()
    assert run(tmp_path / "job", watcher=watcher).state == "succeeded"
    assert (exported(tmp_path / "job"), video.read_bytes()) == (before, stored)
    assert watcher.ran == ["final/video"]


def test_a_damaged_clip_is_named_with_the_remedy_and_never_shown(tmp_path: Path) -> None:
    video = artifact_of(run(tmp_path / "job"), tmp_path / "job")
    clip = next(path for path in sorted(video.parent.glob("*.mp4")) if path != video)
    flip(clip)
    (tmp_path / "job" / "steps" / "1" / "attempt-1.mp4").unlink()
    (tmp_path / "job" / "steps" / "1" / "attempt-2.mp4").unlink()
    ending = run(tmp_path / "job")
    assert ending.state == "failed"
    assert f"{clip} is damaged" in ending.message
    assert "--fresh" in ending.message
    assert run(tmp_path / "job", fresh=True).state == "succeeded"


@pytest.mark.parametrize("damage", [Path.unlink, flip])
def test_a_last_frame_that_is_gone_or_damaged_is_read_again_from_its_clip(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    ending = run(tmp_path / "job")
    assert ending.trajectory is not None
    before, artifacts = exported(tmp_path / "job"), tmp_path / "job" / ".cliploop" / "artifacts"
    frames = {
        attempt.clip.last_frame for step in ending.trajectory.steps for attempt in step.attempts if attempt.clip
    }
    frames |= {a.kept.last_frame for step in ending.trajectory.steps for a in step.attempts if a.kept}
    stored = {key: (artifacts / key).read_bytes() for key in frames if key != job().task.picture}
    assert len(stored) >= 2
    for key in stored:
        damage(artifacts / key)
    (tmp_path / "job" / "contact-sheet.png").unlink()
    assert run(tmp_path / "job").state == "succeeded"
    assert exported(tmp_path / "job") == before
    assert {key: (artifacts / key).read_bytes() for key in stored} == stored


def test_an_interrupt_before_the_first_effect_leaves_nothing(tmp_path: Path) -> None:
    def interrupted(_artifacts: Artifacts) -> Ports:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "a" / "job", interrupted)
    assert list(tmp_path.iterdir()) == []
    run(tmp_path / "b")
    before = exported(tmp_path / "b")
    (tmp_path / "b" / ".cliploop" / "finished.json").unlink()
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "b", interrupted)
    assert run(tmp_path / "b").state == "succeeded"
    assert exported(tmp_path / "b") == before


def test_a_damaged_picture_is_put_again(tmp_path: Path) -> None:
    run(tmp_path / "job")
    picture = tmp_path / "job" / ".cliploop" / "artifacts" / job().task.picture
    flip(picture)
    (tmp_path / "job" / "contact-sheet.png").unlink()
    assert run(tmp_path / "job").state == "succeeded"
    assert picture.read_bytes() == job().png


def test_a_finished_job_without_its_list_of_files_is_not_believed(tmp_path: Path) -> None:
    run(tmp_path / "job")
    before = exported(tmp_path / "job")
    finished = JobFolder(tmp_path / "job").finished
    finished.write_text(json.dumps({**json.loads(finished.read_text()), "files": {}}))
    flip(tmp_path / "job" / "video.mp4")
    assert not run(tmp_path / "job").recalled
    assert exported(tmp_path / "job") == before


@pytest.mark.parametrize(
    ("name", "as_folder", "says"),
    [
        ("video.mp4", True, "video.mp4 is a folder, where a file belongs: move it away"),
        ("steps", False, "steps is a file, where a folder belongs: move it away"),
        (".cliploop/parts", False, "parts is a file, where a folder belongs: move it away"),
    ],
)
def test_what_is_in_the_way_of_a_file_is_named(tmp_path: Path, name: str, as_folder: bool, says: str) -> None:
    run(tmp_path / "job")
    path = tmp_path / "job" / name
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    path.mkdir() if as_folder else path.write_text("mine")
    (tmp_path / "job" / "contact-sheet.png").unlink()
    ending = run(tmp_path / "job")
    assert ending.state == "failed"
    assert says in ending.message


@pytest.mark.parametrize("fresh", [False, True])
def test_a_run_removes_what_a_killed_rehearsal_left(tmp_path: Path, fresh: bool) -> None:
    folder = JobFolder(tmp_path / "job")
    run(folder.path)
    (folder.path / "video.mp4").unlink()
    trial = JobFolder(folder.memory / "fresh")
    Database(trial.database).close()
    run(folder.path, fresh=fresh)
    assert not trial.path.exists()
    assert (folder.path / "video.mp4").exists()


def test_fresh_keeps_a_clip_that_no_attempt_made(tmp_path: Path) -> None:
    run(tmp_path / "job")
    mine = tmp_path / "job" / "steps" / "9" / "attempt-9.mp4"
    mine.parent.mkdir()
    mine.write_text("mine")
    assert run(tmp_path / "job", fresh=True).state == "succeeded"
    assert mine.read_text() == "mine"


@pytest.mark.parametrize("error", [BackendFailed("the encoder was stopped"), ValueError("a library's")])
def test_an_error_after_an_interrupt_is_the_interrupt_and_no_failure(tmp_path: Path, error: Exception) -> None:
    """Some libraries turn the exception of a signal into one of their own."""
    stopped: list[bool] = []

    class Stopped(SlidingGenerator):
        def render(self, shot: Shot, **more: Any) -> Any:
            stopped.append(True)
            raise error

    def make(artifacts: Artifacts) -> Ports:
        whole = ports(cancelled=lambda: bool(stopped))(artifacts)
        return replace(whole, generator=Stopped(artifacts, ()), clock=SystemClock())

    assert run(tmp_path / "job", make).state == "interrupted"
    stopped.clear()
    assert run(tmp_path / "job").state == "succeeded"
