"""The same call after a crash: no recorded effect runs again, and the same comes out."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from orchestrator.errors import BackendFailed, JobWaiting
from orchestrator.loop import run
from orchestrator.records import Budget, Outcome, Route, Trajectory, Verdict
from tests.orchestrator.fakes import ACCEPT, DONE, MOVE, NO, PARTIAL, MemoryJournal, Stage, reject, stage


class Killed(BaseException):
    """A stand-in for SIGKILL: nothing catches it."""


class MortalJournal(MemoryJournal):
    """Dies before or after recording its n-th entry."""

    def __init__(self, survivor: MemoryJournal, die_at: int, *, before: bool) -> None:
        super().__init__(survivor.entries, survivor.ran, survivor.renewed)
        self._left, self._before = die_at, before

    def once(self, key: str, inputs: Any, kind: Any, effect: Any) -> Any:
        if key in self.entries:
            return super().once(key, inputs, kind, effect)
        self._left -= 1
        if self._left == 0 and self._before:

            def last() -> Any:
                with contextlib.suppress(BackendFailed):
                    effect()
                raise Killed

            return super().once(key, inputs, kind, last)
        try:
            return super().once(key, inputs, kind, effect)
        finally:
            if self._left == 0:
                raise Killed


def eventful() -> Stage:
    """Rejects, kept prefixes, a lost render, a router's call, an unfinished action and a fallback."""
    return stage(
        plans=[MOVE],
        routes=[Route(action="regenerate", suggestion="Again.")],
        assessments=[NO],
        verdicts=[reject(0.5), reject(0.7), reject(0.0), reject(0.4), PARTIAL, reject(0.6), ACCEPT],
        failures={1: BackendFailed("lost")},
    )


def everything(trajectory: Trajectory) -> str:
    return trajectory.model_dump_json()


def count_entries() -> int:
    s = eventful()
    s.run()
    return len(s.journal.ran)


ENTRIES = count_entries()


@pytest.mark.parametrize("before", [True, False])
def test_dying_at_any_entry_changes_nothing_and_repeats_at_most_the_one_in_flight(before: bool) -> None:
    undisturbed = eventful()
    undisturbed.run()
    told = everything(undisturbed.trajectory())
    for die_at in range(1, ENTRIES + 1):
        s = eventful()
        with pytest.raises(Killed):
            s_run(s, MortalJournal(s.journal, die_at, before=before))
        s_run(s, s.journal)
        repeated = [k for k in s.journal.entries if s.journal.ran.count(k) > 1]
        assert len(repeated) == (1 if before else 0), (die_at, repeated)
        assert all(s.journal.ran.count(key) <= 2 for key in repeated)
        assert everything(s.trajectory()) == told
        assert s.editor.delivered == undisturbed.editor.delivered


def s_run(s: Stage, journal: MemoryJournal) -> Outcome:
    return run(s.task, s.policy, s.ports, journal)


def test_a_replay_runs_nothing_and_gives_the_same_outcome_and_trajectory() -> None:
    s = eventful()
    outcome = s.run()
    told = everything(s.trajectory())
    ran = len(s.journal.ran)
    assert s.run() == outcome
    assert len(s.journal.ran) == ran
    assert everything(s.trajectory()) == told


def test_the_trajectory_of_an_unfinished_job_shows_the_step_under_way() -> None:
    s = stage(verdicts=[reject(0.5), ACCEPT, Verdict(decision="unclear")])
    with pytest.raises(JobWaiting):
        s.run()
    trajectory = s.trajectory()
    assert [step.status for step in trajectory.steps] == ["accepted", "running"]
    assert trajectory.outcome is None
    assert len(trajectory.steps[1].attempts) == 1
    assert trajectory.spend.vlm_calls == 7


def test_changed_inputs_make_the_job_wait_instead_of_mixing_old_and_new() -> None:
    s = stage(plans=[MOVE, DONE])
    s.run()
    s.policy = s.policy.model_copy(update={"backends_digest": "other prompts"})
    with pytest.raises(JobWaiting) as waiting:
        s.run()
    assert waiting.value.reason == "changed"


def test_out_of_budget_inside_a_step_is_the_same_on_replay() -> None:
    s = stage(verdicts=[reject(0.5)], budget=Budget(vlm_calls=4), assessments=[NO])
    outcome = s.run()
    assert s.run() == outcome
    trajectory = s.trajectory()
    assert trajectory.outcome == outcome
    assert trajectory.spend.vlm_calls <= 4
