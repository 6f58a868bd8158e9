"""A journal that is watched: what begins, what was recorded. Knows no words; `cliploop.narrate` finds those."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import replace
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
        """As the journal's own; told in their order, each before the next one begins."""
        ran = set[str]()
        untold = list(calls)

        def tell_up_to(key: str | None) -> None:
            while untold and untold[0].key != key:
                self._tell_there(untold.pop(0), ran)

        def watched(call: Call[R]) -> Call[R]:
            def effect() -> R:
                tell_up_to(call.key)
                ran.add(call.key)
                self._watcher.began(call.key, call.inputs)
                return call.effect()

            return replace(call, effect=effect)

        results = self._journal.once_all([watched(call) for call in calls])
        tell_up_to(None)
        return results

    def _tell_there(self, call: Call[R], ran: Set[str]) -> None:
        """Tell what is recorded; nothing of what is not there yet."""
        remembered = call.key not in ran
        try:
            value = self._journal.peek(call.key, call.kind)
        except BackendFailed as failure:
            self._watcher.lost(call.key, str(failure), remembered=remembered)
            return
        if value is not None:
            self._watcher.recorded(call.key, call.inputs, value, remembered=remembered)

    def peek(self, key: str, kind: type[R]) -> R | None:
        """As the journal's own."""
        return self._journal.peek(key, kind)

    def renewals(self, key: str) -> int:
        """As the journal's own."""
        return self._journal.renewals(key)
