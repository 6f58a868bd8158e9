"""Several clips under way on one generator: while one is encoded and stored, the next one renders.

Renders run in the main thread, the only one that limits and signals reach; all else of a clip runs in a thread of
its own. Who has the turn may take a message: nobody takes a clip away from other workers only to wait with it.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

LOOK_SECONDS = 0.2

T = TypeVar("T")


class Turns:
    """`stop_if_ending` is called before each render; what it raises is raised in the thread that asked."""

    def __init__(self, stop_if_ending: Callable[[], None]) -> None:
        self._stop_if_ending = stop_if_ending
        self._turn = threading.Semaphore(1)
        self._mine = threading.local()
        self._calls: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = queue.SimpleQueue()
        self.rendering = False  # the main thread is in a call, and may be interrupted

    def take(self) -> bool:
        """Wait a moment for the turn; whether this thread has it now."""
        self._mine.held = self._turn.acquire(timeout=LOOK_SECONDS)
        return self._mine.held

    def give(self) -> None:
        """Let the next one begin. Nothing where this thread does not have the turn."""
        if getattr(self._mine, "held", False):
            self._mine.held = False
            self._turn.release()

    def render(self, call: Callable[[], T]) -> T:
        """Have the main thread do it, then give the turn away: what follows needs no generator."""
        asked: Future[T] = Future()
        self._calls.put((call, asked))
        try:
            return asked.result()
        finally:
            self.give()

    def serve(self, over: Callable[[], bool]) -> None:
        """In the main thread: do what is asked until it is over."""
        while not over():
            try:
                call, asked = self._calls.get(timeout=LOOK_SECONDS)
            except queue.Empty:
                continue
            self._do(call, asked)

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
