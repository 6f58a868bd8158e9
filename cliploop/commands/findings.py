"""What a check found: its name, how it stands, and what to do; as a line, as a row of a table, as JSON."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from cliploop.terminal import Terminal, one_line

State = Literal["ok", "note", "skip", "fail"]
WORDS: dict[State, str] = {"ok": "ok  ", "note": "note", "skip": "skip", "fail": "FAIL"}
_COLOURS: dict[State, str] = {"ok": "green", "note": "yellow", "skip": "dim", "fail": "bold red"}


@dataclass(frozen=True)
class Finding:
    """`note`: it works, but not as one may think. `skip`: it was not looked at, and why."""

    name: str
    state: State
    detail: str
    remedy: str = ""

    @property
    def ok(self) -> bool:
        return self.state != "fail"

    def line(self) -> str:
        told = f"{self.detail}: {self.remedy}" if self.remedy else self.detail
        width = 30 if "." in self.name else 12
        return f"{WORDS[self.state]} {one_line(self.name):{width}} {one_line(told)}"

    def told(self) -> dict[str, Any]:
        return {**asdict(self), "ok": self.ok}


def failed(name: str, error: Exception, state: State = "fail") -> Finding:
    """Our errors say what was wrong, then, behind a colon or a semicolon, what to do."""
    words = one_line(str(error)) or type(error).__name__
    at = _remedy_at(words)
    detail, remedy = (words[:at], words[at + 2 :]) if at else (words, "")
    return Finding(name, state, detail, remedy)


def _remedy_at(words: str) -> int:
    """Where the last part of a message begins, none inside brackets; 0 if what is before is only a place."""
    depth = at = 0
    for index, char in enumerate(words):
        depth += (char in "([") - (char in ")]")
        if char in ":;" and depth == 0 and words[index + 1 : index + 2] == " ":
            at = index
    return at if " " in words[:at].rpartition(": ")[2].strip() else 0


def checked(name: str, check: Callable[[], str]) -> Finding:
    """What a check says, or what went wrong in it, whatever that was."""
    try:
        return Finding(name, "ok", check())
    except Exception as error:
        return failed(name, error)


def show(findings: Sequence[Finding], terminal: Terminal) -> None:
    """As a table on a terminal; elsewhere the lines were said as they came."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="dim")
    for title in ("", "check", "found", "what to do"):
        table.add_column(title, overflow="fold")
    for each in findings:
        word = Text(WORDS[each.state].strip(), style=_COLOURS[each.state])
        table.add_row(word, *(Text(one_line(text)) for text in (each.name, each.detail, each.remedy)))
    console = Console(file=terminal.people.stream, highlight=False, markup=False, emoji=False)
    console.print(table)
