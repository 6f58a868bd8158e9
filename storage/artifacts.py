"""Content-addressed files: a key is the SHA-256 of the content plus a suffix. Written whole, or not there.

What others did to a file since is seen when it is first read: content that no longer has its key is never handed
out, and is repaired by a `put` of the right content.

It knows nothing of jobs: who may read a file, and when it may go, is decided by those who hold its key.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import secrets
import shutil
import tempfile
import weakref
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, cast

import fsspec

from orchestrator.errors import BackendMisconfigured, CliploopError, JobWaiting
from orchestrator.records import ArtifactKey
from storage.folders import DISK_FULL, JOBS_GO_ON, NO_ROOM, make_folder

_KEY = re.compile(r"[0-9a-f]{64}(\.[a-z0-9]{1,16})?")
_SUFFIX = re.compile(r"(\.[a-z0-9]{1,16})?")
_Marks: TypeAlias = tuple[int, float, int]  # bytes, time of change, inode
_PART = ".part"  # a file that is being written: ".<key>.<random>.part"


class ArtifactMissing(CliploopError):
    """No file with this key, or not a key at all."""


class StoreUnusable(BackendMisconfigured):
    """The store itself is gone or refuses us: its operator must see to it."""


class ArtifactDamaged(ArtifactMissing):
    """The file of this key has another content than the one that was put."""


@dataclass(frozen=True)
class StoredFile:
    """A file of a store. `changed_at`: seconds since the epoch, by the store's clock."""

    key: ArtifactKey
    num_bytes: int
    changed_at: float


def key_of(data: bytes, suffix: str) -> ArtifactKey:
    """The key that `put` returns. Raises ValueError for a suffix that is not like ".png"."""
    if not _SUFFIX.fullmatch(suffix):
        raise ValueError(f"{suffix!r} is no suffix: write it like '.png'")
    return hashlib.sha256(data).hexdigest() + suffix


def is_key(name: str) -> bool:
    """Whether a file of this name can be one of ours."""
    return _KEY.fullmatch(name) is not None


def is_part(name: str) -> bool:
    """Whether a file of this name is one that was being written."""
    return name.startswith(".") and name.endswith(_PART) and is_key(name[1 : -len(_PART)].rpartition(".")[0])


def checked(key: ArtifactKey) -> ArtifactKey:
    """The key: no separator, no second dot, so it cannot leave its folder. Raises ArtifactMissing for another."""
    if not _KEY.fullmatch(key):
        raise ArtifactMissing(f"{key[:100]!r} is no artifact key: 64 hex digits and a suffix like '.png'")
    return key


