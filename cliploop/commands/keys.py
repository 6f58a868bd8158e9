"""`cliploop keys`: make, revoke and list API keys, in the environment's database; no broker is needed."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cliploop.commands.boundary import guarded
from cliploop.site import Addresses
from cliploop.terminal import EXIT_COMPLETED, Terminal, one_line
from orchestrator.errors import TaskRejected
from storage import keys
from storage.keys import ApiKey, KeyNotFound


@dataclass(frozen=True)
class Wish:
    """The key that is asked for; None = the service's default."""

    name: str
    requests_per_minute: int | None = None
    concurrent_jobs: int | None = None
    adopt: bool = False


def create_command(wish: Wish, data: Path | None, terminal: Terminal) -> int:
    """Make a key. Its secret alone is on stdout, this once; what is to be said about it on stderr."""

    def body() -> int:
        with _addresses(data).opened_database() as database:
            key, secret = keys.create(
                database,
                wish.name,
                requests_per_minute=wish.requests_per_minute,
                concurrent_jobs=wish.concurrent_jobs,
                adopt=wish.adopt,
            )
            of_nobody = keys.jobs_of_nobody(database)
        terminal.clear_hint()
        terminal.err.write(f"{key.id} is made; its secret is shown this once: Authorization: Bearer clp_…")
        if of_nobody:
            terminal.err.write(
                f"jobs that were submitted without a key are seen by no key: {of_nobody} (keys create --adopt"
                " makes them its own)"
            )
        if not terminal.json:
            terminal.out.write(secret)
        _result(terminal, key=_said(key), secret=secret, jobs_of_nobody=of_nobody)
        return EXIT_COMPLETED

    return guarded(terminal, body)


def revoke_command(key_id: str, data: Path | None, terminal: Terminal) -> int:
    """Have a key work no more."""

    def body() -> int:
        addresses = _addresses(data)
        if not addresses.has_database:
            raise _unknown(f"there is no API key {key_id[:80]!r}: none was made here")
        with addresses.opened_database() as database:
            try:
                key = keys.revoke(database, key_id)
            except KeyNotFound as error:
                raise _unknown(str(error)) from error
            is_last = not keys.any_valid(database)
        terminal.say(
            f"{key.id} ({one_line(key.name)}) works no more, in a few seconds everywhere; its jobs go on"
        )
        if is_last:
            terminal.say("no key is left: the API answers nobody until one is made")
        _result(terminal, key=_said(key))
        return EXIT_COMPLETED

    return guarded(terminal, body)


def list_command(data: Path | None, terminal: Terminal) -> int:
    """Every key in a line, without its secret."""

    def body() -> int:
        addresses = _addresses(data)
        found: list[ApiKey] = []
        if addresses.has_database:
            with addresses.opened_database() as database:
                found = keys.listed(database)
        for key in found:
            terminal.say(_line(key), hang=4)
        if not found:
            terminal.say("no API key: the API answers this machine alone (cliploop keys create NAME)")
        _result(terminal, keys=[_said(key) for key in found])
        return EXIT_COMPLETED

    return guarded(terminal, body)


def _addresses(data: Path | None) -> Addresses:
    addresses = Addresses.of(os.environ)
    return addresses if data is None else replace(addresses, data=data)


def _unknown(message: str) -> TaskRejected:
    return TaskRejected(message, reason="key_not_found")


def _result(terminal: Terminal, **said: Any) -> None:
    terminal.result({"ok": True, "exit_code": 0, **said})


def _line(key: ApiKey) -> str:
    limits = [
        f"{limit} {what}"
        for limit, what in ((key.requests_per_minute, "requests/min"), (key.concurrent_jobs, "jobs at a time"))
        if limit is not None
    ]
    state = f"revoked {_day(key.revoked_at)}" if key.revoked_at is not None else "works"
    return (
        f"{key.id}  {state:18}  made {_day(key.created_at)}  {one_line(key.name)}  {', '.join(limits)}".rstrip()
    )


def _day(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d}"


def _said(key: ApiKey) -> dict[str, Any]:
    return vars(key)
