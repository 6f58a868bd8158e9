"""A running `cliploop up` as chaos meets it: its processes by role, its jobs, its log. Linux only.

It reads the truth through `cliploop.site`, and touches the service only by signals and by what clients can do.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, cast

from redis import Redis
from sqlalchemy import select

from cliploop.choosing import Wanted
from cliploop.compose import Composition
from cliploop.site import Addresses, Site
from media.pictures import encode_png
from orchestrator.errors import BackendUnavailable, CliploopError
from orchestrator.records import Size, Task
from storage.jobs import FINAL_STATES, JobState, load_job
from storage.journal import Entry, read_entries
from storage.submissions import Request, submit
from storage.tables import LeaseRow
from worlds.catalog import load
from worlds.sampling import sample

ROOT = Path(__file__).resolve().parent.parent
ROLES = {
    "broker": b"valkey-server",
    "reason": b"worker\0reason",
    "render": b"worker\0render",
    "api": b"cliploop.cli\0serve",
}
START_SECONDS = 30.0
END_SECONDS = 180.0
STOP_SECONDS = 15.0


class TookTooLongHere(CliploopError):
    """What a scenario waits for did not happen."""


class Service:
    """One data folder and the processes on it. `log` is what they all said."""

    def __init__(self, folder: Path) -> None:
        self.data = folder / "data"
        self.log = folder / "service.log"
        self._composition = Composition.read(None, {}, folder)
        self._up: subprocess.Popen[bytes] | None = None
        self._more: list[subprocess.Popen[bytes]] = []
        self._site: Site | None = None

    @property
    def site(self) -> Site:
        assert self._site is not None
        return self._site

    def start(self) -> None:
        """Start it and wait until its workers can take messages."""
        self._up = self._process("up", "--port", "0", "--data", str(self.data))
        until(lambda: all(self.pids(role) for role in ("broker", "reason", "render")), START_SECONDS)
        if self._site is None:
            self._site = Site.opened(Addresses(self.data, self._broker), self._composition)
        until(self._serves, START_SECONDS, "the broker")

    def _serves(self) -> bool:
        try:
            self.site.messages.ping()
        except CliploopError:
            return False
        return True

    @property
    def _broker(self) -> str:
        return f"unix://{self.data.absolute() / 'broker' / 'valkey.sock'}"

    def add_render_worker(self, generator: str = "simulated") -> int:
        """One more, beside the service's own; its pid."""
        addresses = Addresses(self.data, self._broker)
        words = ("worker", "render", "--generator", generator)
        self._more.append(self._process(*words, **addresses.environment()))
        return self._more[-1].pid

    def add_api(self) -> str:
        """One more API process, beside the service's own; its address."""
        known = self.addresses()
        environment = Addresses(self.data, self._broker).environment()
        self._more.append(self._process("serve", "--port", "0", **environment))
        until(lambda: len(self.addresses()) > len(known), START_SECONDS, "a second API")
        return self.addresses()[-1]

    def own_address(self) -> str:
        """Where the service's own API listens; "" until it said so."""
        said = re.findall(r"listens on (http://[^\s,]+), .* \(Ctrl-C", self.log.read_text(errors="replace"))
        return said[-1] if said else ""

    def addresses(self) -> list[str]:
        """Where the APIs said that they listen, the latest last."""
        return re.findall(r"listens on (http://[^\s,]+)", self.log.read_text(errors="replace"))

    def end_more(self) -> None:
        """End the workers that were added."""
        for process in self._more:
            _end(process)
        self._more.clear()

    def stop(self) -> None:
        """As a user does, by SIGTERM; what is left is killed."""
        self.end_more()
        if self._up is not None:
            _end(self._up)
        if self._site is not None:
            self._site.close()

    def kill_all(self) -> None:
        """SIGKILL to every process at once."""
        assert self._up is not None
        for pid in [self._up.pid, *(pid for role in ROLES for pid in self.pids(role))]:
            kill(pid, signal.SIGKILL)
        self._up.wait()

    def flush_broker(self) -> None:
        """FLUSHALL: every message is lost."""
        with contextlib.closing(cast("Any", Redis).from_url(self._broker)) as redis:
            redis.flushall()

    def holder(self, prefix: str) -> str:
        """Who holds a lease whose name begins so; "" if nobody does."""
        with self.site.database.read() as connection:
            begins = LeaseRow.name.startswith(prefix, autoescape=True), LeaseRow.holder != ""
            return connection.execute(select(LeaseRow.holder).where(*begins).limit(1)).scalar() or ""

    def can_write(self) -> bool:
        """Whether no process is in the middle of a write."""
        with contextlib.closing(sqlite3.connect(self.data / "cliploop.sqlite", timeout=0.2)) as connection:
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                return False
            return True

    def pids(self, role: str) -> list[int]:
        """The service's own processes of a role."""
        assert self._up is not None
        return [pid for pid in _children(self._up.pid) if ROLES[role] in _command_line(pid)]

    def submit(self, seed: int, *, generator: str = "simulated", send: bool = True) -> str:
        """A small maze; its id. `send`: a worker is told of it at once."""
        task = sample(load("maze"), "easy", seed, side_px=128)
        picture = self.site.artifacts.put(encode_png(task.frame), ".png")
        height, width = task.frame.shape[:2]
        asked = Task(prompt=task.prompt, picture=picture, size=Size(width=width, height=height))
        wanted = Wanted(generator=generator, max_steps=6, seed=seed)
        policy = self._composition.policy(wanted, asked.size)
        job_id = f"job-{secrets.token_hex(4)}"
        submit(self.site.database, job_id, asked, policy, Request("", "default"))
        if send:
            with contextlib.suppress(BackendUnavailable):  # the job is stored: the reaper sends it
                self.site.messages.advance(job_id)
        return job_id

    def state(self, job_id: str) -> JobState:
        return load_job(self.site.database, job_id).state

    def entries(self, job_id: str) -> list[Entry]:
        return read_entries(self.site.database, job_id)

    def mezzanines(self, job_id: str) -> dict[str, str]:
        """Key of a clip's entry -> key of its lossless file, which is a hash of its bytes."""
        clips = [entry for entry in self.entries(job_id) if entry.key.endswith("/clip")]
        return {clip.key: clip.value["clip"]["mezzanine"] for clip in clips if clip.kind == "record"}

    def ended(self, job_id: str, seconds: float = END_SECONDS) -> JobState:
        """Wait for it. Raises TookTooLongHere."""
        until(lambda: self.state(job_id).state in FINAL_STATES, seconds, f"the end of {job_id}")
        return self.state(job_id)

    def begun(self, job_id: str) -> int:
        """How many renders of clips of this job have begun, whatever became of them."""
        return self.said(f"job {job_id}: step")

    def renders(self, job_id: str) -> bool:
        """Whether a render has begun that is not recorded yet."""
        clips = [entry for entry in self.entries(job_id) if entry.key.endswith("/clip")]
        return self.begun(job_id) > len(clips)

    def said(self, words: str) -> int:
        """How many lines of the log have these words."""
        return sum(words in line for line in self.log.read_text(errors="replace").splitlines())

    def _process(self, *words: str, **environment: str) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "cliploop.cli", *words],
                env={"PATH": os.defpath, "PYTHONPATH": str(ROOT), **environment},  # nobody's settings
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )


@contextlib.contextmanager
def running(folder: Path) -> Generator[Service]:
    """A new service in the folder, while the block runs."""
    service = Service(folder)
    try:
        service.start()
        yield service
    finally:
        service.stop()


def until(true: Callable[[], bool], seconds: float, what: str = "it") -> None:
    """Look every 2 ms. Raises TookTooLongHere."""
    limit = time.monotonic() + seconds
    while not true():
        if time.monotonic() > limit:
            raise TookTooLongHere(f"waited {seconds:g} s for {what}")
        time.sleep(0.002)


def kill(pid: int, number: int) -> None:
    """Send a signal; a process that has ended meanwhile is no error."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _children(parent: int) -> list[int]:
    try:
        return list(map(int, Path(f"/proc/{parent}/task/{parent}/children").read_text().split()))
    except OSError:
        return []


def _command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