class LocalArtifacts:
    """A folder of artifacts, `<root>/<key>`; safe for several processes at once.

    `service`: jobs of a service go on by themselves, and no remedy is an option of the command line. Raises
    BackendMisconfigured if the folder cannot be made, StoreUnusable if it cannot be written to.
    """

    def __init__(self, root: Path, *, service: bool = False) -> None:
        self._service = service
        self.root = make_folder(root.absolute())
        self._files: Any = cast("Any", fsspec).filesystem("file")
        self._intact: dict[ArtifactKey, _Marks] = {}  # the files whose content is known to be right, as they were
        self.clean()

    def put(self, data: bytes, suffix: str) -> ArtifactKey:
        """Store and return the key. A file of this key that is there already is left alone, unless it is damaged.

        Raises JobWaiting(disk) when the disk is full, StoreUnusable when it cannot be written to; nothing
        half-written stays.
        """
        key = key_of(data, suffix)
        target = self.root / key
        if not self._is_intact(key):
            with self._refusing(len(data)):
                try:
                    self._write(target, data)
                except FileNotFoundError:  # another process cleaned up between our open and our lock
                    self._write(target, data)
            self._remember(key)
        return key

    def read(self, key: ArtifactKey) -> bytes:
        """The content. Raises ArtifactMissing, ArtifactDamaged."""
        return cast("bytes", self._files.cat_file(str(self.path(key))))

    def path(self, key: ArtifactKey) -> Path:
        """The file; its content is checked when first asked for. Raises ArtifactMissing, ArtifactDamaged."""
        path = self.root / checked(key)
        if self._marks(path) is None:
            raise ArtifactMissing(f"artifact {key} is not in {self.root}: {self._remedy}")
        if not self._is_intact(key):
            raise ArtifactDamaged(f"{path} is damaged, its content has changed: {self._remedy}")
        return path

    def check(self) -> None:
        """Raise StoreUnusable if the folder is gone. It is not made again: what it held may come back."""
        if not self.root.is_dir():
            raise StoreUnusable(f"the folder {self.root} is gone: bring it back, or start the service again")

    def stored(self) -> Iterator[StoredFile]:
        """Every artifact in the folder."""
        for path in list(self.root.iterdir()):  # to its end first: files go meanwhile
            if is_key(path.name):
                with contextlib.suppress(FileNotFoundError):
                    info = path.lstat()
                    yield StoredFile(path.name, info.st_size, info.st_mtime)

    def remove(self, keys: Sequence[ArtifactKey]) -> None:
        """Remove these for good; what is not there is no error."""
        for key in keys:
            self._intact.pop(key, None)
            with self._refusing(0):
                (self.root / checked(key)).unlink(missing_ok=True)

    def clean(self, *, dry: bool = False) -> tuple[int, int]:
        """Remove what killed processes left half-written: how many files, of how many bytes. `dry`: only say so.

        A living writer holds a lock on its part.
        """
        count = num_bytes = 0
        for part in self.root.glob(f".*{_PART}"):
            with contextlib.suppress(OSError), part.open("rb") as file:
                fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
                size = os.fstat(file.fileno()).st_size
                if not dry:
                    part.unlink()
                count, num_bytes = count + 1, num_bytes + size
        return count, num_bytes

    def close(self) -> None:
        """Nothing is open."""

    @property
    def _remedy(self) -> str:
        return f"bring the file back, {JOBS_GO_ON if self._service else 'or start over with --fresh'}"

    def _is_intact(self, key: ArtifactKey) -> bool:
        """Whether the file has the content that its key names; hashed once, and again after a change."""
        path = self.root / key
        marks = self._marks(path)
        if marks is None:
            return False
        if self._intact.get(key) != marks:
            with self._files.open(str(path), "rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest() != key[:64]:
                    return False
            self._intact[key] = marks
        return True

    def _remember(self, key: ArtifactKey) -> None:
        """This process wrote the file: its content is right."""
        marks = self._marks(self.root / key)
        if marks is not None:
            self._intact[key] = marks

    def _marks(self, path: Path) -> _Marks | None:
        """What changes with the content of a plain file, or None."""
        try:
            info: dict[str, Any] = self._files.info(str(path))
        except FileNotFoundError:
            return None
        return (int(info["size"]), float(info["mtime"]), int(info["ino"])) if info["type"] == "file" else None

    def _write(self, target: Path, data: bytes) -> None:
        """Temporary file in the same folder, fsync, rename, fsync of the folder: whole after a power cut too."""
        part = self.root / f".{target.name}.{secrets.token_hex(8)}{_PART}"
        try:
            with self._files.open(str(part), "wb") as file:
                fcntl.flock(file.fileno(), fcntl.LOCK_EX)  # tells `clean` that somebody is writing
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
                part.replace(target)
        except BaseException:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)
            raise
        self._sync_folder()

    def _sync_folder(self) -> None:
        folder = os.open(self.root, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    @contextlib.contextmanager
    def _refusing(self, num_bytes: int) -> Generator[None]:
        """Say what a failed write means."""
        try:
            yield
        except OSError as error:
            if error.errno in DISK_FULL:
                then = JOBS_GO_ON if self._service else "then run the same command again"
                raise JobWaiting(
                    "disk",
                    f"no room for {num_bytes} bytes in {self.root} ({error.strerror}): free some space, {then}",
                    outside=NO_ROOM,
                ) from error
            if self._service:
                self.check()
            remedy = "make it one that we can write to" if self._service else "choose another folder"
            raise StoreUnusable(f"cannot write to {self.root} ({error.strerror}): {remedy}") from error


class MemoryArtifacts:
    """Artifacts in memory, for one process; `path` writes the file into a folder that goes with the store."""

    def __init__(self) -> None:
        self._contents: dict[ArtifactKey, bytes] = {}
        self._folder: LocalArtifacts | None = None

    def put(self, data: bytes, suffix: str) -> ArtifactKey:
        key = key_of(data, suffix)
        self._contents[key] = bytes(data)
        return key

    def read(self, key: ArtifactKey) -> bytes:
        """The content. Raises ArtifactMissing."""
        try:
            return self._contents[checked(key)]
        except KeyError:
            raise ArtifactMissing(f"artifact {key} is not in memory") from None

    def path(self, key: ArtifactKey) -> Path:
        """A file with the content. Raises ArtifactMissing."""
        data = self.read(key)
        if self._folder is None:
            root = tempfile.mkdtemp(prefix="cliploop-artifacts-")
            weakref.finalize(self, shutil.rmtree, root, ignore_errors=True)
            self._folder = LocalArtifacts(Path(root))
        return self._folder.path(self._folder.put(data, key[64:]))
