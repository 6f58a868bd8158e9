"""A trial plays a strategy on a task and judges the answer from its pixels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench.compare import asked_trials, parsed, play_all
from bench.subjects import foreign_cases, scene_of, world_tasks
from bench.trials import look
from cliploop.compose import Wanted
from media.pictures import decode_png

ROOT = Path(__file__).resolve().parents[2]
CASES = ROOT / "tests" / "data"


def test_every_case_is_found_and_its_plan_counted() -> None:
    found = {subject.name: subject.num_actions for subject in foreign_cases(CASES)}
    assert len(found) == 7
    assert all(found.values())
    with pytest.raises(FileNotFoundError, match="--cases"):
        foreign_cases(CASES / "images")


def test_the_tasks_of_a_seed_are_the_same_each_time() -> None:
    first, again = world_tasks("easy", 2000), world_tasks("easy", 2000)
    assert first == again
    assert len({subject.game for subject in first}) == 6


def test_an_answer_without_frames_or_without_motion_is_not_the_goal() -> None:
    subject = foreign_cases(CASES)[0]
    scene = scene_of(subject.png, subject.prompt)
    assert not look(scene, []).goal
    assert not look(scene, [decode_png(subject.png)] * 3).goal


def test_the_last_frame_of_a_case_is_its_goal() -> None:
    folder = CASES / "vrbench" / "maze" / "00001"
    scene = scene_of((folder / "first_frame.png").read_bytes(), (folder / "prompt.txt").read_text())
    assert look(scene, [decode_png((folder / "final_frame.png").read_bytes())]).goal


def test_the_defaults_are_held_back_seeds_and_every_case_and_world() -> None:
    given = parsed(["--cases", str(CASES)])
    assert (given.seeds, given.first_seed, given.max_steps, given.generator) == (20, 2000, [3, 12], "simulated")
    given.seeds = 1
    asked = list(asked_trials(given))
    assert {(trials.seed, trials.limits) for trials in asked} == {(2000, (3, 12))}
    assert len(asked) == 7 + 6


@pytest.mark.slow
def test_both_strategies_solve_a_maze_with_a_generator_that_never_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    (asked,) = [
        a for a in asked_trials(parsed(["--seeds", "1", "--cases", str(CASES)])) if "maze/00001" in a.subject.name
    ]
    wanted = Wanted(generator="simulated-perfect", planner="oracle", verifier="oracle")
    baseline, loop = play_all(type(asked)(asked.subject, 2000, wanted, (3,)))
    assert baseline.solved
    assert loop.solved
    assert loop.completed
    assert (loop.steps, loop.clips, loop.steps_at_first) == (3, 3, 3)


def test_a_trial_that_breaks_costs_no_other_and_counts_as_not_solved() -> None:
    asked = next(iter(asked_trials(parsed(["--seeds", "1", "--cases", str(CASES)]))))
    unreadable = replace(asked.subject, prompt="Nothing that any world could read.")
    trials = play_all(replace(asked, subject=unreadable, limits=(3,)))
    assert [(trial.strategy, trial.solved, bool(trial.error)) for trial in trials] == [
        ("pass@1", False, True),
        ("collabvr", False, True),
    ]
