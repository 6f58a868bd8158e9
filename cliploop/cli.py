"""The entry point: one command line in, one exit code out. Light, so that Ctrl-C is heard from the start."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence

from cliploop.interrupts import forget, listen

INTERRUPTED = 130

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def invoke(arguments: Sequence[str]) -> int:
    """Run one command line in a process that goes on, and give back its signals. As `_invoked`."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    forget()
    try:
        return _invoked(arguments)
    finally:
        for number, handler in before.items():
            if signal.getsignal(number) is not handler:
                signal.signal(number, handler)


def _invoked(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code; every error is one line, no traceback.

    Raises KeyboardInterrupt only in the moments after the last word.
    """
    try:
        from cliploop.app import command_line
    except KeyboardInterrupt:
        return _interrupted("--json" in arguments)
    return command_line(arguments)


def _interrupted(json: bool) -> int:
    """While modules load there is nothing yet that could say it."""
    message = "interrupted before anything began"
    sys.stderr.write(f"cliploop: {message}\n")
    if json:
        error = f'{{"reason": "interrupted", "message": "{message}"}}'
        sys.stdout.write(f'{{"ok": false, "exit_code": {INTERRUPTED}, "error": {error}}}\n')
    return INTERRUPTED


def main() -> None:
    """Entry point of the console script. All is said when it returns: Ctrl-C no longer changes the end."""
    listen()
    try:
        code = _invoked(sys.argv[1:])
    except KeyboardInterrupt:
        code = INTERRUPTED
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    sys.exit(code)


if __name__ == "__main__":
    main()
