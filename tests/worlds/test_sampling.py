"""Tasks of a seed: the same each time, other seeds other tasks, and state, look and words drawn apart."""

from __future__ import annotations

import numpy as np

from worlds.catalog import load
from worlds.sampling import sample


def test_the_same_seed_gives_the_same_picture_and_prompt() -> None:
    first, again = (sample(load("maze"), "easy", 7) for _ in range(2))
    assert np.array_equal(first.frame, again.frame)
    assert (first.state, first.prompt) == (again.state, again.prompt)


def test_other_seeds_give_other_tasks() -> None:
    tasks = [sample(load("maze"), "medium", seed) for seed in range(5)]
    assert len({task.frame.tobytes() for task in tasks}) == 5
    assert len({task.prompt for task in tasks}) > 1
