"""pass@k: k clips of the raw task, of which a selector picks one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.errors import BackendFailed, BackendUnavailable, JobWaiting, ReplyUnreadable, Suspended
from orchestrator.records import Budget, Capabilities, Check, Choice
from tests.orchestrator.fakes import CAPABILITIES, NO, NO_DRIFT, TASK, MemoryJournal, Stage, stage

LOST = BackendFailed("out of memory")


def clips(on: Stage) -> list[str]:
    return [key for key in on.journal.ran if key.endswith("/clip")]


def chosen(on: Stage) -> int | None:
    return on.trajectory().steps[0].chosen_attempt


def test_the_raw_task_is_rendered_k_times_and_the_chosen_clip_delivered() -> None:
    s = stage(strategy="pass@4", choices=[Choice(index=2, reason="it gets there")])
    outcome = s.run()
    assert s.prompts == [TASK.prompt] * 4
    assert len({shot.seed for shot in s.generator.shots}) == 4
    assert s.model.roles() == ["choice", "assessment"]
    assert s.model.of("assessment")[0]["view"].current_frame == "c3.96.png"
    assert s.editor.delivered == ["first.png", *(f"c3.{i}" for i in range(1, 97))]
    assert (outcome.kind, outcome.best_effort) == ("completed", True)
    told = s.trajectory()
    step = told.steps[0]
    assert [attempt.index for attempt in step.attempts] == [1, 2, 3, 4]
    assert all(attempt.clip and attempt.check and not attempt.verdict for attempt in step.attempts)
    assert (step.status, step.chosen_attempt) == ("unverified", 3)
    assert step.choice == Choice(index=2, reason="it gets there")
    assert told.spend.video_seconds == step.spend.video_seconds == 4 * 6.0
    assert s.journal.ran[1:5] == [f"step/1/attempt/{j}/clip" for j in (1, 2, 3, 4)]


def test_attempt_1_is_the_clip_of_pass_at_1_whatever_k_is() -> None:
    one, four = stage(strategy="pass@1"), stage(strategy="pass@4", choices=[Choice(index=3)])
    one.run()
    four.run()
    assert one.generator.shots == four.generator.shots[:1]
    assert list(one.journal.entries) == [
        *("start", "step/1/attempt/1/clip", "step/1/attempt/1/check"),
        *("final/assessment/try/1", "final/assessment", "final/video"),
    ]


@pytest.mark.parametrize(
    "reply", [ReplyUnreadable("no JSON"), Choice(index=4)], ids=["unreadable", "out of range"]
)
def test_a_choice_that_is_none_is_asked_again_and_then_the_first_one_stands(reply: Any) -> None:
    s = stage(strategy="pass@4", choices=[reply])
    s.run()
    assert s.model.roles() == ["choice"] * 3 + ["assessment"]
    assert chosen(s) == 1
    again = stage(strategy="pass@4", choices=[reply, Choice(index=1)])
    again.run()
    assert chosen(again) == 2


def test_a_lost_render_is_a_counted_attempt_and_no_candidate() -> None:
    s = stage(strategy="pass@3", choices=[Choice(index=1)], failures={1: LOST})
    s.run()
    step = s.trajectory().steps[0]
    assert step.attempts[0].failed == "out of memory"
    assert len(s.model.of("choice")[0]["candidates"]) == 2
    assert step.chosen_attempt == 3


def test_of_one_clip_nothing_is_asked() -> None:
    s = stage(strategy="pass@3", choices=[Choice(index=1)], failures={1: LOST, 3: LOST})
    s.run()
    assert s.model.roles() == ["assessment"]
    assert chosen(s) == 2


def test_all_lost_is_a_failure_that_shows_what_was_tried() -> None:
    s = stage(strategy="pass@2", choices=[Choice(index=0)], failures={1: LOST, 2: LOST})
    with pytest.raises(BackendFailed, match="failed every attempt"):
        s.run()
    step = s.trajectory().steps[0]
    assert (step.status, step.chosen_attempt, len(step.attempts)) == ("empty", None, 2)


def test_quick_checks_are_noted_and_rule_no_clip_out() -> None:
    s = stage(strategy="pass@2", choices=[Choice(index=0)])
    s.editor.checks = [Check(failure="no_motion", reason="frozen", drift=NO_DRIFT), Check(drift=NO_DRIFT)]
    s.run()
    step = s.trajectory().steps[0]
    assert step.attempts[0].check is not None
    assert step.attempts[0].check.failure == "no_motion"
    assert step.chosen_attempt == 1


def test_clips_that_are_alike_although_their_seeds_differ_say_so() -> None:
    s = stage(strategy="pass@3", choices=[Choice(index=0)], same=True)
    s.run()
    noted = [attempt.notes for attempt in s.trajectory().steps[0].attempts]
    assert noted[0] == ()
    assert "attempt 1, 2" in noted[2][0]


PRICED = Capabilities.model_validate({**CAPABILITIES.model_dump(), "usd_per_video_second": 0.5})


@pytest.mark.parametrize(
    ("budget", "rendered", "roles"),
    [
        (Budget(video_seconds=23.9), 3, ["choice", "assessment"]),
        (Budget(usd=6), 2, ["choice", "assessment"]),
        (Budget(video_seconds=6), 1, ["assessment"]),
        (Budget(vlm_calls=2), 4, ["choice", "assessment"]),
        (Budget(vlm_calls=1), 1, ["assessment"]),
        (Budget(vlm_calls=0), 1, []),
        (Budget(wall_seconds=2), 2, []),
    ],
    ids=["seconds", "dollars", "one", "both calls", "no selection", "no call", "time"],
)
def test_a_budget_is_kept_and_clips_beyond_the_first_give_way_first(
    budget: Budget, rendered: int, roles: list[str]
) -> None:
    s = stage(strategy="pass@4", choices=[Choice(index=0)], budget=budget, capabilities=PRICED)
    outcome = s.run()
    assert len(s.generator.shots) == rendered
    assert s.model.roles() == roles
    assert outcome.video is not None


def test_a_second_ask_of_the_selector_does_not_use_up_the_assessment() -> None:
    s = stage(strategy="pass@4", choices=[ReplyUnreadable("no JSON")], budget=Budget(vlm_calls=3))
    assert s.run().kind == "completed"
    assert s.model.roles() == ["choice", "choice", "assessment"]
    step = s.trajectory().steps[0]
    assert step.chosen_attempt == 1
    assert step.choice is not None
    assert "budget: vlm_calls" in step.choice.reason


def test_a_budget_for_no_clip_at_all_ends_in_an_outcome() -> None:
    few = Budget(video_seconds=5.9)
    s = stage(strategy="pass@4", choices=[Choice(index=0)], assessments=[NO], budget=few)
    outcome = s.run()
    assert (outcome.kind, outcome.video, s.generator.shots) == ("exhausted", None, [])
    assert "video_seconds" in outcome.reason
    assert s.trajectory().steps == ()


def test_where_gpu_time_is_limited_clips_come_one_at_a_time() -> None:
    s = stage(strategy="pass@4", choices=[Choice(index=0)], budget=Budget(gpu_seconds=1.2))
    s.run()
    assert len(s.generator.shots) == 2  # half a second each by the clock: a third could not be paid


def test_no_clip_is_rendered_twice_when_the_job_is_taken_up_again() -> None:
    away = BackendUnavailable("overloaded", retry_after_seconds=3600)
    s = stage(strategy="pass@3", choices=[Choice(index=2)], failures={2: away})
    with pytest.raises(JobWaiting):
        s.run()
    told = s.trajectory()
    assert [bool(attempt.clip) for attempt in told.steps[0].attempts] == [True, False, False]
    assert told.steps[0].status == "running"
    assert told.spend.video_seconds == 6.0
    s.run()
    assert chosen(s) == 3
    assert clips(s) == [f"step/1/attempt/{j}/clip" for j in (1, 2, 2, 3)]
    before = list(s.journal.ran)
    s.run()
    assert s.journal.ran == before


class Elsewhere(MemoryJournal):
    """A journal that renders nothing here, and notes what it was asked for at once."""

    def once_all(self, calls: Any) -> Any:
        missing = [call.key for call in calls if call.key not in self.entries and call.key.endswith("/clip")]
        if missing:
            raise Suspended(tuple(missing))
        return super().once_all(calls)


def test_all_clips_are_asked_for_at_once() -> None:
    s = stage(strategy="pass@3", choices=[Choice(index=0)])
    s.journal = Elsewhere()
    with pytest.raises(Suspended) as suspended:
        s.run()
    assert suspended.value.keys == tuple(f"step/1/attempt/{j}/clip" for j in (1, 2, 3))


def test_a_trajectory_is_read_without_a_selector_at_hand() -> None:
    s = stage(strategy="pass@3", choices=[Choice(index=1)])
    s.run()
    ports = stage().ports
    assert ports.selector is None
    s.ports = ports
    assert chosen(s) == 2


def test_a_clip_that_is_not_chained_may_come_from_any_generator() -> None:
    sora = Capabilities(name="sora", chainable=False)
    assert stage(capabilities=sora, strategy="pass@2", choices=[Choice(index=1)]).run().kind == "completed"


@settings(max_examples=60, deadline=None)
@given(
    k=st.integers(2, 16),
    lost=st.sets(st.integers(1, 16)),
    replies=st.lists(st.one_of(st.integers(0, 20), st.none()), min_size=1, max_size=3),
    seconds=st.one_of(st.none(), st.floats(0, 100)),
    calls=st.one_of(st.none(), st.integers(0, 5)),
)
def test_the_chosen_one_is_always_one_that_was_rendered_and_no_budget_is_exceeded(
    k: int, lost: set[int], replies: list[int | None], seconds: float | None, calls: int | None
) -> None:
    choices = [ReplyUnreadable("no JSON") if reply is None else Choice(index=reply) for reply in replies]
    budget = Budget(video_seconds=seconds, vlm_calls=calls)
    s = stage(strategy=f"pass@{k}", choices=choices, failures=dict.fromkeys(lost, LOST), budget=budget)
    try:
        s.run()
    except BackendFailed:
        assert all(attempt.failed for attempt in s.trajectory().steps[0].attempts)
    told = s.trajectory()
    assert told.spend.video_seconds <= (seconds if seconds is not None else 6 * k) + 1e-9
    assert calls is None or told.spend.vlm_calls <= calls
    for step in told.steps:
        rendered = {attempt.index for attempt in step.attempts if attempt.clip is not None}
        assert step.chosen_attempt in (rendered or {None})
        assert len(step.attempts) <= k
    assert told == s.trajectory()
