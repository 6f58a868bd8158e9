"""pass@1 is told as what it is: one shot, judged by nobody, assessed at most."""

from __future__ import annotations

from pathlib import Path

import pytest

from cliploop.narrate import Narrator, trajectory_lines
from orchestrator.ports import Inputs
from orchestrator.records import Answer, Assessment, Check, Record, Spend, Trajectory
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
