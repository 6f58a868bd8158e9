"""SIGKILL at any point: the same command goes on, nothing recorded runs again, every byte is equal."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.end_to_end.jobs import (
    Child,
    Kill,
    assert_nothing_ran_twice,
    effects,
    products,
)

SIGKILLED = -9


@dataclass(frozen=True)
class Undisturbed:
    """A run that nobody killed."""

    products: Mapping[str, bytes]
    committed: list[str]
    num_commits: int  # changes of state included
    num_lines: int  # of the log


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    folder = tmp_path_factory.mktemp("undisturbed")
    child = Child.start(folder / "job", folder / "log")
    assert child.end() == 0
    began, committed = effects(folder / "log")
    assert sorted(began) == sorted(committed)
    log = (folder / "log").read_text()
    return Undisturbed(products(folder / "job"), committed, log.count("committed "), log.count("\n"))


def test_the_small_job_shows_what_matters(undisturbed: Undisturbed) -> None:
    keys = undisturbed.committed
    assert "step/1/attempt/1/cut" in keys, "no kept prefix"
    assert "step/2/attempt/2/verdict" in keys, "no repair of a clip that kept nothing"
    assert "step/2/attempt/1/verdict" not in keys, "no quick check"
    assert "final/video" in keys


def resumed(tmp_path: Path, kill: Kill, undisturbed: Undisturbed) -> None:
    """Killed as asked, run again: equal bytes, and no recorded effect ran twice."""
    folder, log = tmp_path / "job", tmp_path / "log"
    assert Child.start(folder, log, kill).end() == SIGKILLED
    assert Child.start(folder, log).end() == 0
    assert products(folder) == undisturbed.products
    assert_nothing_ran_twice(log, kills=1)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_killed_at_every_commit_in_turn_one_job_still_ends_equal(
    tmp_path: Path, undisturbed: Undisturbed, moment: str
) -> None:
    """One folder, killed at the first commit of each life: the job advances by one entry a life, or by none."""
    folder, log = tmp_path / "job", tmp_path / "log"
    lives = 0
    while True:
        number = (
            0 if moment == "after" else lives % 2
        )  # killed before the first commit, nothing would ever advance
        code = Child.start(folder, log, Kill(number, moment)).end()
        if code == 0:
            break
        assert code == SIGKILLED
        lives += 1
        assert lives <= 3 * undisturbed.num_commits
    assert lives >= undisturbed.num_commits - 2
    assert products(folder) == undisturbed.products
    assert_nothing_ran_twice(log, kills=lives)


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["before", "after"])
def test_killed_once_at_each_commit_the_job_ends_equal(
    tmp_path: Path, undisturbed: Undisturbed, moment: str
) -> None:
    for number in range(undisturbed.num_commits):
        place = tmp_path / str(number)
        place.mkdir()
        resumed(place, Kill(number, moment), undisturbed)


@pytest.mark.slow
def test_killed_at_25_random_moments_the_job_ends_equal(tmp_path: Path, undisturbed: Undisturbed) -> None:
    """Somewhere in a run: a random line of the log, and a random while after it, inside whatever runs then."""
    dice = random.Random(20)
    for number in range(25):
        place = tmp_path / str(number)
        place.mkdir()
        folder, log = place / "job", place / "log"
        child = Child.start(folder, log)
        child.kill_at(log, dice.randrange(1, undisturbed.num_lines), dice.random() * 0.1)
        killed = child.end() == SIGKILLED
        assert Child.start(folder, log).end() == 0
        assert products(folder) == undisturbed.products
        assert_nothing_ran_twice(log, kills=killed)
