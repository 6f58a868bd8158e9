"""Files that are made when somebody asks for them, kept as artifacts of their job, and made only once."""

from __future__ import annotations

import contextlib
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from pathlib import Path

from cliploop.site import Site
from media.encode import browser_clip
from media.frames import FrameReader
from media.sheet import contact_sheet
from orchestrator.attempts import rank
from orchestrator.errors import BackendUnavailable
from orchestrator.footage import join, still, whole
from orchestrator.records import ArtifactKey, Attempt, Footage, Step, Trajectory
from storage import references
from storage.artifacts import ArtifactMissing, key_of
from storage.folders import make_folder
from storage.jobs import require_job

KEPT = 4096
AT_ONCE = 2  # an encoder has two threads of its own
WAIT_SECONDS = 20.0  # for one's turn


@dataclass
class Made:
    """What was made, by job and name; what was forgotten is made again, with the same content."""

    site: Site
    _keys: OrderedDict[tuple[str, str], ArtifactKey] = field(
        default_factory=OrderedDict[tuple[str, str], ArtifactKey]
    )
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _busy: dict[tuple[str, str], threading.Lock] = field(default_factory=dict[tuple[str, str], threading.Lock])
    wait_seconds: float = WAIT_SECONDS
    _room: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(AT_ONCE))

    def get(self, job_id: str, name: str, suffix: str, make: Callable[[], bytes]) -> ArtifactKey:
        """The artifact of that name, made if need be.

        Raises JobNotFound, BackendUnavailable while too much is being made, and what `make` raises.
        """
        asked = job_id, name
        with self._lock:
            busy = self._busy.setdefault(asked, threading.Lock())
        with self._turn(busy):
            try:
                known = self._known(asked)
                if known is None:
                    known = self._keep(job_id, self.passing(make), suffix)
                    self._remember(asked, known)
                return known
            finally:
                with self._lock:
                    self._busy.pop(asked, None)

    def passing(self, make: Callable[[], bytes]) -> bytes:
        """What nobody keeps, made in its turn. Raises BackendUnavailable while too much is being made."""
        with self._turn(self._room):
            return make()

    @contextlib.contextmanager
    def _turn(self, free: threading.Lock | threading.Semaphore) -> Generator[None]:
        if not free.acquire(timeout=self.wait_seconds):
            said = "too many files are being made for others: ask again"
            raise BackendUnavailable(said, retry_after_seconds=self.wait_seconds)
        try:
            yield
        finally:
            free.release()

    def _known(self, asked: tuple[str, str]) -> ArtifactKey | None:
        key = self._keys.get(asked)
        if key is None:
            return None
        try:
            self.site.artifacts.path(key)
        except ArtifactMissing:
            return None
        return key

    def _remember(self, asked: tuple[str, str], key: ArtifactKey) -> None:
        with self._lock:
            self._keys[asked] = key
            while len(self._keys) > KEPT:
                self._keys.popitem(last=False)

    def _keep(self, job_id: str, data: bytes, suffix: str) -> ArtifactKey:
        """On the books before it is on the disk, so that it goes with its job."""
        database = self.site.database
        with database.write() as connection:
            require_job(connection, job_id, database.where)
            references.hold(connection, job_id, key_of(data, suffix))
        return self.site.artifacts.put(data, suffix)


def clip(site: Site, attempt: Attempt) -> bytes:
    """What was judged of an attempt, or all that was rendered, for browsers. Raises ValueError if nothing was."""
    footage = attempt.candidate or (whole(attempt.clip) if attempt.clip else None)
    if footage is None:
        raise ValueError("nothing was rendered")
    with tempfile.TemporaryDirectory(dir=make_folder(site.scratch)) as folder:
        path = Path(folder) / "clip.mp4"
        browser_clip(footage, FrameReader(site.artifacts), path)
        return path.read_bytes()


def sheet(site: Site, trajectory: Trajectory) -> bytes:
    """The contact sheet as PNG."""
    return contact_sheet(trajectory, FrameReader(site.artifacts))


def best_footage(trajectory: Trajectory) -> Footage | None:
    """What a job that did not come to its end has to show: its steps so far, else its best attempt."""
    shown = Footage()
    for step in trajectory.steps:
        shown = join(shown, step.footage)
    if shown.segments:
        return shown
    rendered = [each for step in steps_of(trajectory) for each in step.attempts if each.candidate is not None]
    return max(rendered, key=rank).candidate if rendered else None


def best_video(site: Site, trajectory: Trajectory, footage: Footage) -> bytes:
    """The same as a deliverable would be: from the first picture, at the picture's own size."""
    from media.editor import VideoEditor  # brings scipy, which the API starts without

    policy, reader = trajectory.policy, FrameReader(site.artifacts)
    editor = VideoEditor(site.artifacts, reader, scratch=site.scratch)
    video = editor.deliver(
        join(still(trajectory.first_frame, footage.segments[0].fps), footage),
        policy.canvas,
        trajectory.task.size,
        long_side_max=policy.deliver_long_side_max,
    )
    return site.artifacts.read(video.artifact)


def steps_of(trajectory: Trajectory) -> list[Step]:
    """The gate, if any, and all steps."""
    return [*([trajectory.gate] if trajectory.gate else []), *trajectory.steps]
