"""The statistics of a paired comparison: known answers, clusters and coverage."""

from __future__ import annotations

import numpy as np
import pytest

from bench.paired import bootstrap, cluster_t


def test_a_constant_difference_has_no_spread() -> None:
    difference = bootstrap([1.0] * 6, ["a", "a", "b", "b", "c", "c"])
    assert (difference.mean, difference.lower, difference.upper) == (1.0, 1.0, 1.0)
    assert (difference.trials, difference.clusters) == (6, 3)


def test_trials_of_one_task_are_not_counted_as_independent() -> None:
    won, lost = [1.0] * 20, [0.0] * 20
    values = won + lost + won + lost
    alone = bootstrap(values, [str(index) for index in range(80)])
    clustered = bootstrap(values, [name for name in "abcd" for _ in range(20)])
    assert clustered.mean == alone.mean == 0.5
    assert clustered.lower < 0.05 < 0.35 < alone.lower


def test_the_same_trials_give_the_same_interval() -> None:
    values, names = [0.0, 1.0, -1.0, 1.0], ["a", "b", "c", "d"]
    assert bootstrap(values, names) == bootstrap(values, names)


def test_nothing_is_concluded_from_no_trials_or_one_task() -> None:
    with pytest.raises(ValueError, match="no trials"):
        bootstrap([], [])
    assert cluster_t([1.0, 1.0], ["a", "a"]).lower == -1.0


def test_the_t_interval_matches_a_textbook_value() -> None:
    difference = cluster_t([1.0, 2.0, 3.0], ["a", "b", "c"])  # mean 2, sd 1, t(0.975, 2) = 4.3027
    assert difference.lower == pytest.approx(2 - 4.302653 / 3**0.5)


def test_the_lower_bound_exceeds_the_truth_about_as_rarely_as_stated() -> None:
    rng = np.random.default_rng(1)
    exceeded = 0
    for _ in range(100):
        levels = rng.normal(0.0, 0.3, size=30)
        values = [float(value) for level in levels for value in level + rng.normal(0.0, 0.2, size=3)]
        names = [str(index) for index in range(30) for _ in range(3)]
        exceeded += bootstrap(values, names, seed=2).lower > 0.0
    assert exceeded <= 8  # 2.5 of 100 are expected; more than 8 has a chance of about 0.1 %
