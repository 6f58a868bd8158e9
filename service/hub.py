"""News of jobs, fanned out to all who watch: one ear on the broker, one reader per watched job.

What is told on the broker only wakes; what watchers get is read from the journal, in its order. While the broker
is away the database is asked every second instead. It knows nothing of HTTP but the form of an event.
"""

from __future__ import annotations

import asyncio
import bisect
import contextlib
import json
import logging
import threading
from collections import OrderedDict
from collections.abc import AsyncGenerator, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from starlette.concurrency import run_in_threadpool

from cliploop.site import Site
from orchestrator.errors import BackendUnavailable, CliploopError
from service.crew import Crew
from storage.jobs import FINAL_STATES
from storage.journal import Entry, read_entries
from storage.submissions import last_sequences

ASK_EVERY_SECONDS = 1.0  # the database, while the broker is away
ASK_ANYWAY = 5  # every so many of these rounds, in case a word was lost
HEARTBEAT_SECONDS = 15.0
KEPT_WORDS = 4096
_LISTEN_SECONDS = 0.25  # so long the end of the process waits for the ear
_ASKED_AT_ONCE = 500
_DELETED = b"event: deleted\ndata: {}\n\n"
_HEARTBEAT = b": still there\n\n"
_log = logging.getLogger(__name__)


def event(kind: str, words: dict[str, Any], number: int | None = None) -> bytes:
    """One server-sent event; only what is stored has a number."""
    head = "" if number is None else f"id: {number}\n"
    return f"{head}event: {kind}\ndata: {json.dumps(words, separators=(',', ':'))}\n\n".encode()


@dataclass
class Feed:
    """A watched job: its events so far, ready to be sent. Of the event loop alone."""

    job_id: str
    sequences: list[int] = field(default_factory=list[int])
    events: list[bytes] = field(default_factory=list[bytes])
    progress: tuple[int, bytes] = (0, b"")  # how many were told, and the latest
    waits_for: str | None = None  # the worker that it waits for, and that does not live
    over: bool = False  # nothing can follow
    watchers: int = 0
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    farewell: bytes = b""  # for those who saw all events of a job that is gone
    reading: asyncio.Task[None] | None = None
    again: bool = False  # there was news while it was read

    @property
    def last(self) -> int:
        return self.sequences[-1] if self.sequences else 0

    def add(self, entries: list[Entry]) -> None:
        """Append entries; after a final state nothing follows."""
        for entry in entries:
            self.sequences.append(entry.sequence)
            said = {name: value for name, value in asdict(entry).items() if name != "inputs"}
            self.events.append(event(entry.kind, said, entry.sequence))
            self.over = self.over or (entry.kind == "state" and entry.value["state"] in FINAL_STATES)

    def after(self, number: int) -> list[bytes]:
        """The events with a number above this one."""
        return self.events[bisect.bisect_right(self.sequences, number) :]

    def tell(self) -> None:
        """Wake all watchers."""
        self.changed.set()
        self.changed = asyncio.Event()


