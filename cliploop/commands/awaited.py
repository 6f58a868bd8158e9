"""Parts of a service that are away when a process starts are waited for; what repeats is said now and then."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from orchestrator.errors import BackendUnavailable

FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 10.0
AGAIN_SECONDS = 30.0  # between lines that say the same
_LINES_KEPT = 256
_log = logging.getLogger(__name__)

T = TypeVar("T")


def awaited(call: Callable[[], T], pause: Callable[[float], object] = time.sleep) -> T:
    """Call until what it needs answers, with longer and longer pauses. Raises all but BackendUnavailable."""
    seconds = FIRST_PAUSE_SECONDS
    while True:
        try:
            return call()
        except BackendUnavailable as error:
            _log.warning("%s; this process waits for it", error)
        pause(seconds)
        seconds = min(2 * seconds, LONGEST_PAUSE_SECONDS)


class Repeats(logging.Filter):
    """Lets a warning through once, and again at most every so often, with how many were kept back meanwhile."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._said: dict[tuple[str, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the line is said."""
        if record.levelno < logging.WARNING or record.exc_info:
            return True
        line, now = (record.name, record.getMessage()), self._clock()
        said_at, kept_back = self._said.pop(line, (float("-inf"), 0))
        if now - said_at < AGAIN_SECONDS:
            self._said[line] = said_at, kept_back + 1
            return False
        self._said[line] = now, 0
        while len(self._said) > _LINES_KEPT:
            del self._said[next(iter(self._said))]
        if kept_back:
            record.msg, record.args = f"{line[1]} ({kept_back} more times since)", ()
        return True
