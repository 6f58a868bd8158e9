"""The view of a run: on a terminal a bar and colours that redraw, elsewhere plain lines. Knows no loop."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from cliploop.narrate import Line, Narrator, Tone
from cliploop.terminal import Terminal, counted
from orchestrator.ports import Inputs
from orchestrator.records import Policy, Record

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table

STYLES: dict[Tone, str] = {
    "plain": "",
    "head": "bold",
    "good": "green",
    "bad": "red",
    "note": "yellow",
    "quiet": "dim",
}


class Surface(Protocol):
    """Where the story is shown."""

    def show(self, lines: Iterable[Line]) -> None: ...

    def status(self, doing: str, fraction: float | None, spent: str) -> None: ...

    def close(self) -> None: ...


class PlainSurface:
    """Lines, as they come."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal

    def show(self, lines: Iterable[Line]) -> None:
        """Print each."""
        for line in lines:
            self._terminal.say(str(line), whole=line.whole)

    def status(self, doing: str, fraction: float | None, spent: str) -> None:
        """Nothing: a log is no place for a bar."""

    def close(self) -> None:
        """Nothing to restore."""


class LiveSurface:
    """Lines above, one redrawn status line below: what is done, a bar, what was spent, the time."""

    def __init__(self, terminal: Terminal) -> None:
        from rich.console import Console
        from rich.live import Live

        terminal.clear_hint()
        self._console = Console(file=terminal.people.stream, highlight=False, markup=False, emoji=False)
        self._doing, self._fraction, self._spent = "starting", None, ""
        self._live: Live | None = Live(
            console=self._console, get_renderable=self._status, transient=True, refresh_per_second=10
        )
        self._live.start()

    def show(self, lines: Iterable[Line]) -> None:
        """Print each above the status line."""
        from rich.padding import Padding
        from rich.text import Text

        with self._guarded():
            for line in lines:
                text = Text(line.text, style=STYLES[line.tone])
                if line.whole:
                    self._console.print(text, soft_wrap=True)
                else:
                    self._console.print(Padding(text, (0, 0, 0, 2 * line.depth)))

    def refresh(self) -> None:
        """Redraw now."""
        if self._live is not None:
            self._live.refresh()

    def status(self, doing: str, fraction: float | None, spent: str) -> None:
        """What the next redraw says."""
        self._doing, self._fraction, self._spent = doing, fraction, spent

    def close(self) -> None:
        """Give the terminal back."""
        live, self._live = self._live, None
        if live is not None:
            with self._guarded():
                live.stop()

    def _guarded(self) -> contextlib.AbstractContextManager[None]:
        """A terminal that went away ends the view, not the job."""
        return contextlib.suppress(OSError, ValueError)

    def _status(self) -> Table:
        from rich.progress_bar import ProgressBar
        from rich.spinner import Spinner
        from rich.table import Table
        from rich.text import Text

        row = Table.grid(padding=(0, 1))
        for _ in range(4):
            row.add_column(no_wrap=True)
        fraction = self._fraction
        bar = Text("") if fraction is None else ProgressBar(total=1.0, completed=fraction, width=16)
        percent = "" if fraction is None else f"{100 * fraction:3.0f} %"
        if not hasattr(self, "_spinner"):
            self._spinner = Spinner("dots")
        row.add_row(
            self._spinner, Text(self._doing, style="cyan"), bar, Text(f"{percent}  {self._spent}", style="dim")
        )
        return row


def surface(terminal: Terminal) -> Surface:
    """A live one where the terminal can redraw, else plain."""
    return LiveSurface(terminal) if terminal.live else PlainSurface(terminal)


class RunView:
    """Watches a journal and a generator's progress, and tells a surface."""

    def __init__(self, where: Surface, policy: Policy) -> None:
        self._surface = where
        self._narrator = Narrator(policy)
        self._doing = ""

    def began(self, key: str, inputs: Inputs) -> None:
        """An effect runs now."""
        self._surface.show(self._narrator.begin(key, inputs))
        self._status(key, None)

    def recorded(self, key: str, inputs: Inputs, value: Record, *, remembered: bool) -> None:
        """An entry's value."""
        self._surface.show(self._narrator.tell(key, inputs, value))

    def lost(self, key: str, reason: str, *, remembered: bool) -> None:
        """A counted failure."""
        self._surface.show(self._narrator.tell_lost(key, reason))

    def progress(self, key: str, fraction: float) -> None:
        """How far a render is, 0 … 1."""
        self._status(key, fraction)

    def _status(self, key: str, fraction: float | None) -> None:
        where = self._narrator.where(key)
        self._doing = where.doing if where else self._doing
        spend = self._narrator.spend
        self._surface.status(
            self._doing, fraction, f"{spend.video_seconds:.1f} s video, {counted(spend.vlm_calls, 'call')}"
        )