class Hub:
    """All feeds of a process. `running` keeps it going; `end` ends every watch, from any thread."""

    def __init__(self, site: Site, crew: Crew | None = None) -> None:
        self._site, self._crew = site, crew
        self._feeds: dict[str, Feed] = {}
        self._told: OrderedDict[str, dict[str, Any] | None] = OrderedDict()  # progress, by job
        self._told_lock = threading.Lock()
        self._ending = threading.Event()
        self._broker_away = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Listen while the block runs."""
        self._loop = asyncio.get_running_loop()
        ear = threading.Thread(target=self._listen, name="events", daemon=True)
        ear.start()
        asking = asyncio.create_task(self._ask())
        try:
            yield
        finally:
            self.end()
            asking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asking
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await asyncio.to_thread(ear.join)

    def end(self) -> None:
        """End every watch: the process ends, and clients come back to another one with their last number."""
        self._ending.set()
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._tell_all)

    def progress_of(self, job_id: str) -> dict[str, Any] | None:
        """What was last told of the job's progress: heard here, or asked of the broker once. For any thread."""
        with self._told_lock:
            if job_id in self._told:
                return self._told[job_id]
        try:
            words = self._site.messages.progress(job_id)
        except BackendUnavailable:
            return None
        if not self._broker_away:
            self._keep(job_id, words, heard=False)
        return words

    def _keep(self, job_id: str, words: dict[str, Any] | None, *, heard: bool) -> None:
        with self._told_lock:
            if heard or job_id not in self._told:
                self._told[job_id] = words
            while len(self._told) > KEPT_WORDS:
                self._told.popitem(last=False)

    async def watch(self, job_id: str, after: int) -> AsyncGenerator[bytes]:
        """The job's events with a number above `after`, then those that come, until its final one."""
        feed = self._feeds.setdefault(job_id, Feed(job_id))
        feed.watchers += 1
        told, waited_for = feed.progress[0], None
        try:
            await asyncio.shield(self._refresh(feed))  # others read along: it goes on if this one leaves
            while not self._ending.is_set():
                changed, news = feed.changed, feed.after(after)
                after = max(after, feed.last)
                if feed.progress[0] != told and not feed.over:
                    told = feed.progress[0]
                    news.append(feed.progress[1])
                if feed.waits_for != waited_for and not feed.over:
                    waited_for = feed.waits_for
                    news.append(event("waits", {"for": waited_for}))
                if news:
                    yield b"".join(news)
                elif feed.over:
                    yield feed.farewell
                    return
                elif not await _happened(changed):
                    yield _HEARTBEAT
        finally:
            feed.watchers -= 1
            if not feed.watchers and self._feeds.get(job_id) is feed:
                del self._feeds[job_id]

    def _refresh(self, feed: Feed) -> asyncio.Task[None]:
        """Read on in the journal; news that comes meanwhile has it read once more."""
        feed.again = True
        if feed.reading is None:
            feed.reading = asyncio.create_task(self._read(feed))
            self._tasks.add(feed.reading)
            feed.reading.add_done_callback(self._tasks.discard)
        return feed.reading

    async def _read(self, feed: Feed) -> None:
        try:
            while feed.again and not feed.over:
                feed.again = False
                feed.add(await run_in_threadpool(read_entries, self._site.database, feed.job_id, feed.last))
        except CliploopError as error:
            _log.warning("could not read the journal of job %s: %s", feed.job_id, error)
        finally:
            feed.reading = None
            feed.tell()

    def _listen(self) -> None:
        """In a thread: pass on what is told on the broker."""
        while not self._ending.is_set():
            try:
                for heard in self._overheard():
                    if self._ending.is_set():
                        return
                    self._post(heard)
            except Exception as error:  # whatever it was, the next word may be heard
                if not self._broker_away:
                    fault = None if isinstance(error, CliploopError) else error
                    _log.warning("events come from the database alone: %s", error, exc_info=fault)
                self._broker_away = True
                with self._told_lock:
                    self._told.clear()
                self._ending.wait(ASK_EVERY_SECONDS)

    def _overheard(self) -> Iterator[tuple[str, dict[str, Any]] | None]:
        for heard in self._site.messages.overheard(_LISTEN_SECONDS):
            if self._broker_away:  # whatever was told meanwhile was lost: all are asked at once
                self._broker_away = False
                assert self._loop is not None
                self._loop.call_soon_threadsafe(self._refresh_all)
            yield heard

    def _post(self, heard: tuple[str, dict[str, Any]] | None) -> None:
        if heard is None:
            return
        job_id, words = heard
        if words.get("kind") == "progress":
            self._keep(job_id, {name: value for name, value in words.items() if name != "kind"}, heard=True)
        if job_id in self._feeds:
            assert self._loop is not None
            self._loop.call_soon_threadsafe(self._hear, *heard)

    def _hear(self, job_id: str, words: dict[str, Any]) -> None:
        feed = self._feeds.get(job_id)
        if feed is None:
            return
        if words.pop("kind", "news") == "progress":
            feed.progress = (feed.progress[0] + 1, event("progress", words))
            feed.tell()
        else:
            self._refresh(feed)

    def _refresh_all(self) -> None:
        for feed in self._feeds.values():
            self._refresh(feed)

    def _tell_all(self) -> None:
        for feed in self._feeds.values():
            feed.tell()

    async def _ask(self) -> None:
        """Ask the database for news: every round while the broker is away, now and then otherwise."""
        rounds = 0
        while True:
            await asyncio.sleep(ASK_EVERY_SECONDS)
            rounds += 1
            if not self._broker_away and rounds % ASK_ANYWAY:
                continue
            watched = list(self._feeds)
            await self._ask_whom_they_wait_for(watched)
            for first in range(0, len(watched), _ASKED_AT_ONCE):
                try:
                    await self._ask_for(watched[first : first + _ASKED_AT_ONCE])
                except Exception as error:  # nobody asks in its place
                    fault = None if isinstance(error, CliploopError) else error
                    _log.warning("could not ask for news: %s", error, exc_info=fault)

    async def _ask_whom_they_wait_for(self, watched: list[str]) -> None:
        """Only while a worker is missing does this cost more than one look a round."""
        if self._crew is None or not watched:
            return
        try:
            waits = await run_in_threadpool(self._crew.wait_for, self._site.database, watched)
        except CliploopError as error:
            _log.warning("could not ask for workers: %s", error)
            return
        for job_id, worker in waits.items():
            feed = self._feeds.get(job_id)
            if feed is not None and feed.waits_for != worker:
                feed.waits_for = worker
                feed.tell()

    async def _ask_for(self, job_ids: list[str]) -> None:
        latest = await run_in_threadpool(last_sequences, self._site.database, job_ids)
        for job_id in job_ids:
            feed = self._feeds.get(job_id)
            if feed is None or feed.over:
                continue
            if job_id not in latest:
                feed.over, feed.farewell = True, _DELETED
                feed.tell()
            elif latest[job_id] > feed.last:
                self._refresh(feed)


async def _happened(changed: asyncio.Event) -> bool:
    """Whether it happened before the next heartbeat is due."""
    try:
        async with asyncio.timeout(HEARTBEAT_SECONDS):
            await changed.wait()
    except TimeoutError:
        return False
    return True
