"""`cliploop worker reason|render`: one worker process, until a signal; and what all service processes share."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from cliploop.commands.awaited import Repeats, awaited
from cliploop.commands.boundary import guarded
from cliploop.compose import Composition
from cliploop.site import Addresses, Site, process_name
from cliploop.terminal import Terminal
from orchestrator.errors import BackendMisconfigured
from storage.queue import REASON, render_queues
from workers.limits import Limits
from workers.pulse import beating
from workers.worker import Worker

PARENT = "CLIPLOOP_PARENT"  # the process that this one ends with
PARENT_ASKED_EVERY_SECONDS = 0.25
ORPHAN_ENDS_SECONDS = 5.0  # after its parent, if it cannot end in order
NICENESS = 10  # of a reason worker and of what it starts
_log = logging.getLogger(__name__)
OURS = ("cliploop", "workers", "storage", "service")


def reason_command(config: Path | None, terminal: Terminal) -> int:
    """Plan, verify and go on with jobs until SIGTERM or SIGINT.

    It gives way to the other processes of its machine: a generator that waits for a processor costs more than a
    video that is encoded a moment later.
    """

    def work() -> int:
        os.nice(NICENESS)
        return _work("reason", [REASON], Limits(), config)

    return guarded(terminal, work)


def render_command(
    generators: Sequence[str], clip_seconds: float | None, config: Path | None, terminal: Terminal
) -> int:
    """Render clips of these generators until SIGTERM or SIGINT."""

    def work() -> int:
        composition = Composition.read(config, os.environ, Path())
        for name in generators:
            composition.generator(name)  # or the error that names those that exist
        if clip_seconds is not None and not clip_seconds > 0:
            raise BackendMisconfigured(f"--clip-seconds must be more than 0 (got {clip_seconds:g})")
        queues = [queue for names in zip(*map(render_queues, generators), strict=True) for queue in names]
        limits = Limits() if clip_seconds is None else Limits(clip_seconds=clip_seconds)
        return _work("render", queues, limits, config, generators)

    return guarded(terminal, work)


def opened_site(config: Path | None, environ: Mapping[str, str], *, patient: bool = False) -> Site:
    """The site that the environment names; a part that is away is waited for. Raises BackendMisconfigured."""
    addresses = Addresses.of(environ)
    if not addresses.broker:
        raise BackendMisconfigured(
            "there is no broker: set CLIPLOOP_REDIS_URL, or run `cliploop up`, which brings one"
        )
    composition = Composition.read(config, environ, Path())
    return awaited(lambda: Site.opened(addresses, composition, patient=patient))


def log_to_stderr() -> None:
    """What a process of the service does, a line each, on stderr."""
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.WARNING,
        format="%(asctime)s %(process)d %(name)s: %(message)s",
        force=True,  # the commands' boundary has silenced it
    )
    for handler in logging.getLogger().handlers:
        handler.addFilter(Repeats())
    for name in OURS:
        logging.getLogger(name).setLevel(logging.INFO)


def end_with_parent(environ: Mapping[str, str]) -> None:
    """Where a parent is named: SIGTERM to ourselves when it is gone, whatever ended it; soon after, the end."""
    parent = environ.get(PARENT, "")
    if not parent.isdecimal():
        return

    def watch() -> None:
        while os.getppid() == int(parent):
            time.sleep(PARENT_ASKED_EVERY_SECONDS)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(ORPHAN_ENDS_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, name="parent", daemon=True).start()


def _work(
    role: str, queues: Sequence[str], limits: Limits, config: Path | None, generators: Sequence[str] = ()
) -> int:
    log_to_stderr()
    end_with_parent(os.environ)
    name = process_name(role)
    with opened_site(config, os.environ, patient=True) as site:
        worker = Worker(site, queues, name, limits, several=role == "render")
        for generator in generators[:1]:  # the others are loaded when they are asked for
            worker.warm(generator)
        with beating(site.messages, name, generators=generators):
            _log.info("%s is ready: it takes messages of %s", name, ", ".join(queues))
            worker.work()
    with contextlib.suppress(OSError):
        sys.stderr.flush()
    return 0
