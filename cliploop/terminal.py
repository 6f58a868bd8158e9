"""Where words go: stdout and stderr that survive a closed pipe, escaped text, one JSON object, exit codes."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

PROGRAM = "cliploop"

EXIT_COMPLETED = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_EXHAUSTED = 3
EXIT_WAITING = 4
EXIT_INTERRUPTED = 130

MIN_LIVE_COLUMNS = 60


def version() -> str:
    """Of the installed distribution."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    try:
        return installed(PROGRAM)
    except PackageNotFoundError:
        return "not installed, run from its source"


def counted(number: int, noun: str) -> str:
    """`1 call`, `2 calls`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


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


def folded(line: str, columns: int, hang: int = 2) -> list[str]:
    """The line broken between words to that width; all but the first stand in by `hang` more columns."""
    if len(line) <= columns:
        return [line]
    lead = len(line) - len(line.lstrip(" "))
    return textwrap.wrap(
        line,
        columns,
        subsequent_indent=" " * min(lead + hang, columns // 2),
        break_long_words=False,
        break_on_hyphens=False,
    )


def called_as(argv0: str | None = None, folder: Path | None = None) -> list[str]:
    """The words that call this program again from here, as short as they can be."""
    program, here = Path(argv0 or sys.argv[0]), folder or Path.cwd()
    if program.name == "cli.py":
        return [_shortest(Path(sys.executable), here), "-m", "cliploop.cli"]
    return [_shortest(program, here) if program.name == PROGRAM else PROGRAM]


def _shortest(program: Path, here: Path) -> str:
    """Its bare name where the shell finds this very file by it, else the path from here."""
    found = shutil.which(program.name)
    if not program.is_absolute() and len(program.parts) == 1:
        return program.name
    if found is not None and os.path.abspath(found) == os.path.abspath(here / program):  # noqa: PTH100  (keeps links)
        return program.name
    return str(program.relative_to(here)) if program.is_relative_to(here) else str(program)


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
        self.put(line + "\n")

    def put(self, text: str) -> None:
        """The same without the end of a line."""
        if self._stream is None:
            return
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            self.abandon()

    @property
    def columns(self) -> int:
        """The width of the terminal that this is; 0 for anything else."""
        with contextlib.suppress(OSError, ValueError):
            if self._stream is not None and self._stream.isatty():
                return os.get_terminal_size(self._stream.fileno()).columns
        return 0

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
    printed: bool = False  # the result is out, or would be with `json`
    hinted: int = 0  # columns of the hint that stands there now

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
        return self.people.columns >= MIN_LIVE_COLUMNS

    def hint(self, text: str) -> None:
        """A word at once on a terminal, in the place of the next line; nothing elsewhere."""
        if self.people.columns > len(text):
            self.people.put(text)
            self.hinted = len(text)

    def clear_hint(self) -> None:
        """Make its line free again, without any escape."""
        if self.hinted:
            self.people.put("\r" + " " * self.hinted + "\r")
            self.hinted = 0

    def say(self, line: str = "", *, hang: int = 2, whole: bool = False) -> None:
        """A line for people; the caller has escaped what is not its own.

        On a terminal it is folded between words, unless it is to be copied as a `whole`.
        """
        self.clear_hint()
        columns = 0 if whole else self.people.columns
        for part in folded(line, columns, hang) if columns else [line]:
            self.people.write(part)

    def result(self, value: Mapping[str, Any]) -> None:
        """The one JSON object; nothing without `--json`, nothing twice."""
        first, self.printed = not self.printed, True
        if self.json and first:
            self.out.write(json.dumps(value, ensure_ascii=True, allow_nan=False, indent=2))

    def error(self, message: str, *, reason: str, code: int, **more: Any) -> int:
        """One line on stderr that says what was wrong and what to do; with `--json` the object too."""
        self.clear_hint()
        self.err.write(f"cliploop: {one_line(message)}")
        self.result({"ok": False, "exit_code": code, "error": {"reason": reason, "message": message}, **more})
        return code
