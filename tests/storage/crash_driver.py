"""Run as a program: plays a small job in forked processes that kill themselves, and prints what is left as JSON.

It is a process of its own so that a fork starts from one thread and from no open database.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from orchestrator.errors import BackendFailed
from orchestrator.ports import Call
from orchestrator.records import Answer, Assessment, Plan
from storage.database import Database
from storage.journal import EntryConflict, Moment, SqlJournal
from tests.storage.jobs_for_tests import JOB, a_database, plan

NO_KILL = 10**9


class Suicide:
    """Counts the moments around commits and ends the process, unasked and at once, at the n-th."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.moments = 0

    def __call__(self, moment: Moment, key: str) -> None:
        self.moments += 1
        if self.moments == self.at:
            os.kill(os.getpid(), signal.SIGKILL)


def play(folder: Path, kill_at: int) -> None:
    """Every kind of entry: a nested ask, a failure, several at once, a wait and its renewal, an end."""

    def effect(key: str, plan_of: Callable[[], Plan] = plan) -> Callable[[], Plan]:
        def run() -> Plan:
            with (folder / "ran").open("a") as log:
                log.write(key + "\n")
            return plan_of()

        return run

    def fail() -> Plan:
        raise BackendFailed("the render was lost")

    with Database(folder / "journal.sqlite") as database:
        journal = SqlJournal(database, JOB, clock=lambda: 0.0, on_commit=Suicide(kill_at))

        def ask() -> Answer[Plan]:
            inner = journal.once("step/1/plan/try/1", {"n": 1}, Plan, effect("step/1/plan/try/1"))
            return Answer[Plan](value=inner)

        journal.once("step/1/plan", {"n": 0}, Answer[Plan], ask)
        keys = [f"step/1/attempt/{number}/clip" for number in (1, 2, 3)]
        effects = [effect(keys[0]), effect(keys[1], fail), effect(keys[2])]
        journal.once_all([Call(key, {"key": key}, Plan, run) for key, run in zip(keys, effects, strict=True)])
        if journal.renewals("step/2/plan") == 0:
            journal.set_state("waiting", reason="unclear", message="no clear reply", key="step/2/plan")
            return
        journal.once("step/2/plan", {}, Plan, effect("step/2/plan"))
        journal.once("final/assessment", {}, Assessment, lambda: Assessment(task_complete=True))
        journal.set_state("succeeded", outcome="completed")


def in_a_fork(work: Callable[[], None]) -> int:
    """Start the work in a process of its own; its pid."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        work()
        status = 0
    finally:
        os._exit(status)


def ended(pid: int) -> int:
    """The exit code; negative the signal's number."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def crash_everywhere(root: Path) -> list[list[dict[str, Any]]]:
    """For the run up to the wait, and for the one after it: killed at its 1st, 2nd, … moment."""
    return [crash_in_run(root, number) for number in (0, 1)]


def crash_in_run(root: Path, number: int) -> list[dict[str, Any]]:
    """Run undisturbed `number` times, then kill, then resume to the end; a report for every moment."""
    reports: list[dict[str, Any]] = []
    while not reports or reports[-1]["killed_run"] != 0:
        folder = root / f"{number}-{len(reports) + 1}"
        folder.mkdir()
        a_database(folder).close()
        exits = [played(folder, NO_KILL) for _ in range(number)]
        killed_run = played(folder, len(reports) + 1)
        while not finished(folder) and len(exits) < 5:
            exits.append(played(folder, NO_KILL))
        ran = (folder / "ran").read_text().split()
        reports.append({"killed_run": killed_run, "exits": exits, "ran": ran, "entries": left(folder)})
    return reports


def played(folder: Path, kill_at: int) -> int:
    """Play in a process of its own; how it ended."""
    return ended(in_a_fork(lambda: play(folder, kill_at)))


def finished(folder: Path) -> bool:
    with Database(folder / "journal.sqlite") as database:
        return SqlJournal(database, JOB).state().state == "succeeded"


def left(folder: Path) -> list[Any]:
    with Database(folder / "journal.sqlite") as database:
        entries = SqlJournal(database, JOB).entries()
    return [[entry.sequence, entry.key, entry.kind, entry.inputs, entry.value] for entry in entries]


def write_at_once(root: Path, writers: int = 4, each: int = 25) -> dict[str, Any]:
    """Several processes record in one job: keys of their own, and keys that they all want."""
    a_database(root).close()

    def write(writer: int) -> None:
        conflicts = 0
        with Database(root / "journal.sqlite") as database:
            journal = SqlJournal(database, JOB)
            for number in range(each):
                for key in (f"own/{writer}/{number}", f"shared/{number}"):
                    try:
                        journal.once(key, {}, Plan, lambda: plan(f"by {writer}"))
                    except EntryConflict:
                        conflicts += 1
        (root / f"conflicts-{writer}").write_text(str(conflicts))

    def start(writer: int) -> int:
        return in_a_fork(lambda: write(writer))

    exits = [ended(pid) for pid in [start(writer) for writer in range(writers)]]
    conflicts = sum(int(path.read_text()) for path in root.glob("conflicts-*"))
    return {"exits": exits, "conflicts": conflicts, "entries": left(root)}


if __name__ == "__main__":
    jobs: dict[str, Callable[[Path], Any]] = {"crash": crash_everywhere, "write": write_at_once}
    sys.stdout.write(json.dumps(jobs[sys.argv[1]](Path(sys.argv[2]))))
