"""How many requests each API key made in the last minute: counted in the broker, for all API processes together.

While the broker is away each process counts for itself: a limit is then looser, and no request fails for it.
"""

from __future__ import annotations

import logging
import math
import time
from dataclasses import dataclass
from typing import Any

from limits import RateLimitItem, RateLimitItemPerMinute
from limits.storage import MemoryStorage, RedisStorage
from limits.strategies import FixedWindowRateLimiter, MovingWindowRateLimiter
from redis.exceptions import RedisError

from storage.queue import Messages

ANSWER_SECONDS = 1.0  # counting is worth no longer wait
ALONE_SECONDS = 5.0  # between looks for a broker that is away
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TooFast:
    """A request too many. `retry_after_seconds`: until the next one is let through."""

    per_minute: int
    retry_after_seconds: int


class Pace:
    """Counts requests; safe for threads."""

    def __init__(self, messages: Messages) -> None:
        storage: Any = RedisStorage(
            "redis://", connection_pool=messages.pool(ANSWER_SECONDS), key_prefix="cliploop:pace"
        )
        self._shared = MovingWindowRateLimiter(storage)
        self._own = MovingWindowRateLimiter(MemoryStorage())
        self._failures = FixedWindowRateLimiter(MemoryStorage())
        self._alone_until = 0.0

    def asked(self, who: str, per_minute: int) -> TooFast | None:
        """Count one request; None if it may pass."""
        limit = RateLimitItemPerMinute(per_minute)
        if time.monotonic() >= self._alone_until:
            try:
                return _hit(self._shared, limit, who)
            except (RedisError, OSError) as error:
                _log.warning("requests are counted by each process alone: the broker is away (%s)", error)
                self._alone_until = time.monotonic() + ALONE_SECONDS
        return _hit(self._own, limit, who)

    def failed(self, address: str, per_minute: int) -> TooFast | None:
        """Count a wrong key from that address, in this process alone; None if the address may try more."""
        return _hit(self._failures, RateLimitItemPerMinute(per_minute), address)


def _hit(
    counted: MovingWindowRateLimiter | FixedWindowRateLimiter, limit: RateLimitItem, who: str
) -> TooFast | None:
    if counted.hit(limit, who):
        return None
    again = counted.get_window_stats(limit, who).reset_time - time.time()
    return TooFast(limit.amount, min(60, max(1, math.ceil(again))))
