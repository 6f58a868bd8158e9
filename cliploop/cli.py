"""The entry point: one command line in, one exit code out. Light, so that Ctrl-C is heard from the start."""

from __future__ import annotations

import sys
from collections.abc import Sequence

INTERRUPTED = 130


def invoke(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code; every error is one line, no traceback."""
    try:
        from cliploop.app import command_line

        return command_line(arguments)
    except KeyboardInterrupt:
        message = "interrupted before anything began"
        sys.stderr.write(f"cliploop: {message}\n")
        if "--json" in arguments:
            error = f'{{"reason": "interrupted", "message": "{message}"}}'
            sys.stdout.write(f'{{"ok": false, "exit_code": {INTERRUPTED}, "error": {error}}}\n')
        return INTERRUPTED


def main() -> None:
    """Entry point of the console script."""
    sys.exit(invoke(sys.argv[1:]))


if __name__ == "__main__":
    main()
