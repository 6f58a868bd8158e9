"""A job's folder: what is in it, whose it is, when it may be started over, what is left when nothing began.

DIR/.cliploop/   journal.sqlite, artifacts/, finished.json: the job's memory
DIR/…            what `cliploop.exports` writes at the end
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from cliploop import exports
from orchestrator.errors import BackendMisconfigured, JobWaiting, TaskRejected
from orchestrator.records import Policy, Task
from storage.database import Database
from storage.database import remove as remove_database
from storage.folders import DISK_FULL
from storage.jobs import StoredJob, differing, stored_jobs

MEMORY = ".cliploop"


@dataclass(frozen=True)
class JobFolder:
    """The paths of a job."""

    path: Path

    @property
    def memory(self) -> Path:
        """The job's own folder in it."""
        return self.path / MEMORY

    @property
    def database(self) -> Path:
        """Job row and journal."""
        return self.memory / "journal.sqlite"

    @property
    def artifacts(self) -> Path:
        """Pictures and clips, by content."""
        return self.memory / "artifacts"

    @property
    def scratch(self) -> Path:
        """Half-written files, on the same disk as what they become."""
        return self.memory / "parts"

    @property
    def finished(self) -> Path:
        """The id and the digests of the exported files, written last of all."""
        return self.memory / "finished.json"


def finished_files(folder: JobFolder, job_id: str) -> dict[str, str] | None:
    """{relative path: SHA-256} of a job that has finished here and whose files are all as it left them."""
    try:
        said: Any = json.loads(folder.finished.read_text(encoding="utf-8"))
        if said["id"] != job_id:
            return None
        files = cast("dict[str, str]", said["files"])
        return files if exports.unchanged(folder.path, files) else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def write_finished(folder: JobFolder, job_id: str, files: Mapping[str, str]) -> None:
    """Remember that the job has finished. Raises JobWaiting(disk)."""
    part = folder.finished.with_suffix(".part")
    try:
        part.write_text(json.dumps({"id": job_id, "files": dict(files)}, indent=2) + "\n", encoding="utf-8")
        part.replace(folder.finished)
    except OSError as error:
        if error.errno not in DISK_FULL:
            raise
        raise JobWaiting(
            "disk", f"no room in {folder.memory}: free some space, then run the same command again"
        ) from error


def refuse_foreign(folder: JobFolder) -> None:
    """Raise TaskRejected for a path that is no folder, or a folder where our names are somebody else's files."""
    path = folder.path
    nearest = next((part for part in (path, *path.parents) if os.path.lexists(part)), None)
    if nearest is not None and not nearest.is_dir():
        raise TaskRejected(f"-o {path}: {nearest} is a file, not a folder; choose another -o", reason="output")
    if folder.memory.is_dir():
        return
    foreign = exports.present(path)
    if os.path.lexists(folder.memory):
        foreign = [MEMORY, *foreign]
    if foreign:
        raise TaskRejected(
            f"-o {path} holds {', '.join(foreign[:3])} that cliploop did not make; choose another -o",
            reason="output",
        )


def refuse_other(database: Database, folder: JobFolder, job_id: str, task: Task, policy: Policy) -> None:
    """Raise TaskRejected, saying what differs, if the folder holds another job."""
    for stored in stored_jobs(database):
        if stored.id != job_id:
            raise TaskRejected(
                f"-o {folder.path} holds another job ({stored.id}): {_differences(stored, task, policy)} "
                f"differs; add --fresh to start over, or choose another -o",
                reason="other_job",
            )


def _differences(stored: StoredJob, task: Task, policy: Policy) -> str:
    """`prompt, policy: max_steps (3 there, 5 now)`."""
    ours, parts = policy.model_dump(mode="json"), list[str]()
    for difference in differing(stored, task, policy):
        if not difference.startswith("policy"):
            parts.append(difference)
    for name in sorted({*ours, *stored.policy}):
        there, now = stored.policy.get(name), ours.get(name)
        if there != now:
            short = isinstance(there, str | int | float | None) and len(f"{there}{now}") <= 40
            parts.append(f"policy {name}" + (f" ({there} there, {now} now)" if short else ""))
    return ", ".join(parts) or "the version of cliploop"


def forget(folder: JobFolder) -> None:
    """Start over: remove what cliploop made here, and nothing else. The lock that is held stays."""
    exports.remove(folder.path)
    folder.finished.unlink(missing_ok=True)
    remove_database(folder.database)
    for made in (folder.artifacts, folder.scratch):
        shutil.rmtree(made, ignore_errors=True)


@contextlib.contextmanager
def tidy_if_refused(folder: JobFolder) -> Generator[None]:
    """If the block refuses the job, remove the folders that were not there before it.

    A full disk inside the block means that nothing began: TaskRejected. The block catches what is no refusal.
    """
    path = folder.path
    missing = [part for part in (path, *path.parents) if not part.exists()]
    had_memory = folder.memory.exists()
    try:
        yield
    except (TaskRejected, BackendMisconfigured, JobWaiting) as error:
        if not had_memory:
            shutil.rmtree(folder.memory, ignore_errors=True)
        for part in missing:
            with contextlib.suppress(OSError):
                part.rmdir()
        if isinstance(error, JobWaiting):
            raise TaskRejected(str(error), reason="disk") from error
        raise
