"""`cliploop worker alive`: whether a worker of this machine lives. Run every few seconds, it imports little."""

from __future__ import annotations

import contextlib
import os
from typing import Any, cast

from redis import Redis
from redis.exceptions import RedisError

from cliploop.commands.boundary import guarded
from cliploop.terminal import Terminal
from orchestrator.errors import BackendMisconfigured, BackendUnavailable
from storage.beats import living, machine

ANSWER_SECONDS = 5.0


def alive_command(terminal: Terminal) -> int:
    """Say which workers of this machine live; exit 1 if none does, or if the broker is away."""

    def look() -> int:
        found = [name for name in _living() if f"@{machine()}:" in name]
        if not found:
            raise BackendUnavailable(f"no worker of this machine ({machine()}) has said lately that it lives")
        terminal.say(f"alive: {', '.join(found)}", whole=True)
        return 0

    return guarded(terminal, look)


def _living() -> list[str]:
    url = os.environ.get("CLIPLOOP_REDIS_URL", "")
    if not url:
        raise BackendMisconfigured("there is no broker to ask: set CLIPLOOP_REDIS_URL as the worker has it")
    try:
        waits = {"socket_connect_timeout": ANSWER_SECONDS, "socket_timeout": ANSWER_SECONDS}
        with contextlib.closing(cast("Any", Redis).from_url(url, **waits)) as redis:
            return living(redis)
    except ValueError as error:
        raise BackendMisconfigured("CLIPLOOP_REDIS_URL cannot be read: write redis://host:6379/0") from error
    except (RedisError, OSError) as error:
        raise BackendUnavailable(f"the broker cannot be reached ({error}): is it running?") from error
