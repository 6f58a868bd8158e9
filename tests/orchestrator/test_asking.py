"""Three asks in all; transient errors are never an answer; blocked replies are their own case."""

from __future__ import annotations

import pytest

from orchestrator.errors import BackendUnavailable, JobWaiting, ReplyBlocked, ReplyUnreadable
from orchestrator.records import Plan, Spend, Verdict
from tests.orchestrator.fakes import ACCEPT, DONE, MOVE, Stage, stage

UNCLEAR = Verdict(decision="unclear", reason="cannot tell")
UNREADABLE = ReplyUnreadable("no JSON", raw="I would accept", spend=Spend(vlm_calls=1, vlm_tokens=7))


def test_an_unreadable_then_unclear_then_clear_verdict_takes_three_asks() -> None:
    s = stage(plans=[MOVE, DONE], verdicts=[UNREADABLE, UNCLEAR, ACCEPT])
    assert s.run().kind == "completed"
    tries = [key for key in s.journal.entries if "verdict/try" in key]
    assert tries == [f"step/1/attempt/1/verdict/try/{n}" for n in (1, 2, 3)]
    assert len({asked["view"].seed for asked in s.model.of("verdict")}) == 3


@pytest.mark.parametrize("replies", [[UNCLEAR], [UNREADABLE], [UNREADABLE, UNCLEAR]])
def test_a_verdict_that_never_gets_clear_waits_and_is_neither_accept_nor_reject(replies: list[object]) -> None:
    s = stage(verdicts=replies)
    with pytest.raises(JobWaiting) as waiting:
        s.run()
    assert waiting.value.reason == "unclear"
    assert waiting.value.key == "step/1/attempt/1/verdict"
    assert s.model.roles().count("verdict") == 3
    assert len(s.generator.shots) == 1


def test_a_renewed_wait_allows_three_more_asks_and_repeats_none() -> None:
    s = stage(plans=[MOVE, DONE], verdicts=[UNCLEAR] * 4 + [ACCEPT])
    with pytest.raises(JobWaiting):
        s.run()
    with pytest.raises(JobWaiting):
        s.run()
    assert s.model.roles().count("verdict") == 3
    s.journal.renewed["step/1/attempt/1/verdict"] = 1
    assert s.run().kind == "completed"
    assert s.model.roles().count("verdict") == 5


def test_a_plan_that_is_longer_than_the_backends_limit_is_asked_again() -> None:
    s = stage(plans=[Plan(instruction="x" * 5000), MOVE, DONE])
    s.run()
    assert s.prompts == ["Move right."]
    assert s.model.of("plan")[0]["view"].prompt_chars == 4000


def test_a_blocked_reply_is_asked_once_more_then_waits_for_the_backend() -> None:
    s = stage(verdicts=[ReplyBlocked("safety")])
    with pytest.raises(JobWaiting) as waiting:
        s.run()
    assert waiting.value.reason == "backend"
    assert s.model.roles().count("verdict") == 2


def test_a_blocked_reply_may_be_followed_by_an_answer() -> None:
    assert stage(plans=[MOVE, DONE], verdicts=[ReplyBlocked("safety"), ACCEPT]).run().kind == "completed"


def test_an_unreadable_assessment_never_completes() -> None:
    outcome = stage(assessments=[ReplyUnreadable("cut off")]).run()
    assert outcome.kind == "exhausted"
    assert "no readable answer" in outcome.reason


def busy(times: int, then: object, retry_after: float | None = None) -> list[object]:
    return [BackendUnavailable("503", retry_after_seconds=retry_after)] * times + [then]


def test_an_unavailable_backend_is_asked_again_with_growing_pauses_and_nothing_recorded() -> None:
    s = stage(plans=[*busy(2, MOVE), DONE])
    assert s.run().kind == "completed"
    assert len(s.clock.slept) == 2
    assert 0.5 <= s.clock.slept[0] <= 1.0 <= s.clock.slept[1] <= 2.0
    assert "step/1/plan/try/2" not in s.journal.entries


def test_retry_after_is_honoured() -> None:
    s = stage(plans=[*busy(1, MOVE, retry_after=17.0), DONE])
    s.run()
    assert s.clock.slept == [17.0]


def waits_for_backend(s: Stage) -> JobWaiting:
    with pytest.raises(JobWaiting) as waiting:
        s.run()
    assert waiting.value.reason == "backend"
    return waiting.value


def test_a_backend_that_stays_away_makes_the_job_wait_and_the_same_call_goes_on() -> None:
    s = stage(plans=[*busy(6, MOVE), DONE])
    waits_for_backend(s)
    assert "step/1/plan/try/1" not in s.journal.entries
    assert s.run().kind == "completed"


def test_a_long_retry_after_waits_at_once() -> None:
    s = stage(plans=busy(1, MOVE, retry_after=3600))
    waits_for_backend(s)
    assert s.clock.slept == []


def test_an_unavailable_generator_is_no_failed_attempt() -> None:
    unavailable: dict[int, Exception] = {1: BackendUnavailable("503")}
    s = stage(plans=[MOVE, DONE], failures=unavailable)
    assert s.run().kind == "completed"
    assert len(s.trajectory().steps[0].attempts) == 1


def test_every_ask_counts_its_spend() -> None:
    s = stage(plans=[MOVE, DONE], verdicts=[UNREADABLE, ACCEPT])
    s.run()
    spend = s.trajectory().spend
    assert spend.vlm_calls == 5
    assert spend.vlm_tokens == 407


def test_a_renewed_round_counts_its_own_blocked_replies() -> None:
    s = stage(verdicts=[UNREADABLE] * 3 + [ReplyBlocked("safety")])
    with pytest.raises(JobWaiting):
        s.run()
    s.journal.renewed["step/1/attempt/1/verdict"] = 1
    with pytest.raises(JobWaiting) as waiting:
        s.run()
    assert waiting.value.reason == "backend"
    assert s.model.roles().count("verdict") == 5
