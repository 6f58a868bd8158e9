"""The closed loop with scripted ports: steps, attempts, partial re-rendering, outcome."""

from __future__ import annotations

import pytest

from orchestrator.errors import (
    BackendFailed,
    BackendMisconfigured,
    JobCancelled,
    JobWaiting,
    TaskRejected,
)
from orchestrator.records import Capabilities, Check, Plan, Verdict
from tests.orchestrator.fakes import (
    ACCEPT,
    DONE,
    MOVE,
    NO,
    NO_DRIFT,
    PARTIAL,
    REJECT,
    TASK,
    YES,
    reject,
    stage,
)


def test_an_accepted_clip_leads_to_the_next_plan_from_its_last_frame() -> None:
    s = stage(plans=[MOVE, Plan(instruction="Move down."), DONE])
    outcome = s.run()
    assert outcome.kind == "completed"
    assert [shot.start_frame for shot in s.generator.shots] == ["first.png", "c1.96.png"]
    views = [asked["view"] for asked in s.model.of("plan")]
    assert [view.current_frame for view in views] == ["first.png", "c1.96.png", "c2.48.png"]
    assert all(view.first_picture == "first.png" for view in views)
    assert [(h.step, h.instruction) for h in views[2].history] == [(1, "Move right."), (2, "Move down.")]


def test_the_first_step_has_six_seconds_and_later_ones_three() -> None:
    s = stage()
    s.run()
    assert [shot.num_frames for shot in s.generator.shots] == [97, 49, 49]


def test_delivered_frames_are_the_sum_of_the_frames_less_the_joins() -> None:
    s = stage(plans=[MOVE, MOVE, DONE])
    outcome = s.run()
    assert outcome.video is not None
    assert outcome.video.num_frames == 97 + 49 - 1 == len(s.editor.delivered)
    assert s.editor.delivered[95:99] == ["c1.95", "c1.96", "c2.1", "c2.2"]


def test_a_generators_own_copy_of_its_start_frame_never_shows() -> None:
    s = stage(plans=[MOVE, MOVE, DONE], verdicts=[reject(0.5), ACCEPT, ACCEPT])
    s.run()
    assert s.editor.delivered[0] == "first.png"
    assert not [label for label in s.editor.delivered if label.endswith(".0")]


def test_a_rejected_clip_is_rendered_again_with_the_correction_and_another_seed() -> None:
    s = stage(plans=[MOVE, DONE], verdicts=[REJECT, reject(0.0, "Stop in time."), ACCEPT])
    s.run()
    assert s.prompts == ["Move right.", "Move right. Go right.", "Move right. Go right. Stop in time."]
    assert len({shot.seed for shot in s.generator.shots}) == 3
    assert [shot.start_frame for shot in s.generator.shots] == ["first.png"] * 3


def test_a_kept_prefix_is_continued_from_its_last_good_frame_for_the_rest_of_the_time() -> None:
    s = stage(plans=[MOVE, DONE], verdicts=[reject(48 / 97), ACCEPT])
    s.run()
    second = s.generator.shots[1]
    assert second.start_frame == "c1.48.png"
    assert second.seconds == 3.0
    assert s.editor.delivered == ["first.png"] + [f"c1.{i}" for i in range(1, 49)] + [
        f"c2.{i}" for i in range(1, 49)
    ]


def test_a_chain_of_three_partial_re_renders_keeps_all_three_prefixes() -> None:
    fractions = [0.5, 0.8, 0.9]
    verdicts = [*map(reject, fractions), ACCEPT]
    s = stage(plans=[MOVE, DONE], verdicts=verdicts, max_attempts=4)
    s.run()
    clips = [label.split(".")[0] for label in s.editor.delivered]
    assert list(dict.fromkeys(clips)) == ["first", "c1", "c2", "c3", "c4"]
    judged = [s.editor.labels(asked["candidate"]) for asked in s.model.of("verdict")]
    for g, earlier, later, shot in zip(fractions, judged, judged[1:], s.generator.shots[1:], strict=False):
        kept = int(g * len(earlier) + 1e-6) + 1
        assert later[:kept] == earlier[:kept]
        assert shot.start_frame == f"{earlier[kept - 1]}.png"


def test_nothing_is_kept_when_little_was_good() -> None:
    s = stage(plans=[MOVE, DONE], verdicts=[reject(0.2), ACCEPT])
    s.run()
    assert s.generator.shots[1].start_frame == "first.png"
    assert s.generator.shots[1].num_frames == 97


def test_a_right_but_unfinished_action_is_accepted_and_the_rest_planned() -> None:
    s = stage(plans=[MOVE, DONE], verdicts=[PARTIAL])
    s.run()
    assert len(s.generator.shots) == 1
    assert s.model.of("plan")[1]["view"].history[0].progress == "partial"


def test_on_the_last_step_unfinished_is_incomplete_and_the_whole_candidate_is_continued() -> None:
    s = stage(verdicts=[PARTIAL, ACCEPT], max_steps=1)
    s.run()
    assert s.generator.shots[1].start_frame == "c1.96.png"
    assert s.generator.shots[1].seconds == 1.0
    assert s.prompts[1] == "Move right. Go on."
    first = s.trajectory().steps[0].attempts[0].verdict
    assert first is not None
    assert (first.decision, first.failure, first.good_fraction) == ("reject", "incomplete", 1.0)
    assert first.reason.startswith("unfinished, and this step must finish")


