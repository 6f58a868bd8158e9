"""What happens to a step whose attempts were all rejected."""

from __future__ import annotations

import pytest

from orchestrator.errors import ReplyUnreadable
from orchestrator.records import Choice, Route
from tests.orchestrator.fakes import (
    ACCEPT,
    CAPABILITIES,
    DONE,
    FALLBACK,
    MOVE,
    NO,
    PARTIAL,
    REJECT,
    reject,
    stage,
)


def test_regenerate_makes_attempts_m_plus_1_to_2m_from_the_original_instruction_and_one_suggestion() -> None:
    route = Route(action="regenerate", suggestion="Only the circle moves.")
    s = stage(plans=[MOVE, DONE], verdicts=[REJECT] * 5 + [ACCEPT], routes=[route])
    s.run()
    assert len(s.generator.shots) == 6
    assert s.prompts[3] == "Move right. Only the circle moves."
    assert s.prompts[4] == "Move right. Only the circle moves. Go right."
    assert len({shot.seed for shot in s.generator.shots}) == 6
    assert s.model.roles().count("route") == 1


def test_a_second_failure_after_regenerate_is_a_fallback() -> None:
    route = Route(action="regenerate", suggestion="Again.")
    s = stage(plans=[MOVE, DONE], verdicts=[REJECT], routes=[route], assessments=[NO])
    s.run()
    steps = s.trajectory().steps
    assert len(steps[0].attempts) == 6
    assert steps[0].status == "empty"
    assert s.model.roles().count("route") == 1


def test_split_drops_the_clips_and_makes_each_sub_action_a_step() -> None:
    route = Route(action="split", sub_actions=("Move right.", "Move down."))
    s = stage(plans=[MOVE, DONE], verdicts=[reject(0.9)] * 3 + [ACCEPT], routes=[route], max_steps=4)
    s.run()
    steps = s.trajectory().steps
    assert [step.status for step in steps] == ["split", "accepted", "accepted"]
    assert [step.plan.instruction for step in steps] == ["Move right.", "Move right.", "Move down."]
    assert s.generator.shots[3].start_frame == "first.png"
    assert not [label for label in s.editor.delivered if label.startswith(("c1.", "c2.", "c3."))]
    assert s.model.roles().count("plan") == 2


def test_sub_actions_beyond_the_remaining_steps_are_merged_into_the_last() -> None:
    route = Route(action="split", sub_actions=("One.", "Two.", "Three.", "Four."))
    s = stage(verdicts=[REJECT] * 3 + [ACCEPT], routes=[route], max_steps=3)
    s.run()
    assert [step.plan.instruction for step in s.trajectory().steps[1:]] == ["One.", "Two. Three. Four."]


def test_a_split_with_no_step_left_is_a_fallback() -> None:
    route = Route(action="split", sub_actions=("One.", "Two."))
    s = stage(verdicts=[reject(0.5)], routes=[route], max_steps=1, assessments=[NO])
    s.run()
    (step,) = s.trajectory().steps
    assert step.status == "best_effort"
    assert step.route is not None
    assert step.route.action == "fallback"
    assert "no step is left" in step.route.reason


def test_fallback_propagates_the_best_attempt_cut_at_its_last_good_frame() -> None:
    verdicts = [reject(0.3), reject(0.6), reject(0.5), ACCEPT]
    s = stage(plans=[MOVE, MOVE, DONE], verdicts=verdicts, assessments=[NO])
    outcome = s.run()
    step = s.trajectory().steps[0]
    assert (step.status, step.chosen_attempt) == ("best_effort", 2)
    best = step.attempts[1].candidate
    assert best is not None
    kept = int(0.6 * best.num_frames + 1e-6) + 1
    assert s.editor.labels(step.footage) == s.editor.labels(best)[:kept]
    assert s.generator.shots[3].start_frame == f"{s.editor.labels(best)[kept - 1]}.png"
    assert outcome.best_effort


def test_a_step_with_nothing_good_adds_nothing_and_the_loop_goes_on_from_the_same_frame() -> None:
    s = stage(plans=[MOVE, MOVE, DONE], verdicts=[REJECT] * 3 + [ACCEPT])
    s.run()
    assert s.trajectory().steps[0].status == "empty"
    assert s.generator.shots[3].start_frame == "first.png"
    assert s.model.of("plan")[1]["view"].history == ()


def test_a_job_with_nothing_accepted_still_shows_its_best_candidate_marked_so() -> None:
    verdicts = [reject(0.1), reject(0.15), reject(0.0)]
    s = stage(verdicts=verdicts, max_steps=1, assessments=[NO])
    outcome = s.run()
    assert outcome.kind == "exhausted"
    assert outcome.best_effort
    assert s.editor.delivered[1:] == [f"c2.{i}" for i in range(1, 97)]


