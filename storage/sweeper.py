"""Removes what nobody holds any more: artifacts, what the dead left behind, and what was kept only for a time.

Run by every worker and API process, one at a time through a lease, and by `cliploop gc`. The invariant that lets
it run beside writers, in other processes and on other machines:

1. A writer announces an artifact in a transaction (`references.expect`, by `BookedArtifacts.put`; or `hold`), and
   only then looks whether its file is there, and writes it. An announced artifact is young, a held one is held.
2. The sweeper marks what is old and unheld as condemned, and commits. Then, in one transaction, it locks the rows
   that are condemned still, takes them off the books, and removes their files before it commits.
3. So an announcement either comes before that transaction, and nothing is removed; or it waits for it, and finds
   no file. A sweep that dies half-way leaves condemned rows: nobody records those without announcing them again.
4. A record whose artifact is condemned or off the books is refused (`references.missing`), and its effect done
   again: somebody stood still for longer than `references.ARRIVAL_SECONDS`.

Files that no row knows are put on the books as condemned, and then go the same way.
"""

from __future__ import annotations

import contextlib
import itertools
import shutil
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from orchestrator.records import ArtifactKey
from storage import references, retention
from storage.artifacts import StoredFile
from storage.booked import Store
from storage.folders import make_folder
from storage.sql import SqlDatabase

SCRATCH_SECONDS = 3600.0  # what nobody wrote to for so long is of a process that is gone
IDEMPOTENCY_SECONDS = 7 * 86400.0  # an idempotency key stands for its job so long: clients have given up by then
STRAYS_AT_MOST = 100_000  # of one sweep
_BATCH = 100  # of one transaction

Kind: TypeAlias = Literal[
    "jobs", "uploads", "artifacts", "strays", "unfinished", "scratch", "idempotency", "leases"
]


@dataclass(frozen=True)
class Terms:
    """How long things are kept, in seconds; `retention` None: ended jobs are kept."""

    unheld: float
    upload: float
    retention: float | None = None


@dataclass(frozen=True)
class Removed:
    """What was removed of a kind, or would be; bytes as far as they were known without asking for each."""

    count: int = 0
    num_bytes: int = 0

    def __add__(self, more: Removed) -> Removed:
        return Removed(self.count + more.count, self.num_bytes + more.num_bytes)


@dataclass
class Tally:
    """What one sweep removed, by kind. `foreign`: files that no row knows and that were left, being too many."""

    removed: dict[Kind, Removed] = field(default_factory=dict[Kind, Removed])
    foreign: Removed = field(default_factory=Removed)

    def add(self, kind: Kind, count: int, num_bytes: int = 0) -> None:
        self.removed[kind] = self.removed.get(kind, Removed()) + Removed(count, num_bytes)


