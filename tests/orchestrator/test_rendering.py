"""Remote renders: the token is journaled at once and polled after a restart, not submitted again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.errors import BackendFailed, BackendUnavailable, JobWaiting, SubmissionUnknown
from orchestrator.records import Shot, Spend
from tests.orchestrator.fakes import CAPABILITIES, DONE, MOVE, LabelGenerator, Stage, stage

CLIP = "step/1/attempt/1/clip"
REMOTE = CAPABILITIES.model_copy(update={"remote": True})


class Died(BaseException):
    """The process ends here."""


class RemoteGenerator(LabelGenerator):
    """Submits, hands over a token, then renders; dies, or fails with these errors, at the named moment."""

    errors: Sequence[Exception] = ()

    def __init__(self, die: str) -> None:
        super().__init__(REMOTE)
        self.die = die
        self.submitted = 0
        self.filtered = 0
        self.polled: list[str] = []

    def render(self, shot: Shot, *, resume: Any, checkpoint: Any, progress: Any, cancelled: Any) -> list[str]:
        if resume is None:
            self._submit(checkpoint)
        else:
            self.polled.append(resume)
        while self.filtered:  # it gave nothing, and is submitted once more
            self.filtered -= 1
            checkpoint("")
            self._submit(checkpoint, "again ")
        return super().render(shot, resume=resume, checkpoint=checkpoint, progress=progress, cancelled=cancelled)

    def _submit(self, checkpoint: Any, moment: str = "") -> None:
        self.submitted += 1
        self._maybe_die(f"{moment}before the token")
        checkpoint(f"token-{self.submitted}")
        self._maybe_die(f"{moment}after the token")

    def _maybe_die(self, moment: str) -> None:
        if self.die == moment:
            if self.errors:
                error, *self.errors = self.errors
                raise error
            self.die = ""
            raise Died


def remote_stage(die: str, **changes: Any) -> tuple[Stage, RemoteGenerator]:
    s = stage(plans=[MOVE, DONE], capabilities=REMOTE, **changes)
    generator = RemoteGenerator(die)
    s.ports = replace(s.ports, generator=generator)
    return s, generator


def test_after_a_restart_a_submitted_render_is_polled() -> None:
    s, generator = remote_stage("after the token")
    with pytest.raises(Died):
        s.run()
    assert s.run().kind == "completed"
    assert generator.submitted == 1
    assert generator.polled == ["token-1"]


def test_a_stop_between_submit_and_token_is_recorded_and_submitted_again() -> None:
    s, generator = remote_stage("before the token")
    with pytest.raises(Died):
        s.run()
    assert s.run().kind == "completed"
    assert generator.submitted == 2
    assert "step/1/attempt/1/clip/submit_unknown/1" in s.journal.entries


def test_by_policy_it_waits_for_a_person_first() -> None:
    s, generator = remote_stage("before the token", submit_unknown="wait")
    with pytest.raises(Died):
        s.run()
    with pytest.raises(JobWaiting, match="charged already"):
        s.run()
    assert generator.submitted == 1
    s.journal.renewed["step/1/attempt/1/clip"] = 1
    assert s.run().kind == "completed"


def test_an_undisturbed_remote_render_leaves_no_doubt() -> None:
    s, generator = remote_stage("")
    s.run()
    assert generator.submitted == 1
    assert "step/1/attempt/1/clip/token/1" in s.journal.entries
    assert not [key for key in s.journal.entries if "submit_unknown" in key or "refused" in key]


def test_a_poll_that_fails_is_tried_again_by_the_token_and_pays_once() -> None:
    s, generator = remote_stage("after the token")
    generator.errors = [BackendUnavailable("503")]
    assert s.run().kind == "completed"
    assert (generator.submitted, generator.polled) == (1, ["token-1"])


def test_every_open_window_is_asked_about_by_itself() -> None:
    s, generator = remote_stage("before the token", submit_unknown="wait")
    key = "step/1/attempt/1/clip"
    with pytest.raises(Died):
        s.run()
    with pytest.raises(JobWaiting, match="charged already"):
        s.run()
    s.journal.renewed[key] = 1
    generator.die = "before the token"
    with pytest.raises(Died):
        s.run()
    with pytest.raises(JobWaiting, match="charged already"):
        s.run()
    assert generator.submitted == 2
    s.journal.renewed[key] = 2
    assert s.run().kind == "completed"
    assert f"{key}/submit_unknown/2" in s.journal.entries


def test_a_submission_that_was_refused_leaves_no_doubt() -> None:
    s, generator = remote_stage("before the token", submit_unknown="wait")
    generator.errors = [BackendUnavailable("connection refused"), BackendUnavailable("503")]
    with pytest.raises(Died):
        s.run()
    assert generator.submitted == 3
    assert "step/1/attempt/1/clip/submitting/2/refused" in s.journal.entries
    assert "step/1/attempt/1/clip/submit_unknown/2" not in s.journal.entries


def test_an_answer_that_was_lost_is_submitted_again() -> None:
    s, generator = remote_stage("before the token")
    generator.errors = [SubmissionUnknown("no answer")]
    with pytest.raises(Died):
        s.run()
    assert generator.submitted == 2
    assert "step/1/attempt/1/clip/submit_unknown/1" in s.journal.entries


def test_where_every_answer_is_lost_somebody_is_asked_in_the_end() -> None:
    s, generator = remote_stage("before the token")
    generator.errors = [SubmissionUnknown("no answer")] * 9
    with pytest.raises(JobWaiting, match="charged already"):
        s.run()
    assert generator.submitted == 3
    s.journal.renewed["step/1/attempt/1/clip"] = 1
    generator.errors = [SubmissionUnknown("no answer")]
    with pytest.raises(Died):
        s.run()
    assert generator.submitted == 5


def test_or_asked_about_first_by_policy() -> None:
    s, generator = remote_stage("before the token", submit_unknown="wait")
    generator.errors = [SubmissionUnknown("no answer")]
    with pytest.raises(JobWaiting, match="charged already"):
        s.run()
    assert generator.submitted == 1


def test_what_a_lost_render_cost_is_counted() -> None:
    s, generator = remote_stage("after the token")
    generator.errors = [BackendFailed("the file is cut", spend=Spend(usd=1.6)), BackendFailed("again")]
    with pytest.raises(Died):
        s.run()
    failed = s.journal.entries["step/1/attempt/1/clip"][2]
    assert failed is not None
    assert failed.spend.usd == 1.6


def test_a_second_submission_within_a_render_is_noted_and_polled_by_its_own_token() -> None:
    s, generator = remote_stage("again after the token")
    generator.filtered = 1
    with pytest.raises(Died):
        s.run()
    assert s.run().kind == "completed"
    assert generator.submitted == 2
    assert generator.polled == ["token-2"]
    assert not [key for key in s.journal.entries if "submit_unknown" in key]


def test_a_second_submission_whose_answer_is_lost_waits_by_policy() -> None:
    s, generator = remote_stage("again before the token", submit_unknown="wait")
    generator.filtered = 1
    with pytest.raises(Died):
        s.run()
    with pytest.raises(JobWaiting, match="it may be running and charged already"):
        s.run()
    assert generator.submitted == 2
    assert f"{CLIP}/submit_unknown/2" in s.journal.entries


def test_second_submissions_whose_answers_are_lost_are_bounded_too() -> None:
    s, generator = remote_stage("again before the token")
    generator.filtered = 99
    generator.errors = [SubmissionUnknown("no answer")] * 9
    with pytest.raises(JobWaiting, match="it may be running"):
        s.run()
    assert generator.submitted <= 2 * 4


def test_a_second_submission_that_was_refused_leaves_no_doubt() -> None:
    s, generator = remote_stage("again before the token")
    generator.filtered = 1
    generator.errors = [BackendUnavailable("busy")]
    assert s.run().kind == "completed"
    assert not [key for key in s.journal.entries if "submit_unknown" in key]
    assert f"{CLIP}/submitting/2/refused" in s.journal.entries
