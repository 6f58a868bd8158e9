"""The processes that `bench.load` measures: broker, API and workers on a folder of their own. Linux only.

It starts, stops and watches them; it knows nothing of what is measured.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from cliploop.compose import Composition
from cliploop.site import Addresses, Site
from media.pictures import encode_png
from orchestrator.errors import CliploopError
from storage.broker import embedded
from storage.jobs import IllegalState
from storage.submissions import cancel, unfinished
from worlds.catalog import load
from worlds.sampling import sample

ROOT = Path(__file__).resolve().parent.parent
START_SECONDS = 30.0
STOP_SECONDS = 10.0
TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Elsewhere:
    """Servers that are there already; None = embedded, in the folder."""

    redis_url: str | None = None
    database_url: str | None = None


@dataclass
class Service:
    """One service. `marks` is where the slow generator notes its renders, `log` what all processes said."""

    folder: Path
    addresses: Addresses
    site: Site
    address: str = ""  # of the API, as host:port
    _processes: dict[str, list[subprocess.Popen[bytes]]] = field(
        default_factory=dict[str, list[subprocess.Popen[bytes]]]
    )

    @property
    def marks(self) -> Path:
        return self.folder / "marks"

    @property
    def log(self) -> Path:
        return self.folder / "service.log"

    def start_api(self) -> None:
        """Start it and wait until it answers."""
        self._start("api", "serve", "--port", "0")
        _until(lambda: bool(self._listens()), START_SECONDS, "the API", self.log)
        self.address = self._listens()
        _until(lambda: self.get("/healthz")[0] == 200, START_SECONDS, "the API to be ready", self.log)

    def start_workers(self, num_reason: int = 1, num_render: int = 1) -> None:
        """Start them; they are ready when their first message has been taken."""
        for _ in range(num_reason):
            self._start("reason", "worker", "reason")
        for _ in range(num_render):
            self._start("render", "worker", "render", "--generator", "slow")

    def pids(self, role: str) -> list[int]:
        """Those of api, reason or render."""
        return [process.pid for process in self._processes.get(role, ())]

    def get(self, path: str) -> tuple[int, bytes]:
        """One request of its own; (0, b"") while nobody listens."""
        with contextlib.closing(http.client.HTTPConnection(self.address, timeout=30)) as connection:
            try:
                connection.request("GET", path)
                answer = connection.getresponse()
                return answer.status, answer.read()
            except OSError:
                return 0, b""

    def stop(self) -> None:
        """End all processes, and cancel what they left: others may share the database."""
        running = [process for processes in self._processes.values() for process in processes]
        for process in running:
            process.terminate()
        limit = time.monotonic() + STOP_SECONDS
        for process in running:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.1, limit - time.monotonic()))
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                process.wait()
        for job_id in unfinished(self.site.database):
            with contextlib.suppress(IllegalState):
                cancel(self.site.database, job_id, None)

    def _listens(self) -> str:
        said = re.findall(r"listens on http://([^\s,]+)", self.log.read_text(errors="replace"))
        return said[-1] if said else ""

    def _start(self, role: str, *words: str) -> None:
        environment = {"PATH": os.defpath, "PYTHONPATH": str(ROOT), **self.addresses.environment()}
        environment["CLIPLOOP_CONFIG"] = str(self.folder / "cliploop.toml")
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "cliploop.cli", *words],
                env=environment,  # nobody's settings
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self._processes.setdefault(role, []).append(process)


@contextlib.contextmanager
def running(folder: Path, settings: str, elsewhere: Elsewhere) -> Generator[Service]:
    """Broker, database and API in a new folder while the block runs; workers when they are asked for.

    `settings` is cliploop.toml, in which `{marks}` stands for the file of the generator's marks.
    """
    folder.mkdir()
    (folder / "cliploop.toml").write_text(settings.replace("{marks}", str(folder / "marks")))
    with contextlib.ExitStack() as stack:
        redis = elsewhere.redis_url or stack.enter_context(embedded(folder / "broker"))
        addresses = Addresses(folder / "data", redis, elsewhere.database_url)
        composition = Composition.read(folder / "cliploop.toml", {}, folder)
        service = Service(folder, addresses, stack.enter_context(Site.opened(addresses, composition)))
        service.log.touch()
        service.marks.touch()
        stack.callback(service.stop)
        service.start_api()
        yield service


@dataclass(frozen=True)
class Caller:
    """A client that connects anew for every request, as command line tools do."""

    address: str

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """The answer's JSON. Raises CliploopError unless it is one of success."""
        status, said = self._asked("POST", path, json.dumps(body))
        if status >= 400:
            raise CliploopError(f"POST {path}: {status} {said[:300].decode(errors='replace')}")
        return json.loads(said)

    def submit(self, body: Mapping[str, Any]) -> str:
        """The new job's id."""
        return str(self.post("/v1/jobs", body)["id"])

    def delete(self, path: str) -> int:
        """The answer's status."""
        return self._asked("DELETE", path)[0]

    def _asked(self, method: str, path: str, body: str | None = None) -> tuple[int, bytes]:
        with contextlib.closing(http.client.HTTPConnection(self.address, timeout=60)) as connection:
            connection.request(method, path, body, {"Content-Type": "application/json", "Connection": "close"})
            answer = connection.getresponse()
            return answer.status, answer.read()


def submission(seed: int, width: int, height: int, **more: Any) -> dict[str, Any]:
    """A maze in the middle of a picture of that size, as the body of a request."""
    task = sample(load("maze"), "easy", seed, side_px=min(width, height))
    drawn_height, drawn_width = task.frame.shape[:2]
    picture = np.empty((height, width, 3), dtype=np.uint8)
    picture[:] = task.frame[0, 0]
    top, left = (height - drawn_height) // 2, (width - drawn_width) // 2
    picture[top : top + drawn_height, left : left + drawn_width] = task.frame
    url = f"data:image/png;base64,{base64.b64encode(encode_png(picture)).decode()}"
    return {"picture": url, "prompt": task.prompt, "seed": seed, **more}


def cpu_seconds(pids: Sequence[int]) -> float:
    """What these processes and the children that they waited for have used so far."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            total += sum(map(int, after_name[11:15]))
    return total / TICKS


def memory_mib(pid: int) -> float:
    """Resident memory."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE / 2**20


def _until(true: Callable[[], bool], seconds: float, what: str, log: Path) -> None:
    limit = time.monotonic() + seconds
    while not true():
        if time.monotonic() > limit:
            raise CliploopError(f"waited {seconds:g} s for {what}; it said: {log.read_text()[-1000:]}")
        time.sleep(0.02)