def test_quick_checks_reject_without_asking_the_verifier() -> None:
    s = stage(plans=[MOVE, DONE])
    s.editor.checks = [Check(failure="no_motion", reason="nothing moved", drift=NO_DRIFT)]
    s.run()
    assert s.model.roles() == ["plan", "verdict", "plan", "assessment"]
    verdict = s.trajectory().steps[0].attempts[0].verdict
    assert verdict is not None
    assert (verdict.source, verdict.good_fraction, verdict.failure) == ("quick_check", 0.0, "no_motion")


def test_notes_of_the_quick_checks_reach_the_verifier() -> None:
    s = stage(plans=[MOVE, DONE])
    s.editor.checks = [Check(notes=("a flash at frame 3",), drift=NO_DRIFT)]
    s.run()
    assert s.model.of("verdict")[0]["notes"] == ("a flash at frame 3",)


def test_only_the_assessment_gives_completed() -> None:
    s = stage(plans=[DONE], assessments=[NO])
    assert s.run().kind == "exhausted"
    s = stage(assessments=[YES])
    assert s.run().kind == "completed"
    assert s.model.of("assessment")[0]["view"].current_frame == "c3.48.png"


def test_a_task_that_is_done_from_the_start_needs_no_clip() -> None:
    outcome = stage(plans=[DONE]).run()
    assert outcome.kind == "completed"
    assert outcome.video is None


def test_a_lost_render_is_a_counted_attempt_without_verdict() -> None:
    s = stage(plans=[MOVE, DONE], failures={1: BackendFailed("out of memory")})
    assert s.run().kind == "completed"
    attempts = s.trajectory().steps[0].attempts
    assert [a.failed for a in attempts] == ["out of memory", None]
    assert attempts[0].verdict is None
    assert s.prompts == ["Move right.", "Move right."]


def test_a_generator_that_fails_every_attempt_fails_the_job() -> None:
    failures: dict[int, Exception] = {n: BackendFailed("broken") for n in range(1, 99)}
    with pytest.raises(BackendFailed, match="every attempt"):
        stage(failures=failures).run()


def test_an_identical_retry_is_noticed_and_recorded() -> None:
    s = stage(plans=[MOVE, DONE], verdicts=[REJECT, ACCEPT], same=True)
    s.run()
    assert "same frames as attempt 1" in s.trajectory().steps[0].attempts[1].notes[0]


def test_the_single_shot_gate_ends_the_job_when_the_verifier_accepts() -> None:
    s = stage(gate="single_shot")
    outcome = s.run()
    assert outcome.kind == "completed"
    assert s.prompts == [TASK.prompt]
    assert s.model.roles() == ["verdict", "assessment"]
    gate = s.trajectory().gate
    assert gate is not None
    assert gate.status == "accepted"


@pytest.mark.parametrize("verdict", [REJECT, PARTIAL])
def test_the_loop_begins_when_the_single_shot_is_rejected_or_unfinished(verdict: object) -> None:
    s = stage(plans=[MOVE, DONE], verdicts=[verdict, ACCEPT], gate="single_shot")
    s.run()
    assert s.prompts == [TASK.prompt, "Move right."]
    assert s.generator.shots[1].start_frame == "first.png"
    assert len({shot.seed for shot in s.generator.shots}) == 2


def test_pass_at_1_renders_the_task_prompt_itself_once() -> None:
    s = stage(strategy="pass@1")
    outcome = s.run()
    assert s.prompts == [TASK.prompt]
    assert s.model.roles() == ["assessment"]
    assert outcome.kind == "completed"
    assert outcome.best_effort
    assert s.trajectory().steps[0].status == "unverified"


def test_a_backend_that_reimagines_its_first_frame_is_refused_unless_told_otherwise() -> None:
    sora = Capabilities(name="sora", chainable=False, first_frame_psnr_min=30)
    with pytest.raises(BackendMisconfigured, match="cannot be chained"):
        stage(capabilities=sora).run()
    assert stage(capabilities=sora, allow_unchainable=True).run().kind == "completed"
    assert stage(capabilities=sora, strategy="pass@1").run().kind == "completed"


def test_an_empty_or_too_long_prompt_is_refused_with_length_and_limit() -> None:
    s = stage()
    s.task = TASK.model_copy(update={"prompt": " \n"})
    with pytest.raises(TaskRejected, match="empty"):
        s.run()
    s.task = TASK.model_copy(update={"prompt": "x" * 4001})
    with pytest.raises(TaskRejected, match=r"4001 characters.*4000"):
        s.run()
    assert s.journal.entries == {}


def test_a_cancelled_job_begins_no_further_effect() -> None:
    asked = iter([False, False, True])
    s = stage(cancelled=lambda: next(asked))
    with pytest.raises(JobCancelled):
        s.run()
    assert s.generator.shots != []
    assert s.model.roles() == ["plan"]


def test_without_a_suggestion_the_remainder_is_asked_for_in_our_words() -> None:
    silent = PARTIAL.model_copy(update={"suggestion": ""})
    s = stage(verdicts=[silent, ACCEPT], max_steps=1)
    s.run()
    assert s.prompts[1] == "Move right. So far it is right: continue from here to the end. It is right."


def test_a_job_that_waits_in_the_gate_shows_what_it_rendered() -> None:
    s = stage(verdicts=[Verdict(decision="unclear", reason="dim")], gate="single_shot")
    with pytest.raises(JobWaiting):
        s.run()
    gate = s.trajectory().gate
    assert gate is not None
    assert gate.status == "running"
    assert len(gate.attempts) == 1


def test_an_empty_instruction_is_asked_again() -> None:
    s = stage(plans=[Plan(), MOVE, DONE])
    s.run()
    assert s.prompts == ["Move right."]
