"""`cliploop trajectory show`: the story of a job from its folder, finished or not."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError

from cliploop.commands.boundary import guarded
from cliploop.exports import TRAJECTORY
from cliploop.folder import JobFolder
from cliploop.narrate import one_line, trajectory_lines
from cliploop.terminal import EXIT_COMPLETED, Terminal
from orchestrator.errors import BackendMisconfigured, CliploopError, JobNotFound, JobWaiting
from orchestrator.ports import Ports
from orchestrator.records import Policy, Task, Trajectory
from orchestrator.trajectory import trajectory_of
from storage.database import Database
from storage.jobs import JobState, StoredJob, stored_jobs
from storage.journal import SqlJournal

OUTPUTS = Path("out")
_HEAD_BYTES = 200  # the id stands among the first keys
_ID = re.compile(rb'"id": "([0-9a-f]+)"')


def show_command(job: str, terminal: Terminal) -> int:
    """Show one job. Exit 2 if there is none."""
    return guarded(terminal, lambda: _show(job, terminal))


def _show(job: str, terminal: Terminal) -> int:
    folder = find(job)
    trajectory, state = _told(folder, terminal)
    stopped = not folder.in_use
    said = f"{state.state} ({state.reason or state.outcome})" if state.reason or state.outcome else state.state
    if stopped and state.state in ("queued", "running"):
        said = "stopped; the same command goes on"
    terminal.say(f"Job {trajectory.id} in {one_line(str(folder.path))}: {said}")
    terminal.say(f"Task: {one_line(trajectory.task.prompt)}")
    for line in trajectory_lines(trajectory, stopped=stopped):
        terminal.say(str(line), whole=line.whole)
    if state.message:
        terminal.say(one_line(state.message))
    terminal.result(
        {
            "ok": True,
            "exit_code": 0,
            "state": state.state,
            "under_way": not stopped,
            "trajectory": trajectory.model_dump(mode="json"),
        }
    )
    return EXIT_COMPLETED


def _told(folder: JobFolder, terminal: Terminal) -> tuple[Trajectory, JobState]:
    """From the journal; from what a finished run wrote, and a word about it, where the journal is damaged."""
    try:
        return read_trajectory(folder)
    except (BackendMisconfigured, JobWaiting) as error:
        written = _written(folder)
        if written is None:
            raise
        terminal.err.write(f"cliploop: {one_line(str(error))}; shown from {folder.path / TRAJECTORY} instead")
        outcome = written.outcome.kind if written.outcome else None
        return written, JobState("succeeded" if outcome else "failed", outcome=outcome)


def _written(folder: JobFolder) -> Trajectory | None:
    try:
        return Trajectory.model_validate_json((folder.path / TRAJECTORY).read_bytes())
    except (OSError, ValueError):
        return None


def find(job: str) -> JobFolder:
    """The folder that `job` names: a path, a file in it, or an id under out/. Raises JobNotFound."""
    path = Path(job)
    for candidate in (path, path.parent):
        if job and _holds_a_job(folder := JobFolder(candidate)):
            return folder
    folders = list(_with_id(job)) if len(job) >= 4 else []
    if len(folders) == 1:
        return folders[0]
    shown = one_line(job)
    if folders:
        names = ", ".join(str(folder.path) for folder in folders[:5])
        raise JobNotFound(f"{shown} is the beginning of several ids: {names}; give more of it")
    raise JobNotFound(f"no job {shown}: give an output folder of cliploop run, or the id of one under {OUTPUTS}/")


def _with_id(beginning: str) -> Iterator[JobFolder]:
    """The folders under out/ whose name, or whose job, has an id that begins so."""
    for path in sorted(OUTPUTS.glob("*")):
        folder = JobFolder(path)
        if not _holds_a_job(folder):
            continue
        if path.name.split("-")[-1].startswith(beginning) or _id_in(folder).startswith(beginning):
            yield folder


def _id_in(folder: JobFolder) -> str:
    """The id of the job in a folder, from what is quickest to read; empty if nothing tells it."""
    for path in (folder.finished, folder.path / TRAJECTORY):
        with contextlib.suppress(OSError), path.open("rb") as file:
            if (found := _ID.search(file.read(_HEAD_BYTES))) is not None:
                return found[1].decode()
    with contextlib.suppress(CliploopError), Database(folder.database, read_only=True) as database:
        return next((stored.id for stored in reversed(stored_jobs(database))), "")
    return ""


def _holds_a_job(folder: JobFolder) -> bool:
    return folder.database.is_file() or (folder.memory.is_dir() and (folder.path / TRAJECTORY).is_file())


def read_trajectory(folder: JobFolder) -> tuple[Trajectory, JobState]:
    """The trajectory as the journal tells it now, and the job's state. Runs nothing."""
    if not folder.database.is_file():
        raise BackendMisconfigured(f"{folder.database} is not there")
    can_write = os.access(folder.memory, os.W_OK)
    with Database(folder.database, read_only=not can_write) as database:
        jobs = stored_jobs(database)
        if not jobs:
            raise JobNotFound(f"{folder.path}: no job began here; run cliploop run -o {folder.path}")
        stored = jobs[-1]
        task, policy = _records(stored, folder)
        return trajectory_of(stored.id, task, policy, _no_ports(), SqlJournal(database, stored.id)), stored.state


def _records(stored: StoredJob, folder: JobFolder) -> tuple[Task, Policy]:
    try:
        return Task.model_validate(stored.task), Policy.model_validate(stored.policy)
    except ValidationError as error:
        raise JobNotFound(
            f"{folder.path}: written by another version of cliploop ({error.error_count()} fields differ); "
            "read its trajectory.json"
        ) from None


def _no_ports() -> Ports:
    """A replay asks nobody."""
    nobody: Any = cast("Any", None)
    return Ports(
        planner=nobody,
        verifier=nobody,
        router=nobody,
        assessor=nobody,
        generator=nobody,
        editor=nobody,
        clock=nobody,
    )
