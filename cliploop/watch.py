"""A journal that is watched: what begins, what was recorded. Knows no words; `cliploop.narrate` finds those."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from orchestrator.errors import BackendFailed
from orchestrator.ports import Call, Inputs, Journal
from orchestrator.records import Record

R = TypeVar("R", bound=Record)


class Watcher(Protocol):
    """Somebody who is told."""

    def began(self, key: str, inputs: Inputs) -> None:
        """An effect runs now (never for what is only remembered)."""
        ...

    def recorded(self, key: str, inputs: Inputs, value: Record, *, remembered: bool) -> None:
        """An entry's value; `remembered` if it was there before this process."""
        ...

    def lost(self, key: str, reason: str, *, remembered: bool) -> None:
        """A counted failure."""
        ...


class WatchedJournal:
    """The journal behind it, unchanged, with a watcher told of every entry in the order of the loop."""

    def __init__(self, journal: Journal, watcher: Watcher) -> None:
        self._journal = journal
        self._watcher = watcher

    def once(self, key: str, inputs: Inputs, kind: type[R], effect: Callable[[], R]) -> R:
        """As the journal's own."""
        ran = False

        def watched() -> R:
            nonlocal ran
            ran = True
            self._watcher.began(key, inputs)
            return effect()

        try:
            value = self._journal.once(key, inputs, kind, watched)
        except BackendFailed as failure:
            self._watcher.lost(key, str(failure), remembered=not ran)
            raise
        self._watcher.recorded(key, inputs, value, remembered=not ran)
        return value

    def once_all(self, calls: Sequence[Call[R]]) -> list[R | BackendFailed]:
        """As the journal's own; told one by one when all are there."""
        results = self._journal.once_all(calls)
        for call, value in zip(calls, results, strict=True):
            if isinstance(value, BackendFailed):
                self._watcher.lost(call.key, str(value), remembered=False)
            else:
                self._watcher.recorded(call.key, call.inputs, value, remembered=False)
        return results

    def peek(self, key: str, kind: type[R]) -> R | None:
        """As the journal's own."""
        return self._journal.peek(key, kind)

    def renewals(self, key: str) -> int:
        """As the journal's own."""
        return self._journal.renewals(key)