@pytest.mark.parametrize(
    ("verdicts", "best"),
    [
        ([reject(0.9), reject(0.3, progress="partial"), reject(0.5)], 2),
        ([reject(0.3), reject(0.5), reject(0.4)], 2),
        ([reject(0.0, confidence="high"), reject(0.0, confidence="low"), reject(0.0)], 1),
        ([reject(0.5, confidence="low"), reject(0.5, confidence="medium"), reject(0.5, confidence="low")], 2),
    ],
)
def test_the_best_attempt_is_by_progress_then_good_fraction_then_confidence_then_the_earliest(
    verdicts: list[object], best: int
) -> None:
    s = stage(verdicts=verdicts, max_steps=1, assessments=[NO])
    s.run()
    (step,) = s.trajectory().steps
    assert step.chosen_attempt in (best, None)
    if step.chosen_attempt is None:
        assert s.editor.delivered[1].startswith(f"c{best}.")


def test_a_selector_may_choose_the_best_attempt() -> None:
    s = stage(verdicts=[reject(0.9), reject(0.5), reject(0.4)], choices=[Choice(index=2)], max_steps=1)
    s.run()
    assert s.trajectory().steps[0].chosen_attempt == 3


def test_a_selector_out_of_range_leaves_the_choice_to_the_rule() -> None:
    s = stage(verdicts=[reject(0.9), reject(0.5), reject(0.4)], choices=[Choice(index=9)], max_steps=1)
    s.run()
    assert s.trajectory().steps[0].chosen_attempt == 1
    assert s.model.roles().count("choice") == 3


def test_an_unreadable_router_is_a_fallback_after_three_asks() -> None:
    s = stage(verdicts=[reject(0.5)], routes=[ReplyUnreadable("prose")], max_steps=1)
    s.run()
    assert s.model.roles().count("route") == 3
    assert s.trajectory().steps[0].status == "best_effort"


def test_a_sub_action_with_others_after_it_must_be_finished() -> None:
    routes = [Route(action="split", sub_actions=("One.", "Two.")), FALLBACK]
    verdicts = [REJECT, PARTIAL, ACCEPT, PARTIAL]
    s = stage(plans=[MOVE, DONE], verdicts=verdicts, routes=routes, max_steps=4, max_attempts=1)
    s.run()
    assert [step.status for step in s.trajectory().steps] == ["split", "best_effort"]
    assert s.prompts == ["Move right.", "One."]


def test_after_a_failed_sub_action_the_planner_looks_again() -> None:
    routes = [Route(action="split", sub_actions=("One.", "Two.")), FALLBACK]
    s = stage(
        plans=[MOVE, MOVE, DONE], verdicts=[REJECT, REJECT, ACCEPT], routes=routes, max_steps=4, max_attempts=1
    )
    s.run()
    assert s.prompts == ["Move right.", "One.", "Move right."]
    assert s.model.of("plan")[1]["view"].step == 3


SHORT = CAPABILITIES.model_copy(update={"prompt_chars": 24})


@pytest.mark.parametrize("sub_actions", [("x" * 25, "One."), ("One.", " ")])
def test_a_split_that_no_generator_could_be_told_is_asked_again(sub_actions: tuple[str, ...]) -> None:
    routes = [Route(action="split", sub_actions=sub_actions), Route(action="split", sub_actions=("One.", "Two."))]
    s = stage(plans=[MOVE, DONE], verdicts=[REJECT, ACCEPT], routes=routes, max_attempts=1, capabilities=SHORT)
    s.run()
    assert s.prompts == ["Move right.", "One.", "Two."]


def test_sub_actions_that_would_be_too_long_together_leave_the_last_step_to_the_planner() -> None:
    route = Route(action="split", sub_actions=("One one one.", "Two two two.", "Three three."))
    s = stage(plans=[MOVE, MOVE], verdicts=[REJECT, ACCEPT], routes=[route], max_attempts=1, capabilities=SHORT)
    s.run()
    assert s.prompts == ["Move right.", "One one one.", "Move right."]


def test_a_sub_action_that_is_split_again_leaves_the_others_to_be_done() -> None:
    routes = [
        Route(action="split", sub_actions=("One.", "Two.")),
        Route(action="split", sub_actions=("One a.", "One b.")),
    ]
    verdicts = [REJECT, REJECT, ACCEPT]
    s = stage(plans=[MOVE, DONE], verdicts=verdicts, routes=routes, max_steps=4, max_attempts=1)
    s.run()
    assert s.prompts == ["Move right.", "One.", "One a.", "One b. Two."]


def test_an_unfinished_sub_action_is_continued_before_the_next_one() -> None:
    route = Route(action="split", sub_actions=("One.", "Two."))
    verdicts = [REJECT, REJECT, PARTIAL, ACCEPT, PARTIAL]
    s = stage(plans=[MOVE, DONE], verdicts=verdicts, routes=[route], max_steps=4, max_attempts=2)
    s.run()
    assert s.prompts[2:] == ["One.", "One. Go on.", "Two."]
    assert [step.status for step in s.trajectory().steps] == ["split", "accepted", "accepted"]
