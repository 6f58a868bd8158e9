"""Brokers for tests: one that ran for an earlier test is emptied and lent again, for each start takes 0.2 s."""

from __future__ import annotations

import atexit
import contextlib
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any, cast

from redis import Redis
from redis.exceptions import RedisError

from storage.broker import EmbeddedBroker, running_broker

_alive = contextlib.ExitStack()
atexit.register(_alive.close)  # where the process is killed, the kernel ends them
_idle: list[EmbeddedBroker] = []


@contextlib.contextmanager
def lent_broker() -> Generator[str]:
    """An empty broker's URL, which nobody else uses until the block ends."""
    broker = _emptied() or _new()
    try:
        yield broker.url
    finally:
        _idle.append(broker)


def _emptied() -> EmbeddedBroker | None:
    """One that is idle and still runs, with nothing in it."""
    while _idle:
        broker = _idle.pop()
        with contextlib.suppress(RedisError), cast("Any", Redis).from_url(broker.url, socket_timeout=5) as redis:
            redis.flushall()
            return broker
    return None


def _new() -> EmbeddedBroker:
    folder = _alive.enter_context(tempfile.TemporaryDirectory(prefix="cliploop-broker-"))
    return _alive.enter_context(running_broker(Path(folder)))