@dataclass
class Sweep:
    """One sweep over a site. `dry`: only say what would be removed. `step(num_files)` is called often, with how
    many files were looked at since; what it raises ends the sweep.

    `strays`: remove files that no row knows even where they are more than those that are known; a store that
    holds the files of another database looks like that.
    """

    database: SqlDatabase
    store: Store
    scratch: Path
    terms: Terms
    dry: bool = False
    strays: bool = False
    step: Callable[[int], None] = lambda _looked_at: None
    tally: Tally = field(default_factory=Tally)
    _counted: set[ArtifactKey] = field(default_factory=set[ArtifactKey])

    def brief(self) -> Tally:
        """What costs little: what the books say. Raises BackendUnavailable."""
        self._remove_ended_jobs()
        self._expire_uploads()
        self._remove_unheld()
        return self.tally

    def whole(self) -> Tally:
        """All there is: every file of the store is looked at."""
        self._remove_ended_jobs()
        self._expire_uploads()
        self._look_through_store()
        self._remove_unheld()
        old = self._now() - IDEMPOTENCY_SECONDS
        count = retention.old_idempotency_keys if self.dry else retention.forget_idempotency_keys
        self.tally.add("idempotency", count(self.database, old))
        leases = retention.leases_of_gone_jobs(self.database)
        self.tally.add("leases", len(leases) if self.dry else retention.forget_leases(self.database, leases))
        self._clean_scratch()
        self.tally.add("unfinished", *self.store.clean(dry=self.dry))
        return self.tally

    def _now(self) -> float:
        with self.database.read() as connection:
            return self.database.now(connection)

    def _remove_ended_jobs(self) -> None:
        if self.terms.retention is None:
            return
        for job_id in retention.ended(self.database, self._now() - self.terms.retention):
            self.step(0)
            if self.dry or retention.remove_ended(self.database, job_id):
                self.tally.add("jobs", 1)

    def _expire_uploads(self) -> None:
        before = self._now() - self.terms.upload
        if self.dry:
            with self.database.read() as connection:
                self.tally.add("uploads", references.num_uploads(connection, before))
            return
        with self.database.write() as connection:
            expired = references.expire_uploads(connection, before, self.database.now(connection))
        self.tally.add("uploads", expired)

    def _remove_unheld(self) -> None:
        """By the books alone: their files are not looked at before."""
        before, after = self._now() - self.terms.unheld, ""
        while True:
            with self.database.read() as connection:
                keys = references.unreferenced(connection, before, _BATCH, after=after)
            if not keys:
                return
            after = keys[-1]
            self._remove("artifacts", {key: 0 for key in keys if key not in self._counted}, before)

    def _look_through_store(self) -> None:
        """Every file: held, to be removed now, or known to nobody."""
        before = self._now() - self.terms.unheld
        young = time.time() - max(self.terms.unheld, references.ARRIVAL_SECONDS)
        strays: dict[ArtifactKey, int] = {}
        num_known = 0
        for files in _batches(self.store.stored()):
            self.step(len(files))
            sizes = {file.key: file.num_bytes for file in files}
            with self.database.read() as connection:
                known = references.since(connection, list(sizes))
            num_known += len(known)
            unknown = [file for file in files if file.key not in known and file.changed_at < young]
            strays.update((file.key, file.num_bytes) for file in unknown[: STRAYS_AT_MOST - len(strays)])
            old = {key: sizes[key] for key, since in known.items() if since is not None and since < before}
            self._remove("artifacts", old, before)
        self._remove_strays(strays, num_known)

    def _remove_strays(self, strays: dict[ArtifactKey, int], num_known: int) -> None:
        if len(strays) > num_known and not self.strays:
            self.tally.foreign = Removed(len(strays), sum(strays.values()))
            return
        keys = list(strays)
        for first in range(0, len(keys), _BATCH):
            some = {key: strays[key] for key in keys[first : first + _BATCH]}
            if not self.dry:
                with self.database.write() as connection:
                    references.adopt(connection, list(some))
            self._remove("strays", some, before=1.0)

    def _remove(self, kind: Kind, sizes: dict[ArtifactKey, int], before: float) -> None:
        """Steps 2 and 3 of the invariant."""
        if not sizes:
            return
        self.step(0)
        self._counted.update(sizes if self.dry else ())
        going: Sequence[ArtifactKey] = list(sizes)
        if not self.dry:
            with self.database.write() as connection:
                references.condemn(connection, going, before)
            with self.database.write() as connection:
                going = references.forget(connection, going)
                self.store.remove(going)
        self.tally.add(kind, len(going), sum(sizes[key] for key in going))

    def _clean_scratch(self) -> None:
        old = time.time() - max(self.terms.unheld, SCRATCH_SECONDS)
        make_folder(self.scratch)  # whoever removed it: encoders need it
        for path in self.scratch.iterdir():
            size, changed_at = _measured(path)
            if changed_at < old:
                self.tally.add("scratch", 1, size)
                if not self.dry:
                    _discard(path)


def _batches(files: Iterable[StoredFile]) -> Generator[list[StoredFile]]:
    remaining = iter(files)
    while batch := list(itertools.islice(remaining, _BATCH)):
        yield batch


def _measured(path: Path) -> tuple[int, float]:
    """Bytes of a file or of all in a folder, and when any of it changed last (seconds since the epoch)."""
    total, changed_at = 0, 0.0
    for part in [path, *path.rglob("*")]:
        with contextlib.suppress(FileNotFoundError):
            info = part.lstat()
            total += info.st_size if not part.is_dir() else 0
            changed_at = max(changed_at, info.st_mtime)
    return total, changed_at


def _discard(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
