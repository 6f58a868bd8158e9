"""How often something may be asked: turns in a sliding window, in the order in which they were asked for.

It knows no clock and no store: `storage.pacing` shares the same rule among processes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace

MINUTE = 60.0
MARGIN = 1.01  # of a window: a turn that is taken late by a moment still lies in the minute that was meant


@dataclass(frozen=True)
class Rate:
    """What any window of `seconds` may hold; 0: no limit."""

    requests: int = 0
    tokens: int = 0
    seconds: float = MINUTE

    @property
    def is_limited(self) -> bool:
        return bool(self.requests or self.tokens)

    @property
    def window_seconds(self) -> float:
        return self.seconds * MARGIN


@dataclass(frozen=True)
class Turn:
    """When a request may go: in `wait_seconds`. Without an id it was not booked: ask again by then."""

    wait_seconds: float
    id: str = ""


@dataclass(frozen=True)
class Booked:
    """A turn that is, or was, somebody's. `at` in seconds of the book's own clock."""

    id: str
    at: float
    tokens: int


@dataclass
class Book:
    """The turns of one window, in order; `next_at` is the rule, and `storage.pacing` says it in Lua."""

    turns: list[Booked] = field(default_factory=list[Booked])

    def forget(self, now: float, rate: Rate) -> None:
        """Drop what no window from now on can hold."""
        self.turns = [turn for turn in self.turns if turn.at > now - rate.window_seconds]

    def next_at(self, now: float, rate: Rate, tokens: int) -> float:
        """When one more request of so many tokens may go, after all that are booked.

        One of more tokens than a whole window may have counts as that many: it goes alone.
        """
        at = max([now, *(turn.at for turn in self.turns[-1:])])
        if rate.requests and len(self.turns) >= rate.requests:
            at = max(at, self.turns[-rate.requests].at + rate.window_seconds)
        if rate.tokens:
            left = rate.tokens - min(tokens, rate.tokens)
            for turn in reversed(self.turns):
                left -= turn.tokens
                if left < 0:
                    return max(at, turn.at + rate.window_seconds)
        return at


class InProcess:
    """Implements orchestrator.ports.RateLimiter for the threads of one process. `now` in seconds, monotonic."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._books: dict[str, Book] = {}
        self._count = 0

    def book(self, name: str, rate: Rate, tokens: int, longest_seconds: float) -> Turn:
        with self._lock:
            now, book = self._now(), self._books.setdefault(name, Book())
            book.forget(now, rate)
            at = book.next_at(now, rate, tokens)
            if at - now > longest_seconds:
                return Turn(at - now)
            self._count += 1
            book.turns.append(Booked(str(self._count), at, tokens))
            return Turn(at - now, str(self._count))

    def correct(self, name: str, id: str, tokens: int) -> None:
        with self._lock:
            book = self._books.get(name, Book())
            book.turns = [replace(turn, tokens=tokens) if turn.id == id else turn for turn in book.turns]
