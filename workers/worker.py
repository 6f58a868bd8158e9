"""The worker process: takes a message, does it, takes the next; in the main thread, no fork, backends warm.

SIGTERM and SIGINT hand the work back: the job's lease is given up, and its message is sent again.
"""

from __future__ import annotations

import contextlib
import logging
import signal
import threading
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field

from cliploop.site import Site
from orchestrator.errors import CliploopError
from storage.queue import ADVANCE, RENDER, Message
from storage.reaper import reaping
from storage.rounds import Trouble
from storage.sweeping import sweeping
from workers.desk import Desk, HandBack
from workers.limits import Limits
from workers.reason import advance
from workers.render import render
from workers.turns import Turns

WAIT_SECONDS = 1.0
CLIPS_UNDER_WAY = 3  # one renders, one is encoded and stored, one is made ready just before its turn
STORE_SECONDS = 4.0  # for what is being stored when the process is to end
AWAY_SECONDS = 0.5  # between looks for a broker or a database that is away
_log = logging.getLogger(__name__)


@dataclass
class Worker:
    """Takes messages from these queues until it is asked to end. `name` is the holder of its leases.

    With `several`, a clip is encoded and stored while the next one renders.
    """

    site: Site
    queues: Sequence[str]
    name: str
    limits: Limits = field(default_factory=Limits)
    several: bool = False
    _busy: bool = field(default=False, init=False)  # the main thread is in a message, and may be interrupted

    def __post_init__(self) -> None:
        self._trouble = Trouble("taking of messages")
        self._desk = Desk(self.site, self.name, self.limits, several=self.several)

    def warm(self, generator: str) -> None:
        """Load a generator before the first clip, and before anybody counts on this worker.

        Call it in the main thread. Raises BackendMisconfigured.
        """
        self._desk.backends.warm(generator)

    def work(self) -> None:
        """Work until a signal comes. Call it in the main thread."""
        site = self.site
        reaped = reaping(site.database, site.messages, self.name, site.has_room)
        swept = sweeping(site.sweep(), self.name, site.least_free_bytes, site.messages)
        with self._signals(), reaped, swept:
            if self._desk.turns is not None:
                self._work_by_turns(self._desk.turns)
            while not self._desk.ending:
                message = self._next()
                if message is not None:
                    self._do(message, alone=True)

    def _work_by_turns(self, turns: Turns) -> None:
        """Renders here; the rest of each clip in a thread. A clip that is being stored at the end is stored."""
        threads = [
            threading.Thread(target=self._take_turns, args=(turns,), name=f"clip {number}", daemon=True)
            for number in range(CLIPS_UNDER_WAY)
        ]
        for thread in threads:
            thread.start()
        turns.serve(lambda: self._desk.ending)
        limit = time.monotonic() + STORE_SECONDS
        turns.serve(lambda: time.monotonic() > limit or not any(thread.is_alive() for thread in threads))

    def _take_turns(self, turns: Turns) -> None:
        while not self._desk.ending:
            if not turns.take():
                continue
            try:
                message = self._next()
                if message is not None:
                    self._do(message, alone=False)
            except BaseException:  # nothing may end this thread: the process would look alive and do less
                _log.exception("a fault in a turn")
                time.sleep(AWAY_SECONDS)
            finally:
                turns.give()

    def _next(self) -> Message | None:
        try:
            message = self.site.messages.take(self.queues, WAIT_SECONDS)
        except Exception as error:
            self._trouble.note(error)
            time.sleep(AWAY_SECONDS)
            return None
        self._trouble.over()
        return message

    def _do(self, message: Message, *, alone: bool) -> None:
        """One message. A failure of ours costs the message, not the worker: the reaper sends it again."""
        self._busy = alone
        try:
            self._desk.stop_if_ending()
            DOES[message.function](self._desk, message)
        except HandBack:
            self._busy = False
            self._return(message)
        except CliploopError as error:
            _log.warning("%s%s: %s", message.function, message.arguments, error)
            time.sleep(AWAY_SECONDS)
        except Exception:
            _log.exception("%s%s", message.function, message.arguments)
            time.sleep(AWAY_SECONDS)
        finally:
            self._busy = False

    def _return(self, message: Message) -> None:
        with contextlib.suppress(Exception):  # the reaper sends it again
            self.site.messages.advance(message.arguments[0])

    @contextlib.contextmanager
    def _signals(self) -> Generator[None]:
        def end(_number: int, _frame: object) -> None:
            first, self._desk.ending = not self._desk.ending, True
            turns = self._desk.turns
            if first and (self._busy or (turns is not None and turns.rendering)):
                raise HandBack

        numbers = (signal.SIGTERM, signal.SIGINT)
        before = {number: signal.signal(number, end) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _advance(desk: Desk, message: Message) -> None:
    (job_id,) = message.arguments
    advance(desk, job_id)


def _render(desk: Desk, message: Message) -> None:
    job_id, key = message.arguments
    render(desk, job_id, key)


DOES: dict[str, Callable[[Desk, Message], None]] = {ADVANCE: _advance, RENDER: _render}
