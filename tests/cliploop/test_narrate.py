"""The story of a job: from entries as they come and from a trajectory, the same words, all escaped."""

from __future__ import annotations

from cliploop.narrate import Narrator, Where, trajectory_lines
from orchestrator.ports import Inputs
from orchestrator.records import Answer, Assessment, Record, Route, Spend, Verdict
from tests.cliploop import records


def told(*entries: tuple[str, Inputs, Record]) -> tuple[list[str], Spend]:
    narrator = Narrator(records.policy())
    lines = [str(line) for key, inputs, value in entries for line in narrator.tell(key, inputs, value)]
    return lines, narrator.spend


def answer(value: Verdict | Route | Assessment) -> Answer[Record]:
    return Answer[Record](value=value, spend=Spend(vlm_calls=1))


def test_entries_become_a_story() -> None:
    shown = {"shot": records.shot()}
    lines, spend = told(
        ("start", {}, records.TASK),
        ("step/1/plan/try/1", {}, records.plan()),
        ("step/1/plan", {}, records.plan()),
        ("step/1/attempt/1/clip", shown, records.rendered()),
        ("step/1/attempt/1/verdict", {}, answer(records.reject())),
        ("step/1/attempt/1/cut", {}, records.prefix()),
        ("step/1/attempt/2/clip", shown, records.rendered()),
        ("step/1/attempt/2/check", {}, records.quick_reject()),
        ("step/1/route", {}, answer(Route(action="split", reason="two moves", sub_actions=("one", "two")))),
        ("step/2/attempt/1/clip", {"shot": records.shot("one")}, records.rendered()),
        ("step/2/attempt/1/verdict", {}, answer(records.accept())),
        ("final/assessment", {}, answer(Assessment(task_complete=True, reason="it is there"))),
    )
    assert lines == [
        "Step 1 (at most 3): The circle moves right.",
        "  attempt 1, 49 frames: rejected, wrong_direction (good to 25 %) - it went left",
        "  attempt 2, 49 frames after 12 kept: rejected, no_motion (good to 0 %) - nothing moved",
        "  all attempts rejected; split - two moves",
        "    one",
        "    two",
        "Step 2 (at most 3): one",
        "  attempt 1, 49 frames: accepted, complete",
        "Assessment: the task is done - it is there",
    ]
    assert spend == Spend(video_seconds=9, vlm_calls=5)


def test_the_gate_and_a_lost_render_are_told() -> None:
    narrator = Narrator(records.policy())
    begun = [str(line) for line in narrator.begin("gate/attempt/1/clip", {"shot": records.shot("All of it.")})]
    lost = [str(line) for line in narrator.tell_lost("gate/attempt/1/clip", "out of memory")]
    assert begun == ["Single shot of the whole task"]
    assert lost == ["  attempt 1: no clip - out of memory"]


def test_a_trajectory_tells_the_same_story() -> None:
    assert [str(line) for line in trajectory_lines(records.trajectory())] == [
        "Step 1 (at most 3): The circle moves right.",
        "  attempt 1, 49 frames: rejected, wrong_direction (good to 25 %) - it went left",
        "    a note",
        "  attempt 2, 49 frames after 49 kept: accepted, complete",
        "  attempt 3: no clip - out of memory",
        "  all attempts rejected; fallback - atomic",
        "  best attempt propagated (best effort)",
        "Assessment: the task is done - the circle is on the square",
        "Completed (best effort: not every clip was accepted): done",
        "  video 64x48, 49 frames, 3.1 s",
        "  6.0 s of video rendered, 5 VLM calls",
    ]


def test_words_that_are_not_ours_are_escaped() -> None:
    hostile = "\x1b[2J [red]x[/red]\nStep 9 of 9: forged"
    lines, _ = told(
        ("step/1/plan", {}, records.plan(hostile)),
        ("step/1/attempt/1/verdict", {}, answer(records.reject(hostile))),
        ("final/assessment", {}, answer(Assessment(task_complete=False, reason=hostile))),
    )
    assert lines.pop(2) == "  nothing good to keep"
    assert len(lines) == 3
    assert all("\\x1b[2J [red]x[/red] Step 9" in line for line in lines)


def test_keys_say_what_is_under_way() -> None:
    doing = {
        "step/2/plan": "step 2: planning",
        "step/2/attempt/1/clip": "step 2, attempt 1: rendering",
        "step/2/attempt/1/verdict": "step 2, attempt 1: verifying",
        "gate/attempt/1/clip": "single shot: rendering",
        "final/video": "encoding the video",
    }
    for key, words in doing.items():
        where = Where.of(key)
        assert where is not None
        assert where.doing == words
    assert Where.of("step/2/plan/try/1") is None
    assert Where.of("step/2/attempt/1/clip/token/1") is None


def test_a_new_round_and_a_new_step_keep_nothing_and_a_step_of_which_nothing_is_kept_says_so() -> None:
    shown = {"shot": records.shot()}
    lines, _ = told(
        ("step/1/plan", {}, records.plan()),
        ("step/1/attempt/1/clip", shown, records.rendered()),
        ("step/1/attempt/1/verdict", {}, answer(records.reject())),
        ("step/1/attempt/1/cut", {}, records.prefix()),
        ("step/1/route", {}, answer(Route(action="regenerate"))),
        ("step/1/attempt/2/clip", shown, records.rendered()),
        ("step/1/attempt/2/verdict", {}, answer(records.reject())),
        ("step/1/attempt/2/cut", {}, records.prefix()),
        ("step/2/plan", {}, records.plan()),
        ("step/2/attempt/1/clip", shown, records.rendered()),
        ("step/2/attempt/1/verdict", {}, answer(records.accept())),
    )
    assert [line for line in lines if "attempt" in line or "nothing" in line] == [
        "  attempt 1, 49 frames: rejected, wrong_direction (good to 25 %) - it went left",
        "  all attempts rejected; regenerate",
        "  attempt 2, 49 frames: rejected, wrong_direction (good to 25 %) - it went left",
        "  nothing good to keep",
        "  attempt 1, 49 frames: accepted, complete",
    ]


def test_a_trajectory_tells_of_the_router_before_the_attempts_it_caused() -> None:
    told_of = records.trajectory()
    first = told_of.steps[0].attempts[0]
    many = tuple(first.model_copy(update={"index": n}) for n in range(1, 3))
    step = told_of.steps[0].model_copy(update={"attempts": many, "route": Route(action="regenerate")})
    policy = told_of.policy.model_copy(update={"max_attempts": 1})
    lines = [str(x) for x in trajectory_lines(told_of.model_copy(update={"steps": (step,), "policy": policy}))]
    places = [
        next(i for i, x in enumerate(lines) if word in x) for word in ("attempt 1", "regenerate", "attempt 2")
    ]
    assert places == sorted(places)
