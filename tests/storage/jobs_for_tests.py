"""A small task, policy and database for the tests of this folder, and a way to run code in a real child."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from orchestrator.records import Box, Canvas, Capabilities, Plan, Policy, Size, Task
from storage.database import Database
from storage.jobs import create_job
from storage.journal import SqlJournal

ROOT = Path(__file__).parents[2]
SIZE = Size(width=64, height=48)
CANVAS = Canvas(size=SIZE, content=Box(left=0, top=0, width=64, height=48), fit="identity")
TASK = Task(prompt="Move the red disc to the green square.", picture="a" * 64 + ".png", size=SIZE)
POLICY = Policy(
    generator="simulated",
    planner="oracle",
    verifier="oracle",
    router="oracle",
    assessor="oracle",
    capabilities=Capabilities(name="simulated"),
    canvas=CANVAS,
    encoder="test",
)
JOB = "job-1"


def a_database(folder: Path) -> Database:
    """A database with one queued job."""
    database = Database(folder / "journal.sqlite")
    create_job(database, JOB, TASK, POLICY)
    return database


def plan(instruction: str = "move up") -> Plan:
    return Plan(instruction=instruction)


def never() -> Plan:
    raise AssertionError("a recorded effect ran again")


def record(journal: SqlJournal, key: str) -> Plan:
    """Record a plan that says its key."""
    return journal.once(key, {}, Plan, lambda: plan(key))


def child(code: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run Python code in a process of its own, with these `sys.argv[1:]`; it can import this module."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
