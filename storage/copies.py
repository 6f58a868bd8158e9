"""Local copies of artifacts that live elsewhere: a folder of bounded size, the longest unused copy goes first.

Safe for several processes of one machine; the folder is made again when somebody removed it. A copy that was
handed out a short while ago is not removed, so that who was given its path can still open it; who has it open
keeps it anyway.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Collection, Generator
from pathlib import Path

from orchestrator.errors import BackendMisconfigured
from orchestrator.records import ArtifactKey
from storage.artifacts import ArtifactMissing, LocalArtifacts, StoreUnusable, is_key
from storage.folders import make_folder

IN_USE_SECONDS = 900.0  # from being handed out to being opened
MOST_BYTES = 8 * 2**30
_LOCK = ".lock"


class Copies:
    """Verified copies in `root`, about `most_bytes` of them. Raises BackendMisconfigured as LocalArtifacts."""

    def __init__(self, root: Path, most_bytes: int = MOST_BYTES) -> None:
        self._files = LocalArtifacts(root, service=True)
        self._most_bytes = most_bytes

    def find(self, key: ArtifactKey) -> Path | None:
        """The copy, its content checked, in use from now on; None if there is none, or a damaged one."""
        with self._locked(fcntl.LOCK_SH):
            try:
                path = self._files.path(key)
                _use(path)
            except (ArtifactMissing, FileNotFoundError):
                return None
            return path

    def keep(self, data: bytes, suffix: str) -> Path:
        """Keep a copy of this content; its path. Raises JobWaiting(disk) when there is no room for it."""
        self.shrink(self._most_bytes - len(data))
        with self._locked(fcntl.LOCK_SH):
            path = self._files.path(self._files.put(data, suffix))
            _use(path)
            return path

    def drop(self, keys: Collection[ArtifactKey]) -> None:
        """Remove the copies of these, in use or not: the artifacts themselves are gone."""
        with self._locked(fcntl.LOCK_EX):
            for key in keys:
                (self._files.root / key).unlink(missing_ok=True)

    def clean(self, *, dry: bool = False) -> tuple[int, int]:
        """See LocalArtifacts."""
        return self._files.clean(dry=dry)

    def keys(self) -> list[ArtifactKey]:
        """What there are copies of."""
        try:
            with os.scandir(self._files.root) as entries:
                return [entry.name for entry in entries if is_key(entry.name)]
        except FileNotFoundError:
            return []

    def shrink(self, most_bytes: int) -> None:
        """Remove the longest unused copies until the rest has no more bytes than that; none that is in use."""
        with self._locked(fcntl.LOCK_EX):
            copies = sorted(self._looked())
            total = sum(num_bytes for _, num_bytes, _ in copies)
            unused_since = time.time() - IN_USE_SECONDS
            for used_at, num_bytes, path in copies:
                if total <= most_bytes or used_at > unused_since:
                    return
                path.unlink(missing_ok=True)
                total -= num_bytes

    def _looked(self) -> list[tuple[float, int, Path]]:
        """Of each copy: when it was used last, its bytes, its path."""
        found: list[tuple[float, int, Path]] = []
        with os.scandir(self._files.root) as entries:
            for entry in entries:
                if is_key(entry.name):
                    with contextlib.suppress(FileNotFoundError):
                        info = entry.stat()
                        found.append((info.st_atime, info.st_size, Path(entry.path)))
        return found

    @contextlib.contextmanager
    def _locked(self, how: int) -> Generator[None]:
        """Shared to hand out, exclusive to remove: what is handed out is never removed in the same moment."""
        try:
            make_folder(self._files.root)
        except BackendMisconfigured as error:  # of one that was there when the process began
            raise StoreUnusable(str(error)) from error
        descriptor = os.open(self._files.root / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, how)
            yield
        finally:
            os.close(descriptor)


def _use(path: Path) -> None:
    """Note the moment as the file's time of access: explicitly, since file systems note it late or never."""
    info = path.stat()
    os.utime(path, ns=(time.time_ns(), info.st_mtime_ns))
