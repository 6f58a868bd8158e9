"""Several clips under way on one generator: while one is encoded and stored, the next one renders.

Renders run in the main thread, the only one that limits and signals reach; all else of a clip runs in a thread
of its own. Who has the turn may take a message: nobody takes a clip away from other workers only to wait with it,
but for the moment before a render ends, so that the next one is ready to begin.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

LOOK_SECONDS = 0.2
READY_SECONDS = 1.0  # before a render is likely to end, the next clip may be made ready

T = TypeVar("T")


class Turn:
    """Whose it is may take a message and have a render done. Given away once, from whatever thread."""

    def __init__(self, free: threading.Semaphore) -> None:
        self._free = free
        self._lock = threading.Lock()
        self._given = False

    def give(self) -> None:
        """Let the next one begin."""
        with self._lock:
            if not self._given:
                self._given = True
                self._free.release()


class Turns:
    """`stop_if_ending` is called before each render; what it raises is raised in the thread that asked."""

    def __init__(self, stop_if_ending: Callable[[], None]) -> None:
        self._stop_if_ending = stop_if_ending
        self._free = threading.Semaphore(1)
        self._mine = threading.local()
        self._calls: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any], Turn | None]] = queue.SimpleQueue()
        self._began_at = 0.0
        self._rendering: Turn | None = None
        self.rendering = False  # the main thread is in a call, and may be interrupted

    def take(self) -> bool:
        """Wait a moment for the turn; whether this thread has it now."""
        taken = self._free.acquire(timeout=LOOK_SECONDS)
        self._mine.turn = Turn(self._free) if taken else None
        return taken

    def give(self) -> None:
        """Let the next one begin. Nothing where this thread does not have the turn."""
        turn: Turn | None = getattr(self._mine, "turn", None)
        if turn is not None:
            turn.give()

    def render(self, call: Callable[[], T]) -> T:
        """Have the main thread do it, then give the turn away: what follows needs no generator."""
        asked: Future[T] = Future()
        self._calls.put((call, asked, getattr(self._mine, "turn", None)))
        try:
            return asked.result()
        finally:
            self.give()

    def progressed(self, fraction: float) -> None:
        """In the main thread, within a render: give its turn away when, at this pace, it ends in a moment."""
        elapsed = time.monotonic() - self._began_at
        if self._rendering is not None and elapsed * (1.0 - fraction) <= READY_SECONDS * fraction:
            self._rendering.give()

    def serve(self, over: Callable[[], bool]) -> None:
        """In the main thread: do what is asked until it is over."""
        while not over():
            try:
                call, asked, turn = self._calls.get(timeout=LOOK_SECONDS)
            except queue.Empty:
                continue
            self._rendering, self._began_at = turn, time.monotonic()
            self._do(call, asked)
            self._rendering = None

    def _do(self, call: Callable[[], Any], asked: Future[Any]) -> None:
        try:
            try:
                self.rendering = True
                self._stop_if_ending()
                value = call()
            finally:
                self.rendering = False
            asked.set_result(value)
        except BaseException as error:  # whatever it is, it belongs to the thread that asked
            asked.set_exception(error)
