"""One job in this process, in one folder: run it, go on where it stopped, or show that it has finished.

It knows how a run can end and what is saved then; not the command line, and no concrete backend.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from cliploop import exports
from cliploop.asked import LocalJob, SystemClock, slug
from cliploop.folder import (
    JobFolder,
    clear_rehearsal,
    finished_files,
    forget,
    list_files,
    refuse_foreign,
    refuse_other,
    rehearsal,
    tidy_if_refused,
    write_finished,
)
from cliploop.repair import RepairingJournal
from cliploop.watch import WatchedJournal, Watcher
from media.frames import FrameReader
from orchestrator.errors import BackendFailed, CliploopError, JobCancelled, JobWaiting
from orchestrator.loop import run
from orchestrator.ports import Artifacts, Ports, prepare
from orchestrator.records import Trajectory
from orchestrator.trajectory import trajectory_of
from storage.artifacts import LocalArtifacts
from storage.database import Database
from storage.jobs import create_job
from storage.journal import SqlJournal
from storage.lock import locked

__all__ = ["Ending", "LocalJob", "SystemClock", "play", "slug"]

State = Literal["succeeded", "waiting", "failed", "interrupted"]


@dataclass(frozen=True)
class Ending:
    """How this process left the job. `reason` is why it waits; `recalled`: it had finished before."""

    state: State
    message: str = ""
    reason: str = ""
    trajectory: Trajectory | None = None
    files: Mapping[str, Path] = field(default_factory=dict[str, Path])  # relative name -> path
    recalled: bool = False


def play(
    job: LocalJob,
    path: Path,
    *,
    fresh: bool,
    make_ports: Callable[[Artifacts], Ports],
    watcher: Watcher,
    journal_options: Mapping[str, Any] | None = None,
) -> Ending:
    """Run the job in the folder, or go on with it, or show that it has finished.

    Raises TaskRejected and BackendMisconfigured where nothing could begin, and KeyboardInterrupt where nothing
    had begun yet: then nothing is left behind, and --fresh has forgotten nothing that the new job needs room for.
    `journal_options` go to SqlJournal (crash tests hook its commits).
    """
    folder = JobFolder(path)
    if not fresh and (ending := _recall(folder, job.id)) is not None:
        return ending
    refuse_foreign(folder)
    with tidy_if_refused(folder), locked(folder.database):
        clear_rehearsal(folder)
        if fresh and (folder.database.exists() or exports.present(path)):
            with rehearsal(folder) as trial, _begun(job, trial):
                pass
        if fresh:
            forget(folder)
        with _begun(job, folder) as (database, artifacts):
            journal = SqlJournal(database, job.id, **(journal_options or {}))
            return _Run(job, folder, make_ports(artifacts), artifacts, journal, watcher).to_the_end()


@contextlib.contextmanager
def _begun(job: LocalJob, folder: JobFolder) -> Generator[tuple[Database, LocalArtifacts]]:
    """The folder's database with the job in it, and its artifacts with the picture."""
    with Database(folder.database) as database:
        refuse_other(database, folder, job.id, job.task, job.policy)
        artifacts = LocalArtifacts(folder.artifacts)
        artifacts.put(job.png, ".png")
        create_job(database, job.id, job.task, job.policy)
        yield database, artifacts


def _recall(folder: JobFolder, job_id: str) -> Ending | None:
    """A finished job whose files are untouched, without opening its journal: not a byte changes."""
    files = finished_files(folder, job_id)
    if files is None:
        return None
    try:
        text = (folder.path / exports.TRAJECTORY).read_text(encoding="utf-8")
        trajectory = Trajectory.model_validate_json(text)
    except (OSError, ValueError, ValidationError):
        return None
    if set(files) != set(exports.names(trajectory)):
        return None
    return Ending("succeeded", trajectory=trajectory, files=_paths(folder, files), recalled=True)


def _paths(folder: JobFolder, files: Mapping[str, str]) -> dict[str, Path]:
    return {name: folder.path / name for name in files}


@dataclass(frozen=True)
class _Run:
    job: LocalJob
    folder: JobFolder
    ports: Ports
    artifacts: Artifacts
    journal: SqlJournal
    watcher: Watcher

    def to_the_end(self) -> Ending:
        """Every way out but a refusal is an Ending."""
        stored = self.journal.state()
        if stored.state == "failed":
            message = f"{stored.message}; start over with --fresh"
            return Ending("failed", message, trajectory=self._trajectory())
        try:
            return self._run()
        except JobWaiting as stop:
            if stop.reason == "disk" and not self._began():
                raise
            self.journal.wait(stop)
            return Ending("waiting", str(stop), stop.reason, self._trajectory())
        except (KeyboardInterrupt, JobCancelled):
            return self._interrupted()
        except Exception as error:
            if self.ports.cancelled():  # what a library made of the interrupt
                return self._interrupted()
            if not isinstance(error, CliploopError) or not self._began():
                raise
            return Ending("failed", str(error), trajectory=self._trajectory())

    def _interrupted(self) -> Ending:
        """Raises KeyboardInterrupt where nothing had begun."""
        if not self._began():
            raise KeyboardInterrupt from None
        return Ending("interrupted", "stopped, everything so far is saved", trajectory=self._trajectory())

    def _run(self) -> Ending:
        repairing = RepairingJournal(self.journal, self.artifacts, FrameReader(self.artifacts))
        watched = WatchedJournal(repairing, self.watcher)
        if not self._began():
            prepare(self.ports.generator)
        try:
            outcome = run(self.job.task, self.job.policy, self.ports, watched)
        except BackendFailed as failure:
            if self.ports.cancelled():
                raise
            return self._failed(str(failure))
        trajectory = self._trajectory()
        files = self._export(trajectory)
        if self.journal.state().state != "succeeded":
            self.journal.set_state("succeeded", outcome=outcome.kind)
        write_finished(self.folder, self.job.id, files)
        return Ending("succeeded", trajectory=trajectory, files=_paths(self.folder, files))

    def _failed(self, message: str) -> Ending:
        """Nothing could be rendered: what was tried is shown all the same."""
        trajectory = self._trajectory()
        files = self._export(trajectory)
        self.journal.set_state("failed", message=message)
        return Ending("failed", message, trajectory=trajectory, files=_paths(self.folder, files))

    def _export(self, trajectory: Trajectory) -> dict[str, str]:
        list_files(self.folder, exports.names(trajectory))
        reader = FrameReader(self.artifacts)
        return exports.write(self.folder.path, self.folder.scratch, trajectory, self.artifacts, reader)

    def _trajectory(self) -> Trajectory:
        return trajectory_of(self.job.id, self.job.task, self.job.policy, self.ports, self.journal)

    def _began(self) -> bool:
        return any(entry.kind != "state" for entry in self.journal.entries())
