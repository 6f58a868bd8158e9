"""Every scenario of chaos once, on real processes: all jobs end, frames are those of a quiet run."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from bench.chaos import SCENARIOS, Row, Undisturbed, main, run, table
from bench.chaos_service import Service, running

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc"),
]
MOVES_WITHIN_SECONDS = 15.0  # of a killed worker's job
RENDERS_ONCE_MORE = ("kill-reason", "kill-render", "kill-all", "stop-render")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running(tmp_path_factory.mktemp("chaos")) as service:
        yield service


@pytest.mark.parametrize("name", SCENARIOS)
def test_nothing_is_lost(service: Service, name: str) -> None:
    row = run(service, name, 1, Undisturbed(service))
    assert row.faults == []
    assert row.ended == row.jobs > 0
    assert row.identical == row.comparable == row.jobs
    assert row.doubled == 0
    assert row.rendered_again <= (1 if name in RENDERS_ONCE_MORE else 0)
    if name.startswith("kill"):
        assert max(row.moved_seconds) < MOVES_WITHIN_SECONDS
    if name == "instant":
        assert row.reaped == 0


def test_the_table_says_what_was_lost() -> None:
    rows = [Row("kill-render", runs=2, jobs=2, ended=1, moved_seconds=[3.0], faults=["job-1 is failed"])]
    said = table(rows)
    assert "1/2" in said
    assert "3.0 (3.0)" in said
    assert said.splitlines()[-1] == "kill-render: job-1 is failed"


def test_an_unknown_scenario_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        main(["kill-time"])
    assert refused.value.code == 2
    assert "kill-render" in capsys.readouterr().err


def test_one_scenario_can_be_run_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--count", "1", "cancel-queued"]) == 0
    assert "cancel-queued  1" in capsys.readouterr().out
