"""`cliploop gc`: the sweep that the service makes by itself, now, with a table of what went; without a broker."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from cliploop.commands.boundary import guarded
from cliploop.compose import Composition
from cliploop.serving import Serving
from cliploop.site import Addresses, terms_of
from cliploop.terminal import EXIT_COMPLETED, Terminal, counted, one_line
from storage.sweeper import Kind, Removed, Sweep, Tally

TOLD_EVERY_SECONDS = 2.0
NAMES: dict[Kind, str] = {
    "jobs": "jobs that ended longer ago than retention_days",
    "uploads": "uploads that no job took",
    "artifacts": "files that nobody holds",
    "strays": "files that no row knows",
    "unfinished": "half-written files of the dead",
    "scratch": "scratch of the dead",
    "idempotency": "idempotency keys of more than a week",
    "leases": "leases of jobs that are gone",
}


@dataclass(frozen=True)
class Wish:
    """How to sweep. `strays`: also files that no row knows where they are more than the known ones."""

    dry: bool = False
    strays: bool = False
    data: Path | None = None
    config: Path | None = None


def gc_command(wish: Wish, terminal: Terminal) -> int:
    """Sweep the site that the environment names, or only say what a sweep would remove."""

    def body() -> int:
        composition = Composition.read(wish.config, os.environ, Path())
        addresses = Addresses.of(os.environ)
        if wish.data is not None:
            addresses = replace(addresses, data=wish.data)
        if not addresses.has_database:
            terminal.say(f"nothing to sweep: no service has run in {one_line(str(addresses.data))}")
            return _told(Tally(), wish, terminal)
        with addresses.opened_database() as database, closing(addresses.opened_store()) as store:
            addresses.scratch.mkdir(parents=True, exist_ok=True)
            sweep = Sweep(
                database, store, addresses.scratch, terms_of(composition.settings.service),
                dry=wish.dry, strays=wish.strays, step=_telling(terminal),
            )  # fmt: skip
            tally = sweep.whole()
        _show(tally, wish, composition.settings.service, terminal)
        return _told(tally, wish, terminal)

    return guarded(terminal, body)


def _telling(terminal: Terminal) -> Callable[[int], None]:
    """Says now and then how many files were looked at: a large store takes a while."""
    looked_at, told_at = 0, time.monotonic()

    def step(num_files: int) -> None:
        nonlocal looked_at, told_at
        looked_at += num_files
        if time.monotonic() - told_at > TOLD_EVERY_SECONDS:
            told_at = time.monotonic()
            terminal.clear_hint()
            terminal.err.write(f"cliploop: {counted(looked_at, 'file')} looked at ...")

    return step


def _show(tally: Tally, wish: Wish, kept: Serving, terminal: Terminal) -> None:
    if not any(found.count for found in tally.removed.values()) and not tally.foreign.count:
        terminal.say("nothing to remove" if not wish.dry else "nothing would go")
        terminal.say(_kept(kept))
        return
    terminal.say(f"{'would go' if wish.dry else 'removed':>10} {'bytes':>12}")
    for kind, name in NAMES.items():
        found = tally.removed.get(kind, Removed())
        terminal.say(f"{found.count:>10} {_size(found.num_bytes):>12}  {name}", hang=25)
    total = sum((found for found in tally.removed.values()), Removed())
    terminal.say(f"{'':>10} {_size(total.num_bytes):>12}  in all")
    if tally.foreign.count:
        left = f"{counted(tally.foreign.count, 'file')} ({_size(tally.foreign.num_bytes)})"
        terminal.say(
            f"left alone: {left} that no row of this database knows, more than those that are known. "
            "If no other database uses this store: cliploop gc --strays"
        )


def _kept(service: Serving) -> str:
    """What stays for how long, and how it goes at once."""
    ended = "until they are deleted" if service.retention_days is None else f"{service.retention_days:g} days"
    return (
        f"kept: jobs that have ended {ended}; files that nobody holds any more {service.sweep_after_seconds:g} s;"
        f" uploads {service.upload_keep_hours:g} h. To have such files go at once:"
        " CLIPLOOP_SERVICE__SWEEP_AFTER_SECONDS=0 cliploop gc"
    )


def _told(tally: Tally, wish: Wish, terminal: Terminal) -> int:
    found = {kind: tally.removed.get(kind, Removed()) for kind in NAMES}
    terminal.result(
        {
            "ok": True,
            "exit_code": EXIT_COMPLETED,
            "dry_run": wish.dry,
            "removed": {kind: vars(removed) for kind, removed in found.items()},
            "left_alone": vars(tally.foreign),
        }
    )
    return EXIT_COMPLETED


def _size(num_bytes: int) -> str:
    """`0`, `512 B`, `3.4 MiB`."""
    size, unit = float(num_bytes), 0
    while size >= 1024 and unit < 4:
        size, unit = size / 1024, unit + 1
    return "0" if not num_bytes else f"{size:.0f} B" if unit == 0 else f"{size:.1f} {'KMGT'[unit - 1]}iB"
