"""A worker's sign of life: noted in the broker every few seconds, so that a health check can ask for it.

It says that the process runs and reaches the broker, not that a call of a backend will end: that has its own
limit.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Sequence

from orchestrator.errors import BackendUnavailable
from storage.beats import KEPT_SECONDS
from storage.queue import Messages
from storage.rounds import rounds


@contextlib.contextmanager
def beating(
    messages: Messages, name: str, *, generators: Sequence[str] = (), seconds: float = KEPT_SECONDS / 4
) -> Generator[None]:
    """Note it now and so often while the block runs. `generators`: those whose clips it renders."""
    try:
        with rounds("pulse", lambda: messages.beat(name, generators), seconds):
            yield
    finally:
        with contextlib.suppress(BackendUnavailable):
            messages.forget_beat(name)
