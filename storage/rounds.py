"""Threads that do the same again and again: whatever goes wrong in a round, the next one comes.

It knows nothing of what is done in a round.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass, field

from orchestrator.errors import CliploopError

_log = logging.getLogger(__name__)


@dataclass
class Trouble:
    """Says what goes wrong once, until it goes wrong in another way, or well. Of one thread."""

    name: str
    _said: str = field(default="", init=False)

    def note(self, error: Exception) -> None:
        """An error of ours in a line; any other is a fault, told with its traceback."""
        says = f"{type(error).__name__}: {error}"
        if says == self._said:
            return
        self._said = says
        if isinstance(error, CliploopError):
            _log.warning("the %s could not do its round, and tries again: %s", self.name, error)
        else:
            _log.error("a fault in the %s, which tries again", self.name, exc_info=error)

    def over(self) -> None:
        """It went well."""
        self._said = ""


@contextlib.contextmanager
def rounds(name: str, go: Callable[[], object], seconds: float, *, first: float = 0.0) -> Generator[None]:
    """A thread that calls `go` now and then while the block runs, `seconds` after the last time ended.

    `first` is the pause before the first time. A number that `go` returns is the next pause instead.
    """
    over, trouble = threading.Event(), Trouble(name)

    def look() -> None:
        pause = first
        while not over.wait(pause):
            pause = seconds
            try:
                wanted = go()
                if isinstance(wanted, float):
                    pause = wanted
                trouble.over()
            except Exception as error:
                trouble.note(error)

    thread = threading.Thread(target=look, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
