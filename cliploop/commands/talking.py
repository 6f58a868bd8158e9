"""Commands that talk to a server: which one, with what key, and what to do where it does not answer."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cliploop.client import (
    Client,
    ClientError,
    KeyRefused,
    NotThere,
    RequestRejected,
    ServerUnreachable,
    TryLater,
)
from cliploop.client.sending import URL, refuse_bad_key
from cliploop.commands.boundary import guarded
from cliploop.terminal import EXIT_FAILED, EXIT_USAGE, EXIT_WAITING, Terminal, called_as
from orchestrator.errors import BackendMisconfigured, TaskRejected

URL_VARIABLE = "CLIPLOOP_URL"
KEY_VARIABLE = "CLIPLOOP_API_KEY"
PATIENCE_SECONDS = 2.0  # somebody waits for the answer
RECONNECT_SECONDS = 900.0  # of a watch: a server may be away that long
FIELDS = {"picture": "--image", "step": "--from-step", "instruction": "--instruction", "webhook_url": "--webhook"}


@dataclass(frozen=True)
class Contact:
    """A server as the command line and the environment name it."""

    terminal: Terminal
    url_option: str | None = None

    def client(self, patience_seconds: float = PATIENCE_SECONDS) -> Client:
        """To be closed. Raises TaskRejected for what is no address, BackendMisconfigured for what is no key."""
        environ = self.terminal.environ
        named = self.url_option or environ.get(URL_VARIABLE) or URL
        key = environ.get(KEY_VARIABLE) or None
        try:
            refuse_bad_key(key)
        except ValueError as error:
            raise BackendMisconfigured(f"{KEY_VARIABLE}: {error}; correct it, or unset it") from None
        try:
            return Client(named, key, patience_seconds=patience_seconds)
        except ValueError as error:
            said = "--url" if self.url_option else URL_VARIABLE
            raise TaskRejected(f"{said}: {error}", reason="usage") from None

    def again(self, *words: str) -> str:
        """A command to copy, for the same server."""
        where = ["--url", self.url_option] if self.url_option else []
        return shlex.join([*called_as(), *words, *where])


def talking(terminal: Terminal, body: Callable[[], int]) -> int:
    """Run a command's body. Its errors are one line that names the remedy, and an exit code."""
    return guarded(terminal, lambda: _talked(terminal, body))


def _talked(terminal: Terminal, body: Callable[[], int]) -> int:
    try:
        return body()
    except ClientError as error:
        return refused(terminal, error)
    except OSError as error:
        what = f"{error.filename}: " if error.filename else ""
        message = f"{what}{error.strerror or error}; name another place with -o, or make room"
        return terminal.error(message, reason="file", code=EXIT_FAILED)


def refused(terminal: Terminal, error: ClientError) -> int:
    """Bad input, an unknown job or key 2, to be tried again 4, anything else 1."""
    message, code = str(error), EXIT_FAILED
    match error:
        case ServerUnreachable():
            message = f"{message}; is `cliploop up` running? else set --url or {URL_VARIABLE}"
        case KeyRefused():
            message, code = f"{message}; set {KEY_VARIABLE}", EXIT_USAGE
        case TryLater():
            seconds = error.retry_after_seconds
            when = f" in {seconds:.0f} s" if seconds else ""
            message, code = f"{message}; run the same command again{when}", EXIT_WAITING
        case RequestRejected():
            message, code = _by_option(error), EXIT_USAGE
        case NotThere():
            code = EXIT_USAGE
        case _:
            pass
    return terminal.error(message, reason=error.code or "failed", code=code)


def _by_option(error: RequestRejected) -> str:
    """Fields as the command line calls them."""
    if not error.faults:
        return error.message
    return "; ".join(f"{_option(where)}: {message}" for where, message in error.faults[:3])


def _option(field: str) -> str:
    return FIELDS.get(field, f"--{field.replace('_', '-')}")


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines with columns as wide as they must be; the last is left as it is."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    return ["  ".join([*map(str.ljust, row[:-1], widths), row[-1]]).rstrip() for row in rows]
