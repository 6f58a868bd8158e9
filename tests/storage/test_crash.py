"""Real processes: killed around every commit, and several writing at once."""

from __future__ import annotations

import json
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.storage.jobs_for_tests import child

Report = dict[str, Any]


def drive(what: str, folder: Path) -> Any:
    """Run crash_driver as a program."""
    code = "import runpy; runpy.run_module('tests.storage.crash_driver', run_name='__main__', alter_sys=False)"
    done = child(code, what, folder)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def counted(report: Report) -> Counter[str]:
    ran: list[str] = report["ran"]
    return Counter(ran)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[list[Report]]:
    return drive("crash", tmp_path_factory.mktemp("crash"))


def test_every_run_but_the_last_was_killed_and_resumed(runs: list[list[Report]]) -> None:
    # running, the ask, its answer, three clips, the wait; then running, plan, assessment, succeeded
    for reports, commits in zip(runs, (7, 4), strict=True):
        exits = [report["killed_run"] for report in reports]
        assert exits == [-signal.SIGKILL] * (2 * commits) + [0]
        assert not any(any(report["exits"]) for report in reports)


def test_what_is_left_after_a_kill_and_a_resume_equals_an_undisturbed_run(runs: list[list[Report]]) -> None:
    undisturbed = runs[0][-1]["entries"]
    assert [entry[0] for entry in undisturbed] == list(range(1, 13))
    for report in (report for reports in runs for report in reports):
        assert report["entries"] == undisturbed


def test_no_recorded_effect_runs_again_and_at_most_the_one_in_flight_is_repeated(
    runs: list[list[Report]],
) -> None:
    every = set(counted(runs[0][-1]))
    assert max(counted(runs[0][-1]).values()) == 1
    repeats: list[int] = []
    for reports in runs:
        for number, report in enumerate(reports[:-1], start=1):
            repeated = sum(counted(report).values()) - len(every)
            assert set(counted(report)) == every
            assert repeated <= (1 if number % 2 else 0)  # odd: before a commit, even: after it
            repeats.append(repeated)
    assert max(repeats) == 1


def test_writers_in_several_processes_lose_and_double_nothing(tmp_path: Path) -> None:
    report = drive("write", tmp_path)
    assert report["exits"] == [0, 0, 0, 0]
    sequences = [entry[0] for entry in report["entries"]]
    keys = [entry[1] for entry in report["entries"] if entry[2] == "record"]
    assert sequences == list(range(1, len(sequences) + 1))
    expected = {f"own/{writer}/{number}" for writer in range(4) for number in range(25)}
    expected |= {f"shared/{number}" for number in range(25)}
    assert sorted(keys) == sorted(expected)
