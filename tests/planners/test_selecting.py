"""The oracle picks among clips of one task from their pixels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from orchestrator.records import Plan
from planners.catalog import build
from tests.planners.desk import Desk, desk
from worlds.world import Frames


@pytest.fixture(scope="module")
def maze() -> Desk:
    return desk("maze", side_px=160)


def pick(on: Desk, clips: list[Frames], oracle: Any = None, seed: int = 0) -> int:
    """What it picks for the whole task, as pass@k asks."""
    candidates = [on.footage(frames) for frames in clips]
    view = on.view(step=1, max_steps=1, seed=seed)
    answer = (oracle or on.oracle).select(on.task, Plan(instruction=on.prompt), candidates, view)
    assert answer.spend.vlm_calls == 1
    assert answer.value.reason
    return answer.value.index


def still(on: Desk) -> Frames:
    return np.repeat(on.frame[np.newaxis], 17, axis=0)


def wrong(on: Desk) -> Frames:
    return on.wrong_ways()[0][1]


def test_the_one_that_does_the_task_is_picked_wherever_it_stands(maze: Desk) -> None:
    done = maze.does(maze.plan)
    others = [still(maze), wrong(maze), maze.does(maze.plan[:1])]
    for place in range(4):
        clips = list(others)
        clips.insert(place, done)
        assert pick(maze, clips) == place


def test_a_legal_part_is_better_than_an_illegal_clip_and_a_longer_part_than_a_shorter(maze: Desk) -> None:
    shorter, longer = maze.does(maze.plan[:1]), maze.does(maze.plan[:2])
    assert len(maze.plan) > 2
    assert pick(maze, [wrong(maze), still(maze), shorter]) == 2
    assert pick(maze, [shorter, longer]) == 1
    assert pick(maze, [longer, shorter]) == 0


def test_of_equals_it_is_the_first(maze: Desk) -> None:
    done = maze.does(maze.plan)
    assert pick(maze, [done, done, done]) == 0


def test_an_imperfect_one_errs_as_often_as_its_verdicts_and_alike_for_the_same_ask(maze: Desk) -> None:
    oracle = build("oracle-qwen", {}, maze.reader)
    clips = [wrong(maze), maze.does(maze.plan)]
    candidates = [maze.footage(frames) for frames in clips]
    plan = Plan(instruction=maze.prompt)
    picked = [
        oracle.select(maze.task, plan, candidates, maze.view(step=1, max_steps=1, seed=seed)).value.index
        for seed in range(30)
    ]
    assert 2 < picked.count(0) < 22  # the wrong one is taken for right more often than not, the right one is sure
    again = oracle.select(maze.task, plan, candidates, maze.view(step=1, max_steps=1, seed=0))
    assert again.value.index == picked[0]
