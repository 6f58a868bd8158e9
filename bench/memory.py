"""How much memory this process and its children hold at most, sampled (Linux; elsewhere the process alone)."""

from __future__ import annotations

import resource
import sys
import threading
from pathlib import Path
from types import TracebackType

PROC = Path("/proc")
MIB = 1024.0 * 1024.0
INTERVAL_SECONDS = 0.01


class PeakMemory:
    """A context that samples resident memory; `mib` afterwards is the highest sum seen.

    A child is counted once it runs its own program: between fork and exec it shows its parent's pages.
    """

    def __init__(self) -> None:
        self.mib = 0.0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> PeakMemory:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while True:
            self.mib = max(self.mib, _resident_mib())
            if self._done.wait(INTERVAL_SECONDS):
                return


def _resident_mib() -> float:
    own = PROC / "self"
    if not own.exists():
        scale = MIB if sys.platform == "darwin" else 1024.0
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / scale
    program = (own / "exe").readlink()
    total = _resident(own)
    for task in (own / "task").iterdir():
        for child in _children(task):
            if _program(child) not in (None, program):
                total += _resident(child)
    return total / MIB


def _children(task: Path) -> list[Path]:
    try:
        return [PROC / pid for pid in (task / "children").read_text().split()]
    except OSError:  # the thread has ended
        return []


def _program(process: Path) -> Path | None:
    try:
        return (process / "exe").readlink()
    except OSError:  # the process has ended
        return None


def _resident(process: Path) -> float:
    """Bytes of resident memory; 0 for a process that has ended."""
    try:
        return int((process / "statm").read_text().split()[1]) * float(resource.getpagesize())
    except (OSError, IndexError):
        return 0.0
