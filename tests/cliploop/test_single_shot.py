"""pass@1 and pass@k are told as what they are: shots of the raw task, judged by nobody, assessed at most."""

from __future__ import annotations

from pathlib import Path

import pytest

from cliploop.narrate import Narrator, trajectory_lines
from orchestrator.ports import Inputs
from orchestrator.records import Answer, Assessment, Check, Choice, Record, Spend, Trajectory
from tests.cliploop import records
from tests.cliploop.commandline import TASK, command

SHOT = records.policy(strategy="pass@1")
NOTHING_OF_IT = ("accepted", "rejected", "best effort", "Step 1", "step 1", "not verified")


def test_as_it_happens_there_is_no_step_and_no_verdict() -> None:
    narrator = Narrator(SHOT)
    shown = {"shot": records.shot()}
    frozen = Check(failure="no_motion", reason="nothing moves", notes=("it is dark",), drift=records.DRIFT)
    assessed = Answer[Record](value=Assessment(task_complete=False, reason="no"), spend=Spend(vlm_calls=1))
    entries: list[tuple[str, Inputs, Record]] = [
        ("step/1/attempt/1/clip", shown, records.rendered()),
        ("step/1/attempt/1/check", {}, frozen),
        ("final/assessment", {}, assessed),
    ]
    assert [str(line) for entry in entries for line in narrator.tell(*entry)] == [
        "Single shot of the whole task",
        "  attempt 1, 49 frames: rendered, not judged",
        "    noticed: nothing moves",
        "    noticed: it is dark",
        "Assessment: the task is not done - no",
    ]
    where = narrator.where("step/1/attempt/1/clip")
    assert where is not None
    assert where.doing == "single shot: rendering"


def single_shot(assessment: Assessment | None) -> Trajectory:
    told = records.trajectory(policy=SHOT, assessment=assessment)
    shot = told.steps[0].attempts[0].model_copy(update={"verdict": None, "notes": ()})
    step = told.steps[0].model_copy(update={"attempts": (shot,), "route": None, "status": "unverified"})
    return told.model_copy(update={"steps": (step,)})


@pytest.mark.parametrize("assessed", [True, False])
def test_a_trajectory_says_whether_it_was_assessed(assessed: bool) -> None:
    assessment = Assessment(task_complete=True, reason="it is there") if assessed else None
    lines = [str(line) for line in trajectory_lines(single_shot(assessment))]
    remark = ", its last frame assessed" if assessed else ""
    assert lines[:2] == ["Single shot of the whole task", "  attempt 1, 49 frames: rendered, not judged"]
    assert f"Completed (a single shot, not judged{remark}): done" in lines
    assert not [word for word in NOTHING_OF_IT if word in "\n".join(lines)]


def test_the_command_and_what_is_shown_later_say_the_same(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLIPLOOP_FIRST_STEP_SECONDS", "1")
    ran = command(capsys, "run", *TASK, "--strategy", "pass@1", "-o", "job")
    again = command(capsys, "run", *TASK, "--strategy", "pass@1", "-o", "job")
    shown = command(capsys, "trajectory", "show", "job")
    assert ran.code == again.code
    assert ran.out == again.out
    told = ran.out.splitlines()
    assert told[1] == "Single shot of the whole task"
    assert told[2].endswith("rendered, not judged")
    assert "not judged, its last frame assessed" in ran.out
    assert [line for line in told[1:] if line in shown.out.splitlines()] == told[1:-3]
    for said in (ran.out, shown.out):
        assert not [word for word in NOTHING_OF_IT if word in said]


def test_a_dry_run_of_it_promises_no_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    said = command(capsys, "run", *TASK, "--strategy", "pass@1", "--dry-run")
    assert "nothing planned or judged" in said.out
    for word in ("verifier", "planner", "router", "steps"):
        assert word not in said.out
    assert "at most 3 steps" in command(capsys, "run", *TASK, "--dry-run").out


SHOTS = records.policy(strategy="pass@3")


def test_several_shots_are_told_as_they_happen_and_the_chosen_one_by_its_attempt() -> None:
    narrator = Narrator(SHOTS)
    shown = {"shot": records.shot()}
    frozen = Check(failure="no_motion", reason="nothing moves", drift=records.DRIFT)
    lines = [str(line) for line in narrator.tell("step/1/attempt/1/clip", shown, records.rendered())]
    lines += [str(line) for line in narrator.tell_lost("step/1/attempt/2/clip", "out of memory")]
    chosen = Answer[Record](value=Choice(index=1, reason="it is there"), spend=Spend(vlm_calls=1))
    entries: list[tuple[str, Inputs, Record]] = [
        ("step/1/attempt/3/clip", shown, records.rendered()),
        ("step/1/attempt/1/check", {}, frozen),
        ("step/1/attempt/3/check", {}, Check(drift=records.DRIFT)),
        ("step/1/select", {}, chosen),
    ]
    lines += [str(line) for entry in entries for line in narrator.tell(*entry)]
    assert lines == [
        "3 shots of the whole task, one of them is chosen",
        "  attempt 1, 49 frames: rendered, not judged",
        "  attempt 2: no clip - out of memory",
        "  attempt 3, 49 frames: rendered, not judged",
        "    the same frames as attempt 1, although the seed differs",
        "  attempt 1, noticed: nothing moves",
        "  attempt 3 chosen - it is there",
    ]
    doing = [narrator.where(key) for key in ("step/1/attempt/2/clip", "step/1/select")]
    assert [where.doing for where in doing if where] == ["attempt 2: rendering", "choosing among the clips"]
    assert narrator.spend.vlm_calls == 1


def test_the_command_with_several_shots_and_what_is_shown_later_say_the_same(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLIPLOOP_FIRST_STEP_SECONDS", "1")
    ran = command(capsys, "run", *TASK, "--strategy", "pass@3", "-o", "job")
    again = command(capsys, "run", *TASK, "--strategy", "pass@3", "-o", "job")
    shown = command(capsys, "trajectory", "show", "job")
    assert (again.code, again.out) == (ran.code, ran.out)
    told = ran.out.splitlines()
    assert told[1] == "3 shots of the whole task, one of them is chosen"
    assert sum(line.endswith("17 frames: rendered, not judged") for line in told) == 3
    assert "chosen - " in ran.out
    assert "(one of 3 shots, not judged, its last frame assessed)" in ran.out
    assert [line for line in told[1:] if line in shown.out.splitlines()] == told[1:-3]
    assert len(list(Path("job/steps/1").glob("attempt-*.mp4"))) == 3
    for said in (ran.out, shown.out):
        assert not [word for word in NOTHING_OF_IT if word in said]


def test_a_dry_run_of_several_shots_counts_them(capsys: pytest.CaptureFixture[str]) -> None:
    said = command(capsys, "run", *TASK, "--strategy", "pass@4", "--dry-run")
    assert "the raw task in 4 clips, of which one is chosen, nothing planned or judged" in said.out
    assert "clips      4" in said.out
    assert "selector   oracle" in said.out
