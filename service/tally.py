"""What a job's journal adds up to so far: spend, step and attempt; read on from where it was read before."""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

from orchestrator.records import ArtifactKey, Spend
from service.crew import Crew
from storage.journal import Entry, read_entries
from storage.sql import SqlDatabase

KEPT_JOBS = 4096
_STEP = re.compile(r"(gate|step/(\d+))/(?:attempt/(\d+)/)?")
_PAID = re.compile(r"/(try/\d+|clip)$")  # the entries that a job's ledger books


@dataclass
class Tally:
    """One job's. `step` is 0 in the gate; times are seconds since the epoch."""

    seen: int = 0
    key: str = ""  # of the latest effect
    step: int | None = None
    attempt: int | None = None
    clips: set[str] = field(default_factory=set[str])  # the keys of those that are recorded, lost ones too
    furthest: tuple[int, int] = (0, 0)  # the latest step, and the latest attempt in it, that any effect was of
    percent: int = 0  # the most that anybody was told
    spend: Spend = field(default_factory=Spend)
    began_at: float | None = None
    last_at: float = 0.0
    video: ArtifactKey | None = None
    video_seconds: float | None = None
    video_size: tuple[int, int] | None = None  # width and height
    has_webhook: bool | None = None  # None: nobody looked yet
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, entry: Entry) -> None:
        """Book one entry."""
        self.seen, self.last_at = entry.sequence, entry.recorded_at
        if entry.kind == "state":
            if self.began_at is None and entry.value.get("state") == "running":
                self.began_at = entry.recorded_at
            return
        self.place(entry.key)
        if entry.key.endswith("/clip"):
            self.clips.add(entry.key)
        if _PAID.search(entry.key) or entry.kind == "failure":
            self.spend = self.spend + _spend(entry.value)
        if entry.key == "final/video" and entry.kind == "record":
            self._deliver(entry.value)

    def _deliver(self, video: dict[str, Any]) -> None:
        self.video = cast("str", video["artifact"])
        self.video_seconds = float(video["seconds"])
        self.video_size = int(video["size"]["width"]), int(video["size"]["height"])

    def place(self, key: str) -> None:
        """The latest effect is this one."""
        self.key = key
        self.furthest = max(self.furthest, where(key))
        found = _STEP.match(key)
        if found is not None:
            self.step, self.attempt = int(found[2] or 0), int(found[3]) if found[3] else None


def where(key: str) -> tuple[int, int]:
    """Step and attempt of a key, for comparing."""
    found = _STEP.match(key)
    return (int(found[2] or 0), int(found[3] or 0)) if found is not None else (-1, -1)


class Tallies:
    """Those of the jobs that were asked for lately; safe for threads.

    `told(job_id)`: what was last told of its progress. `crew`: the workers that may live, where that is known.
    """

    def __init__(self, told: Callable[[str], dict[str, Any] | None], crew: Crew | None = None) -> None:
        self.told, self.crew = told, crew
        self._known: OrderedDict[str, Tally] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, database: SqlDatabase, job_id: str) -> Tally:
        """The job's, up to its latest entry."""
        with self._lock:
            tally = self._known.setdefault(job_id, Tally())
            self._known.move_to_end(job_id)
            while len(self._known) > KEPT_JOBS:
                self._known.popitem(last=False)
        with tally.lock:
            for entry in read_entries(database, job_id, tally.seen):
                tally.add(entry)
        return tally


def _spend(value: dict[str, Any]) -> Spend:
    spent: Any = value.get("spend")
    return Spend.model_validate(spent) if spent else Spend()
