"""Trials become pairs, rates, bounds and the loop's own statistics."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.comparison import PAPER, by_game, by_task, is_evidence, loop_figures, pairs, report
from bench.trials import Trial

BASE = Trial(
    subject="maze/0", row="maze/0", game="maze", num_actions=4, seed=1, strategy="pass@1", max_steps=1,
    solved=False, goal_in_last_frame=False, completed=False, video_seconds=6.0, vlm_calls=1, clips=1,
    steps_at_first=0, steps_after=0, steps_never=1,
)  # fmt: skip
LOOP = replace(
    BASE, strategy="collabvr", max_steps=3, solved=True, goal_in_last_frame=True, completed=True,
    video_seconds=15.0, vlm_calls=8, clips=5, steps_at_first=1, steps_after=1, steps_never=1,
)  # fmt: skip


def trials(tasks: int, solved: int) -> list[Trial]:
    """A loop that solves `solved` of `tasks` tasks, a baseline that solves none; games alternate."""
    made: list[Trial] = []
    for index in range(tasks):
        name, game = f"task/{index}", ("maze", "hanoi", "sokoban")[index % 3]
        loop = replace(LOOP, subject=name, row=name, game=game, solved=index < solved)
        made += [replace(BASE, subject=name, row=name, game=game), loop]
    return made


def test_a_loop_trial_is_compared_with_the_baseline_of_its_own_task_and_seed() -> None:
    other = replace(BASE, seed=2, solved=True)
    (pair,) = pairs([other, BASE, LOOP], 3)
    assert (pair.baseline, pair.difference) == (BASE, 1.0)
    assert pairs([other, LOOP], 3) == []
    assert pairs([BASE, LOOP], 12) == []


def test_a_task_of_one_action_is_no_evidence_and_said_so() -> None:
    single = [replace(trial, num_actions=1, subject="one", row="one") for trial in (BASE, LOOP)]
    assert not is_evidence(pairs(single, 3)[0])
    text = report([*trials(6, 6), *single], [3])
    assert "1 of one action: no evidence for planning" in text
    assert "(6 tasks, 6 trials)" in text


def test_a_clear_gain_is_above_zero_and_no_gain_is_not() -> None:
    assert by_task(pairs(trials(30, 24), 3)).lower > 0.5
    assert by_task(pairs(trials(30, 0), 3)).lower == 0.0
    assert "NOT above 0" in report(trials(30, 0), [3])


def test_a_gain_in_one_game_alone_is_not_a_gain_over_games() -> None:
    lucky = [replace(t, solved=t.strategy == "collabvr" and t.game == "maze") for t in trials(30, 0)]
    assert by_task(pairs(lucky, 3)).lower > 0.0
    assert by_game(pairs(lucky, 3)).lower < 0.0


def test_the_loops_statistics_count_steps_and_clips() -> None:
    figures = dict(zip((name for name, *_ in PAPER), loop_figures([LOOP]), strict=True))
    assert figures["accepted at first, % of steps"] == pytest.approx(100 / 3)
    assert figures["never accepted, %"] == pytest.approx(100 / 3)
    assert (figures["steps, mean"], figures["re-renders, mean"], figures["clips, mean"]) == (3, 2, 5)


def test_both_strategies_show_their_video_seconds() -> None:
    (row,) = [line for line in report(trials(6, 3), [3]).splitlines() if line.startswith("task/0")]
    assert row.split()[-3:] == ["6.0", "15.0", "8.0"]
