"""`cliploop up`: broker, workers and API of one machine, kept alive, stopped together; `serve`: the API alone."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from cliploop.commands.awaited import awaited
from cliploop.commands.boundary import guarded
from cliploop.commands.worker import PARENT, end_with_parent, log_to_stderr, opened_site
from cliploop.compose import Composition
from cliploop.site import Addresses, Site, is_loopback, process_name
from cliploop.terminal import Terminal, one_line
from orchestrator.errors import BackendMisconfigured, CliploopError, JobWaiting
from storage.broker import EmbeddedBroker, running_broker
from storage.keys import any_valid
from storage.reaper import reaping
from storage.sweeping import sweeping
from workers.supervisor import Child, stop

LOOK_SECONDS = 0.1
AWAY_SECONDS = 2.0  # between starts of a broker that does not start
MAX_PORT = 65535
READY_SECONDS = 20.0
STOP_SECONDS = 6.0  # for the children; the broker has a little after them
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Place:
    """Where the API listens and where everything is kept; None = as the environment says."""

    host: str = "127.0.0.1"
    port: int = 8000
    data: Path | None = None
    config: Path | None = None


def up_command(place: Place, terminal: Terminal) -> int:
    """Run everything until Ctrl-C or SIGTERM."""
    return guarded(terminal, lambda: _up(place, terminal))


def serve_command(place: Place, descriptor: int | None, terminal: Terminal) -> int:
    """Run the API alone. `descriptor`: a socket that listens already, from `up`."""
    return guarded(terminal, lambda: _serve(place, descriptor, terminal))


def _up(place: Place, terminal: Terminal) -> int:
    log_to_stderr()
    composition = Composition.read(place.config, os.environ, Path())
    addresses = Addresses.of(os.environ)
    if place.data is not None:
        addresses = replace(addresses, data=place.data)
    with contextlib.ExitStack() as running:
        listening = running.enter_context(_listening(place, addresses))
        asked = running.enter_context(_asked_to_end())
        terminal.say("starting ...")
        broker: EmbeddedBroker | None = None
        if not addresses.broker:
            broker = running.enter_context(running_broker(addresses.data / "broker"))
            addresses = replace(addresses, broker=broker.url)
        placed = addresses
        # Made once, before several processes look for it.
        with awaited(lambda: Site.opened(placed, composition), partial(_unless, asked)):
            pass
        children = _children(addresses, composition, place.config, listening)
        running.callback(stop, children, STOP_SECONDS)
        _keep_alive(children, broker, asked, lambda: _tell(terminal, listening, addresses))
        terminal.say("stopping ...")
    return 0


def _unless(asked: threading.Event, seconds: float) -> None:
    """Pause. Raises JobWaiting if the process is to end meanwhile."""
    if asked.wait(seconds):
        raise JobWaiting("backend", "stopped while it waited for a part of the service that is away")


def _keep_alive(
    children: Sequence[Child], broker: EmbeddedBroker | None, asked: threading.Event, ready: Any
) -> None:
    teller = threading.Thread(target=ready, daemon=True)
    while not asked.is_set():
        if broker is not None:
            try:
                broker.keep_alive()
            except CliploopError as error:  # jobs wait, nothing is lost
                _log.warning("%s", error)
                asked.wait(AWAY_SECONDS)
        for child in children:
            child.keep_alive()
            if child.is_refused:
                raise BackendMisconfigured(f"the {child.name} cannot start; what is wrong stands above")
        if not teller.is_alive() and teller.ident is None:
            teller.start()
        asked.wait(LOOK_SECONDS)


def _children(
    addresses: Addresses, composition: Composition, config: Path | None, listening: socket.socket
) -> list[Child]:
    environment = {**os.environ, **addresses.environment(), PARENT: str(os.getpid())}
    if config is not None:
        environment["CLIPLOOP_CONFIG"] = str(config.absolute())
    generators = [word for name in composition.usable_generators() for word in ("--generator", name)]
    children = [
        Child("reason worker", ["worker", "reason"], environment),
        Child("render worker", ["worker", "render", *generators], environment),
    ]
    number = listening.fileno()
    return [*children, Child("API", ["serve", "--descriptor", str(number)], environment, (number,))]


def _tell(terminal: Terminal, listening: socket.socket, addresses: Addresses) -> None:
    """One line, once the API answers; before, another one if that takes long."""
    url = f"http://{_named(listening)}"
    if not _answers(url, READY_SECONDS):
        terminal.say(f"still starting: nothing answers on {url} yet", whole=True)
        while not _answers(url, READY_SECONDS):
            pass
    where = one_line(kept(addresses))
    terminal.say(f"Cliploop listens on {url}, its data is in {where} (Ctrl-C stops it)", whole=True)


def kept(addresses: Addresses) -> str:
    """Where the data is, for people; passwords are left out."""
    places = [str(addresses.data.absolute())]
    if addresses.database:
        address = urllib.parse.urlsplit(addresses.database)
        places.append(f"{address.scheme}://{address.hostname or ''}{address.path}")
    if addresses.artifacts:
        address = urllib.parse.urlsplit(addresses.artifacts)
        places.append(f"{address.scheme}://{address.hostname or ''}{address.path}")
    return ", ".join(reversed(places))


def _answers(url: str, seconds: float) -> bool:
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        try:
            with urllib.request.urlopen(f"{url}/healthz", timeout=READY_SECONDS):
                return True
        except urllib.error.HTTPError:  # whatever it says, it is there
            return True
        except OSError:
            time.sleep(LOOK_SECONDS)
    return False


def _serve(place: Place, descriptor: int | None, terminal: Terminal) -> int:
    from service.app import create_app
    from service.server import Server
    from storage.delivering import Deliverer, delivering, webhook_rules

    log_to_stderr()
    end_with_parent(os.environ)
    environ = dict(os.environ) if place.data is None else {**os.environ, "CLIPLOOP_DATA": str(place.data)}
    with contextlib.ExitStack() as running:
        if descriptor is None:
            listening = running.enter_context(_listening(place, Addresses.of(environ)))
        else:
            listening = running.enter_context(socket.socket(fileno=descriptor))
        site = running.enter_context(opened_site(place.config, environ))
        if descriptor is None:
            where = one_line(kept(Addresses.of(environ)))
            terminal.say(f"Cliploop listens on http://{_named(listening)}, its data is in {where}", whole=True)
        with _asked_to_end():  # so that a signal which the server has obeyed is not raised again
            app = create_app(site, keys_required=not is_loopback(listening.getsockname()[0]))
            rules = webhook_rules(private=site.composition.settings.service.private_webhooks)
            name = process_name("api")
            reaper = reaping(site.database, site.messages, name, site.has_room)
            sweeper = sweeping(site.sweep(), name, site.least_free_bytes, site.messages)
            _log.info("%s is ready", name)
            with reaper, sweeper, delivering(Deliverer(site.database, rules)):
                Server(app).run(sockets=[listening])
    return 0


@contextlib.contextmanager
def _listening(place: Place, addresses: Addresses) -> Generator[socket.socket]:
    """A socket that listens from now on: nobody else can take the port. Raises BackendMisconfigured."""
    refuse_open_doors(place.host, addresses)
    if not 0 <= place.port <= MAX_PORT:
        raise BackendMisconfigured(f"--port must be between 0 and {MAX_PORT} (got {place.port})")
    try:
        found = socket.getaddrinfo(place.host, place.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listening = socket.create_server(found[4][:2], family=found[0], backlog=2048)
    except (OSError, OverflowError) as error:
        number = getattr(error, "errno", None)
        said = os.strerror(number) if isinstance(number, int) and number > 0 else error
        raise BackendMisconfigured(
            f"cannot listen on {place.host}:{place.port} ({said}): choose another port with --port"
        ) from None
    # With the protocol named, answers are sent at once: asyncio sets TCP_NODELAY only then.
    with socket.socket(fileno=listening.detach()) as named:
        yield named


def _named(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def refuse_open_doors(host: str, addresses: Addresses) -> None:
    """Only this machine is served without API keys. Raises BackendMisconfigured for another host and no key."""
    if is_loopback(host) or _has_key(addresses):
        return
    raise BackendMisconfigured(
        f"{host} can be reached from elsewhere, and there is no API key: make one with `cliploop keys create"
        " NAME`, or listen on 127.0.0.1"
    )


def _has_key(addresses: Addresses) -> bool:
    if not addresses.has_database:
        return False
    with awaited(addresses.opened_database) as database:
        return any_valid(database)


@contextlib.contextmanager
def _asked_to_end() -> Generator[threading.Event]:
    """Set by SIGINT, SIGTERM and SIGHUP; nothing is raised, so that everything stops in order."""
    asked = threading.Event()
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, lambda _number, _frame: asked.set()) for number in numbers}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
