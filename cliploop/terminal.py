"""Where words go: stdout and stderr that survive a closed pipe, escaped text, one JSON object, exit codes."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TextIO

EXIT_COMPLETED = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_EXHAUSTED = 3
EXIT_WAITING = 4
EXIT_INTERRUPTED = 130

MIN_LIVE_COLUMNS = 60


def plain(text: str, *, lines: bool = False) -> str:
    """Text that cannot steer a terminal: control, format and surrogate characters become visible escapes.

    `lines` keeps line breaks.
    """
    return "".join(
        char if char == "\n" and lines else _escaped(char) if unicodedata.category(char)[0] == "C" else char
        for char in text
    )


def _escaped(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


def one_line(text: str) -> str:
    """The same on one line: line breaks and runs of blanks become one blank."""
    return plain(" ".join(text.split()))


class Stream:
    """A text stream that goes quiet, instead of failing, when nobody reads any more."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        if stream is not None and hasattr(stream, "reconfigure"):
            with contextlib.suppress(OSError, ValueError):
                stream.reconfigure(errors="backslashreplace")  # type: ignore[attr-defined]

    @property
    def open(self) -> bool:
        return self._stream is not None

    @property
    def stream(self) -> TextIO | None:
        return self._stream

    def write(self, line: str) -> None:
        """Write a line and flush; the first failure closes this stream for good, the job goes on."""
        if self._stream is None:
            return
        try:
            self._stream.write(line + "\n")
            self._stream.flush()
        except (OSError, ValueError):
            self.abandon()

    def abandon(self) -> None:
        """Point the descriptor at nothing, so that the interpreter's own flush at exit is quiet too."""
        stream, self._stream = self._stream, None
        with contextlib.suppress(OSError, ValueError, AttributeError):
            if stream is not None:
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, stream.fileno())
                os.close(nowhere)


@dataclass
class Terminal:
    """One command's output. With `json`, stdout carries one object and people's lines go to stderr."""

    json: bool
    out: Stream
    err: Stream
    environ: Mapping[str, str] = field(default_factory=dict[str, str])
    printed: bool = False

    @classmethod
    def opened(cls, *, json: bool) -> Terminal:
        return cls(json=json, out=Stream(sys.stdout), err=Stream(sys.stderr), environ=dict(os.environ))

    @property
    def people(self) -> Stream:
        """Where people's lines go."""
        return self.err if self.json else self.out

    @property
    def live(self) -> bool:
        """Whether people's lines go to a terminal that can redraw."""
        stream = self.people.stream
        if stream is None or self.environ.get("NO_COLOR") or self.environ.get("TERM", "dumb") in ("dumb", ""):
            return False
        with contextlib.suppress(OSError, ValueError):
            return stream.isatty() and os.get_terminal_size(stream.fileno()).columns >= MIN_LIVE_COLUMNS
        return False

    def say(self, line: str = "") -> None:
        """A line for people; the caller has escaped what is not its own."""
        self.people.write(line)

    def result(self, value: Mapping[str, Any]) -> None:
        """The one JSON object; nothing without `--json`, nothing twice."""
        if self.json and not self.printed:
            self.printed = True
            self.out.write(json.dumps(value, ensure_ascii=True, allow_nan=False, indent=2))

    def error(self, message: str, *, reason: str, code: int, **more: Any) -> int:
        """One line on stderr that says what was wrong and what to do; with `--json` the object too."""
        self.err.write(f"cliploop: {one_line(message)}")
        self.result({"ok": False, "exit_code": code, "error": {"reason": reason, "message": message}, **more})
        return code
