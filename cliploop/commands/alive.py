"""`cliploop worker alive`: whether a worker of this machine lives. Run every few seconds, it imports little."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from redis import Redis
from redis.exceptions import RedisError

from cliploop.commands.boundary import guarded
from cliploop.terminal import Terminal
from orchestrator.errors import BackendMisconfigured, BackendUnavailable
from storage.beats import living, machine, role_of
from storage.broker import embedded_url

ANSWER_SECONDS = 5.0
USUAL_DATA = "cliploop-data"


def alive_command(role: str | None, data: Path | None, terminal: Terminal) -> int:
    """Say which workers of this machine live, of one role or of any; exit 1 if none does, or no broker answers.

    `data`: the data folder of a `cliploop up`, whose broker is asked.
    """

    def look() -> int:
        living = [name for name in _living(_broker(data, os.environ)) if f"@{machine()}:" in name]
        found = [name for name in living if role in (None, role_of(name))]
        if not found:
            what = f"{role} worker" if role else "worker"
            raise BackendUnavailable(f"no {what} of this machine ({machine()}) has said lately that it lives")
        terminal.say(f"alive: {', '.join(found)}", whole=True)
        return 0

    return guarded(terminal, look)


def _broker(data: Path | None, environ: Mapping[str, str]) -> str:
    """The URL of the broker to ask: of the named folder, of the environment, or of the usual folder."""
    named = "" if data is not None else environ.get("CLIPLOOP_REDIS_URL", "")
    folder = data or Path(environ.get("CLIPLOOP_DATA") or USUAL_DATA)
    url = named or embedded_url(folder / "broker")
    if url:
        return url
    if data is not None:
        raise BackendUnavailable(f"no broker runs for {data}: is `cliploop up` running there?")
    raise BackendMisconfigured(
        "there is no broker to ask: set CLIPLOOP_REDIS_URL as the worker has it, or name the data folder of"
        " `cliploop up` with --data"
    )


def _living(url: str) -> list[str]:
    try:
        waits = {"socket_connect_timeout": ANSWER_SECONDS, "socket_timeout": ANSWER_SECONDS}
        with contextlib.closing(cast("Any", Redis).from_url(url, **waits)) as redis:
            return living(redis)
    except ValueError as error:
        raise BackendMisconfigured("CLIPLOOP_REDIS_URL cannot be read: write redis://host:6379/0") from error
    except (RedisError, OSError) as error:
        raise BackendUnavailable(f"the broker cannot be reached ({error}): is it running?") from error
