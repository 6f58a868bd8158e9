"""A job's folder: what is in it, whose it is, when it may be started over, what is left when nothing began.

DIR/.cliploop/   journal.sqlite, artifacts/, files.json, finished.json: the job's memory
DIR/…            what `cliploop.exports` writes at the end
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from cliploop import exports
from cliploop.files import folder_fault
from orchestrator.errors import BackendMisconfigured, JobWaiting, TaskRejected
from orchestrator.records import Policy, Task
from storage.artifacts import is_key, is_part
from storage.database import Database, bears_our_mark, refuse_other_program
from storage.database import remove as remove_database
from storage.folders import DISK_FULL
from storage.jobs import StoredJob, differing, stored_jobs
from storage.lock import is_lock, lock_file

MEMORY = ".cliploop"
REHEARSAL = "fresh"  # a folder in the memory, while --fresh tries whether a new job has room


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

    @property
    def listed(self) -> Path:
        """The names of the exported files, written before the first of them."""
        return self.memory / "files.json"

    @property
    def is_ours(self) -> bool:
        """Whether cliploop made the memory: its lock comes first of all, and its mark is in the journal."""
        return is_lock(self.database) or bears_our_mark(self.database)

    @property
    def in_use(self) -> bool:
        """Whether a process is at work here now: it holds the lock."""
        try:
            with lock_file(self.database).open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False


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
    _write_json(folder, folder.finished, {"id": job_id, "files": dict(files)})


def list_files(folder: JobFolder, names: Iterable[str]) -> None:
    """Remember which files are exported, so that only these are removed. Raises JobWaiting(disk)."""
    listed = written_files(folder)
    if not listed.issuperset(names):
        _write_json(folder, folder.listed, sorted(listed.union(names)))


def written_files(folder: JobFolder) -> set[str]:
    """The relative paths of what a job exported here, as far as it is known."""
    listed, finished = _read_json(folder.listed), _read_json(folder.finished)
    files = cast("dict[str, Any]", finished).get("files") if isinstance(finished, dict) else None
    said = [*_texts(listed), *_texts(files), exports.VIDEO, exports.TRAJECTORY, exports.CONTACT_SHEET]
    return {name for name in said if exports.is_ours(name)}


def _texts(value: object) -> list[str]:
    """The texts in a JSON array, or the keys of an object."""
    each = cast("Iterable[object]", value) if isinstance(value, list | dict) else ()
    return [text for text in each if isinstance(text, str)]


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None


def _write_json(folder: JobFolder, path: Path, value: object) -> None:
    exports.refuse_obstacle(path, folder.path)
    part = path.with_suffix(".part")
    try:
        part.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
        part.replace(path)
    except OSError as error:
        if error.errno not in DISK_FULL:
            raise BackendMisconfigured(
                f"cannot write {path} ({error.strerror}): make {folder.memory} writable"
            ) from error
        raise JobWaiting(
            "disk", f"no room in {folder.memory}: free some space, then run the same command again"
        ) from error


def refuse_foreign(folder: JobFolder) -> None:
    """Raise TaskRejected for a path that is no folder, or a folder where our names are somebody else's files."""
    path = folder.path
    if (fault := folder_fault(path)) is not None:
        raise TaskRejected(f"-o {path}: {fault}; choose another -o", reason="output")
    if folder.is_ours:
        return
    foreign = exports.present(path)
    if os.path.lexists(folder.memory) and not _is_empty(folder.memory):
        foreign = [MEMORY, *foreign]
    if foreign:
        raise TaskRejected(
            f"-o {path} holds {', '.join(foreign[:3])} that cliploop did not make; choose another -o",
            reason="output",
        )


def _is_empty(folder: Path) -> bool:
    """Whether this is a folder with nothing in it."""
    try:
        return not any(folder.iterdir())
    except OSError:
        return False


def refuse_as_a_run_would(folder: JobFolder, job_id: str, task: Task, policy: Policy, *, fresh: bool) -> None:
    """Raise what a run of this job in the folder would raise before anything begins. Writes nothing."""
    refuse_foreign(folder)
    if fresh:
        refuse_other_program(folder.database)
    elif folder.database.is_file() and folder.database.stat().st_size:
        with Database(folder.database, read_only=True) as database:
            refuse_other(database, folder, job_id, task, policy)


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
    """Start over: remove what cliploop made here, and nothing else. The lock that is held stays.

    Raises BackendMisconfigured for a journal of another program, and for what cannot be removed.
    """
    refuse_other_program(folder.database)
    try:
        exports.remove(folder.path, written_files(folder))
        folder.finished.unlink(missing_ok=True)
        remove_database(folder.database)
        _remove_named(folder.artifacts, lambda name: is_key(name) or is_part(name))
        _remove_named(folder.scratch, lambda name: name in exports.SCRATCH)
        folder.listed.unlink(missing_ok=True)
    except OSError as error:
        raise BackendMisconfigured(
            f"--fresh cannot remove {error.filename} ({error.strerror}): move it away, or choose another -o"
        ) from error


@contextlib.contextmanager
def rehearsal(folder: JobFolder) -> Generator[JobFolder]:
    """A place in the job's memory where a new job can be begun before --fresh forgets the old one.

    Raises TaskRejected where there is no room for it: then the old job is as it was.
    """
    trial = JobFolder(folder.memory / REHEARSAL)
    try:
        _clear(trial)
        yield trial
    except JobWaiting as error:
        raise TaskRejected(_kept(error), reason="disk") from error
    except BackendMisconfigured as error:
        raise BackendMisconfigured(_kept(error)) from error
    finally:
        clear_rehearsal(folder)


def clear_rehearsal(folder: JobFolder) -> None:
    """Remove what a rehearsal left, as far as it can be removed. Nobody else may hold the folder's lock."""
    with contextlib.suppress(BackendMisconfigured):
        _clear(JobFolder(folder.memory / REHEARSAL))


def _clear(trial: JobFolder) -> None:
    if trial.path.is_symlink():
        raise BackendMisconfigured(f"{trial.path} is a link: move it away")
    if not os.path.lexists(trial.path):
        return
    forget(trial)
    for emptied in (trial.memory, trial.path):
        with contextlib.suppress(OSError):
            emptied.rmdir()


def _kept(error: Exception) -> str:
    return f"{error}; --fresh has removed nothing"


def _remove_named(folder: Path, ours: Callable[[str], bool]) -> None:
    """Remove the files of our names, and the folder if it is empty then."""
    if not folder.is_dir():
        return
    for path in folder.iterdir():
        if ours(path.name) and not path.is_dir():
            path.unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        folder.rmdir()


@contextlib.contextmanager
def tidy_if_refused(folder: JobFolder) -> Generator[None]:
    """If the block refuses the job, or is interrupted, remove the folders that were not there before it.

    A full disk inside the block means that nothing began: TaskRejected. The block catches what is no refusal.
    """
    path = folder.path
    missing = [part for part in (path, *path.parents) if not os.path.lexists(part)]
    had_memory, was_empty = os.path.lexists(folder.memory), _is_empty(folder.memory)
    try:
        yield
    except (TaskRejected, BackendMisconfigured, JobWaiting, KeyboardInterrupt) as error:
        if not had_memory or was_empty:
            shutil.rmtree(folder.memory, ignore_errors=True)
        if was_empty:
            with contextlib.suppress(OSError):
                folder.memory.mkdir()
        for part in missing:
            with contextlib.suppress(OSError):
                part.rmdir()
        if isinstance(error, JobWaiting):
            raise TaskRejected(str(error), reason="disk") from error
        raise
