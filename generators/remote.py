"""What renders on somebody else's machine share: waiting, and bounded downloads.

Knows no vendor and no vendor's client; what a fault means, `cliploop.vendor_faults` knows.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from orchestrator.errors import BackendFailed, BackendUnavailable, JobCancelled

LOOK_EVERY_SECONDS = 0.1  # how soon a cancelled job is noticed
SHORTEST_POLL_SECONDS, LONGEST_POLL_SECONDS = 0.01, 60.0  # whatever a server says
FIRST_PAUSE_SECONDS = 0.1  # after a failed look; doubled with each
POLLS_FAILED_AT_MOST = 5  # in a row; then the job waits, and is taken up by its token


class RenderFiltered(BackendFailed):
    """A safety filter withheld the render: a counted attempt without a verdict, never a reject."""


class RenderEmpty(BackendFailed):
    """The vendor called the render done and gave no video."""


@dataclass
class Watch:
    """Who watches a render: told how far it is, asked whether to go on. The fraction never falls."""

    progress: Callable[[float], None]
    cancelled: Callable[[], bool]
    fraction: float = 0.0

    def tell(self, fraction: float) -> None:
        """At least what was told before."""
        self.fraction = max(self.fraction, min(1.0, fraction))
        self.progress(self.fraction)

    def stop_if_cancelled(self) -> None:
        """Raises JobCancelled."""
        if self.cancelled():
            raise JobCancelled("the render was cancelled")

    def wait(self, seconds: float) -> None:
        """Sleep, watched: `progress` may raise too, where a worker is to end. Raises JobCancelled."""
        until = time.monotonic() + seconds
        while True:
            self.tell(self.fraction)
            self.stop_if_cancelled()
            left = until - time.monotonic()
            if left <= 0:
                return
            time.sleep(min(left, LOOK_EVERY_SECONDS))


@dataclass(frozen=True)
class Look:
    """One look at a remote render: `value` once it is done; until then when to look again, and how far it is."""

    value: Any = None
    again_seconds: float = 0.0
    fraction: float = 0.0


@dataclass
class Patience:
    """Looks at a remote render until it is done; a few failed looks in a row are no failed render."""

    watch: Watch
    limit_seconds: float
    began: float = field(default_factory=time.monotonic)

    def until_done(self, look: Callable[[], Look]) -> Any:
        """The value. Raises JobCancelled, BackendFailed if late, BackendUnavailable if looks keep failing."""
        failed = 0
        while True:
            try:
                seen = look()
                failed = 0
            except BackendUnavailable as error:
                failed += 1
                if failed > POLLS_FAILED_AT_MOST:
                    raise
                said = error.retry_after_seconds
                seen = Look(again_seconds=FIRST_PAUSE_SECONDS * 2**failed if said is None else said)
            if seen.value is not None:
                return seen.value
            self.watch.tell(seen.fraction)
            if time.monotonic() - self.began > self.limit_seconds:
                raise BackendFailed(
                    f"the remote render was not done after {self.limit_seconds:g} s: raise limit_seconds, or ask"
                    " for fewer frames"
                )
            self.watch.wait(min(max(seen.again_seconds, SHORTEST_POLL_SECONDS), LONGEST_POLL_SECONDS))


class Bounded:
    """A download in memory, never more of it than that; nothing of one that ends early is kept."""

    def __init__(self, limit_bytes: int, watch: Watch) -> None:
        self._data = bytearray()
        self._limit_bytes, self._watch = limit_bytes, watch

    def take(self, piece: bytes) -> None:
        """The next piece. Raises BackendFailed past the limit, JobCancelled."""
        self._data += piece
        if len(self._data) > self._limit_bytes:
            raise BackendFailed(
                f"the video is larger than {self._limit_bytes >> 20} MiB and was not loaded: raise max_mebibytes"
            )
        self._watch.stop_if_cancelled()

    @property
    def whole(self) -> bytes:
        return bytes(self._data)
