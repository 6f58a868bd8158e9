"""Child processes kept alive: started, started again when they end, stopped together. It knows no roles."""

from __future__ import annotations

import contextlib
import logging
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

FIRST_PAUSE_SECONDS = 0.2
LONGEST_PAUSE_SECONDS = 30.0
STEADY_SECONDS = 10.0  # a child that lived this long is started again at once
MISCONFIGURED = 2  # the exit code of a command whose configuration is wrong
_log = logging.getLogger(__name__)


@dataclass
class Child:
    """One process, by the words of its command line. `name` is for people."""

    name: str
    words: Sequence[str]
    environment: Mapping[str, str]
    inherited: tuple[int, ...] = ()  # file descriptors
    process: subprocess.Popen[bytes] | None = field(default=None, init=False)
    is_refused: bool = field(default=False, init=False)  # its first start said that the configuration is wrong
    _steady: bool = field(default=False, init=False)
    _started: float = field(default=0.0, init=False)
    _due: float = field(default=0.0, init=False)
    _failures: int = field(default=0, init=False)

    def keep_alive(self) -> None:
        """Start it if it does not run and its pause is over. Call it often."""
        now = time.monotonic()
        if self.process is not None:
            code = self.process.poll()
            if code is None:
                return
            self.process = None
            self._steady |= now - self._started > STEADY_SECONDS
            self.is_refused = code == MISCONFIGURED and not self._steady
            self._failures = 0 if now - self._started > STEADY_SECONDS else self._failures + 1
            pause = pause_after(self._failures)
            self._due = now + pause
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
            _log.warning("the %s ended (%s); it is started again in %.1f s", self.name, how, pause)
        if now >= self._due:
            self._started = now
            try:
                self.process = self._begun()
            except OSError as error:  # no memory, processes or files left just now: this one must go on
                self._failures += 1
                self._due = now + pause_after(self._failures)
                _log.warning("the %s could not be started, and is tried again: %s", self.name, error)

    def _begun(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "cliploop.cli", *self.words],
            env=dict(self.environment),
            stdin=subprocess.DEVNULL,
            pass_fds=self.inherited,
            start_new_session=True,  # a terminal's Ctrl-C is for the parent, which stops its children
        )


def pause_after(failures: int) -> float:
    """0.2 s, 0.4 s, … at most 30 s."""
    return min(FIRST_PAUSE_SECONDS * 2.0 ** max(0, failures - 1), LONGEST_PAUSE_SECONDS)


def stop(children: Sequence[Child], seconds: float) -> None:
    """SIGTERM to all at once; SIGKILL to those that are still there after that time."""
    running = [child.process for child in children if child.process is not None]
    for process in running:
        process.terminate()
    limit = time.monotonic() + seconds
    for process in running:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(max(0.0, limit - time.monotonic()))
        if process.poll() is None:
            process.kill()
            process.wait()
