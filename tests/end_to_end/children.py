"""The command line in children of a fork server: real processes with real signals, limits and users, cheaply.

The product is imported once, so that a child also runs where its user could not read the checkout.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import resource
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cliploop.cli import invoke
from cliploop.commands import doctor, generators, report, run, samples, trajectory, worlds
from tests.cliploop.commandline import Said

IMPORTED = (doctor, generators, report, run, samples, trajectory, worlds)
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["tests.end_to_end.warm"])
NOBODY = 65534


@dataclass(frozen=True)
class Limits:
    """What the child may not do: write a file larger than that, or be root."""

    file_bytes: int | None = None
    unprivileged: bool = False


def _body(words: tuple[str, ...], cwd: Path, out: Path, err: Path, limits: Limits) -> None:
    for path, number in ((out, 1), (err, 2)):
        os.dup2(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC), number)
    sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
    os.chdir(cwd)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # also where the tests themselves run under nohup
    for name in [name for name in os.environ if name.startswith("CLIPLOOP_")]:
        del os.environ[name]
    if limits.unprivileged and os.getuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    if limits.file_bytes is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limits.file_bytes, limits.file_bytes))
    code = invoke(words)
    with contextlib.suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


@dataclass(frozen=True)
class Child:
    """A command that is running."""

    process: Any
    out: Path
    err: Path

    @classmethod
    def start(cls, *words: str, cwd: Path, scratch: Path, limits: Limits = Limits()) -> Child:
        """Begin; what it says goes to files in `scratch`."""
        number = len(list(scratch.iterdir()))
        out, err = scratch / f"{number}.out", scratch / f"{number}.err"
        out.touch()
        err.touch()
        process = CONTEXT.Process(target=_body, args=(words, cwd, out, err, limits))
        process.start()
        return cls(process, out, err)

    def wait_for(self, sign: str, seconds: float = 300.0) -> None:
        """Until it says that, on standard output or on standard error."""
        limit = time.monotonic() + seconds
        while sign not in self.out.read_text() + self.err.read_text():
            assert self.process.is_alive(), f"ended early: {self.out.read_text()}{self.err.read_text()}"
            assert time.monotonic() < limit, self.out.read_text()
            time.sleep(0.005)

    def send(self, number: signal.Signals) -> None:
        """A real signal."""
        os.kill(self.process.pid, number)

    def end(self, seconds: float = 300.0) -> Said:
        """Wait for it."""
        self.process.join(seconds)
        assert not self.process.is_alive(), "the child did not end"
        return Said(int(self.process.exitcode), self.out.read_text(), self.err.read_text())


def command(*words: str, cwd: Path, scratch: Path, limits: Limits = Limits()) -> Said:
    """Run to the end."""
    return Child.start(*words, cwd=cwd, scratch=scratch, limits=limits).end()
