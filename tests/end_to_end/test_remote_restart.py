"""A worker that dies while a clip renders elsewhere: the same render is polled after it, nothing is paid twice.

Real worker processes, real signals; the vendors' servers count what was submitted.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from cliploop.site import Addresses, Site
from storage.jobs import JobState, load_job
from storage.journal import read_entries
from storage.submissions import cancel, take_up
from tests.generators.loopback import Reply, served
from tests.generators.veo_server import VeoServer
from tests.generators.videos_server import VideosServer
from tests.storage.jobs_for_tests import ROOT
from tests.workers.sites import a_site, submitted
from workers.desk import Desk
from workers.reason import advance

pytestmark = pytest.mark.slow
CLIP = "step/1/attempt/1/clip"
FAR = "far"


@dataclass
class Far:
    """A site whose only generator is elsewhere, and render workers for it."""

    site: Site
    folder: Path
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list[subprocess.Popen[bytes]])

    def submitted(self) -> str:
        """One render of a small maze, sent to the workers."""
        job_id = submitted(self.site, generator=FAR, strategy="pass@1")
        advance(Desk(self.site, "tester"), job_id)
        return job_id

    def worker(self) -> subprocess.Popen[bytes]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("CLIPLOOP_")}
        redis: Any = self.site.messages._redis
        broker = f"unix://{redis.connection_pool.connection_kwargs['path']}"
        named = Addresses(self.folder / "data", broker).environment()
        keys = {"GEMINI_API_KEY": "g-1", "OPENAI_API_KEY": "sk-1"}
        command = [sys.executable, "-m", "cliploop.cli", "worker", "render", "--generator", FAR]
        started = subprocess.Popen(
            command,
            env={**kept, **named, **keys, "PYTHONPATH": str(ROOT)},
            cwd=self.folder,
            stderr=subprocess.PIPE,
        )
        self.workers.append(started)
        return started

    def killed(self, worker: subprocess.Popen[bytes], job_id: str) -> None:
        """SIGKILL; its lease runs out at once, so that nobody has to wait for that."""
        worker.kill()
        worker.communicate()
        with self.site.database.write() as connection:
            connection.exec_driver_sql("UPDATE leases SET expires_at = 0")
        advance(Desk(self.site, "tester"), job_id)

    def keys(self, job_id: str) -> list[str]:
        """What is recorded of the clip, its own entry included."""
        found = [entry.key for entry in read_entries(self.site.database, job_id)]
        return [key.removeprefix(f"{CLIP}/") for key in found if key.startswith(CLIP)]

    def state(self, job_id: str) -> JobState:
        return load_job(self.site.database, job_id).state

    def finished(self, job_id: str) -> None:
        """Once the clip is there, the rest of the job."""
        until(lambda: CLIP in self.keys(job_id))

        def succeeded() -> bool:  # not at once where the worker still has the clip's check in hand
            advance(Desk(self.site, "tester"), job_id)
            return self.state(job_id).state == "succeeded"

        until(succeeded)


def until(true: Callable[[], bool], seconds: float = 60.0) -> None:
    limit = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < limit
        time.sleep(0.01)


@contextlib.contextmanager
def far(folder: Path, generator: str, policy: str = "resubmit") -> Generator[Far]:
    """A site with this generator; its workers end with the block."""
    settings = f'[defaults]\nsubmit_unknown = "{policy}"\n\n[generators.{FAR}]\n{generator}\n'
    (folder / "cliploop.toml").write_text(settings)
    with a_site(folder) as site:
        place = Far(site, folder)
        try:
            yield place
        finally:
            for worker in place.workers:
                if worker.poll() is None:
                    worker.kill()
                    worker.communicate()


@pytest.fixture
def videos() -> VideosServer:
    return VideosServer(never_done=True)


@pytest.fixture
def settings(videos: VideosServer) -> Iterator[str]:
    """Of a generator on that server."""
    with served(videos) as address:
        yield f'type = "openai_videos"\nbase_url = "{address}/v1"\nmax_frames = 17'


def test_a_killed_workers_remote_render_is_polled_by_the_next(
    tmp_path: Path, videos: VideosServer, settings: str
) -> None:
    with far(tmp_path, settings) as place:
        job_id = place.submitted()
        first = place.worker()
        until(lambda: "token/1" in place.keys(job_id))
        place.killed(first, job_id)
        videos.never_done = False
        place.worker()
        place.finished(job_id)
        assert place.keys(job_id) == ["submitting/1", "token/1", CLIP]
    assert videos.count("create") == 1
    assert {request.path.split("/")[3] for what, request in videos.asked if what != "create"} == {"video_1"}


def test_a_killed_workers_veo_operation_is_polled_and_not_paid_twice(tmp_path: Path) -> None:
    server = VeoServer(never_done=True, shrink=4)
    with served(server) as address:
        given = f'type = "veo"\nbase_url = "{address}"\npoll_seconds = 0.05'
        with far(tmp_path, given) as place:
            job_id = place.submitted()
            first = place.worker()
            until(lambda: "token/1" in place.keys(job_id))
            place.killed(first, job_id)
            server.never_done = False
            place.worker()
            place.finished(job_id)
    assert server.count("submit") == 1
    assert len({request.path for what, request in server.asked if what == "look"}) == 1


def test_killed_before_the_id_came_it_is_submitted_again_and_the_doubt_is_recorded(
    tmp_path: Path, videos: VideosServer, settings: str
) -> None:
    held = threading.Event()
    videos.loses = [held]
    with far(tmp_path, settings) as place:
        job_id = place.submitted()
        first = place.worker()
        until(lambda: len(videos.jobs) == 1)
        place.killed(first, job_id)
        held.set()
        videos.never_done = False
        place.worker()
        place.finished(job_id)
        assert place.keys(job_id) == ["submitting/1", "submit_unknown/1", "submitting/2", "token/1", CLIP]
    assert videos.count("create") == 2


def test_or_by_policy_somebody_is_asked_first(tmp_path: Path, videos: VideosServer, settings: str) -> None:
    held = threading.Event()
    videos.loses = [held]
    with far(tmp_path, settings, policy="wait") as place:
        job_id = place.submitted()
        first = place.worker()
        until(lambda: len(videos.jobs) == 1)
        place.killed(first, job_id)
        held.set()
        videos.never_done = False
        place.worker()
        until(lambda: place.state(job_id).state == "waiting")
        assert "charged already" in place.state(job_id).message
        assert videos.count("create") == 1
        take_up(place.site.database, job_id)
        advance(Desk(place.site, "tester"), job_id)
        place.finished(job_id)
    assert videos.count("create") == 2


def test_nothing_of_a_half_download_is_kept(tmp_path: Path, videos: VideosServer, settings: str) -> None:
    held = threading.Event()
    videos.never_done = False
    videos.faults["load"] = [Reply(200, bytes(5000), {"content-type": "video/mp4"}, claims=90_000, holds=held)]
    with far(tmp_path, settings) as place:
        job_id = place.submitted()
        before = files(tmp_path / "data")
        first = place.worker()
        until(lambda: videos.count("load") == 1)
        place.killed(first, job_id)
        held.set()
        assert files(tmp_path / "data") == before
        place.worker()
        place.finished(job_id)
    assert (videos.count("create"), videos.count("load")) == (1, 2)


def files(folder: Path) -> set[str]:
    """Artifacts and what is being made of one."""
    return {str(path) for path in folder.rglob("*") if path.is_file() and "cliploop.db" not in path.name}


def test_a_worker_that_is_asked_to_end_leaves_the_remote_render_alone(
    tmp_path: Path, videos: VideosServer, settings: str
) -> None:
    with far(tmp_path, settings) as place:
        job_id = place.submitted()
        first = place.worker()
        until(lambda: videos.count("look") > 1)
        first.send_signal(signal.SIGTERM)
        assert first.communicate(timeout=20)[1] is not None
        assert first.returncode == 0
        assert (videos.count("delete"), len(videos.jobs)) == (0, 1)
        videos.never_done = False
        advance(Desk(place.site, "tester"), job_id)
        place.worker()
        place.finished(job_id)
    assert videos.count("create") == 1


def test_a_cancelled_job_cancels_the_remote_render(tmp_path: Path, videos: VideosServer, settings: str) -> None:
    with far(tmp_path, settings) as place:
        job_id = place.submitted()
        place.worker()
        until(lambda: videos.count("look") > 1)
        cancel(place.site.database, job_id, None)
        until(lambda: videos.jobs == {})
        until(lambda: bool(place.site.messages.waiting()))  # the worker says that it has stopped
        advance(Desk(place.site, "tester"), job_id)
        until(lambda: place.state(job_id).state == "cancelled")
    assert videos.count("create") == 1
