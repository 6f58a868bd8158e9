"""Work on uploaded pictures: a few at a time, a large one alone; who waits takes no thread of other requests."""

from __future__ import annotations

import contextlib
import ctypes
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import anyio
from anyio import to_thread

from media import sniff
from media.uploads import Upload, normalise
from orchestrator.errors import BackendUnavailable

P = ParamSpec("P")
T = TypeVar("T")
AT_ONCE = 8  # requests whose picture is fetched, waits to be decoded or is
WAITING = 64  # more are sent away
SMALL_AT_ONCE = 2
LARGE_PIXELS, LARGE_BYTES = 4_000_000, 4 << 20  # from here on one at a time: 50 million pixels are 0.4 GB
RETRY_AFTER_SECONDS = 5.0
_SMALL = threading.BoundedSemaphore(SMALL_AT_ONCE)
_LARGE = threading.BoundedSemaphore(1)


class Desk:
    """Where the requests of one application that hold a picture are worked on, and wait."""

    def __init__(self, at_once: int = AT_ONCE, waiting: int = WAITING) -> None:
        self._limiter = anyio.CapacityLimiter(at_once)
        self._waiting = waiting

    async def work(self, do: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do it in a thread. Raises BackendUnavailable while too many wait, and what it raises."""
        if self._limiter.statistics().tasks_waiting >= self._waiting:
            raise BackendUnavailable(
                "too many pictures are being read: send it again", retry_after_seconds=RETRY_AFTER_SECONDS
            )
        return await to_thread.run_sync(lambda: do(*args, **kwargs), limiter=self._limiter)


def normalised(data: bytes, name: str = "") -> Upload:
    """The picture of an upload, once there is memory for it. Raises TaskRejected."""
    if not _is_large(data):
        with _SMALL:
            return normalise(data, name=name)
    with _LARGE:
        try:
            return normalise(data, name=name)
        finally:
            _give_back()


def _is_large(data: bytes) -> bool:
    kind = sniff.kind(data)
    size = sniff.header_size(data, kind) if kind is not None else None
    return len(data) > LARGE_BYTES or (size is not None and size[0] * size[1] > LARGE_PIXELS)


def _give_back() -> None:
    """Freed memory, to the system: the C library keeps that of each thread for later."""
    with contextlib.suppress(OSError, AttributeError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)
