"""Which workers live, and what nobody would do: by their signs of life, asked for at most once a second."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from cliploop.site import Site
from orchestrator.errors import BackendUnavailable, JobNotFound
from storage.beats import role_of
from storage.jobs import State, load_job
from storage.leases import any_held, is_held
from storage.sql import SqlDatabase

KEPT_SECONDS = 1.0
ASKED_AT_ONCE = 100  # jobs
ROLES = ("reason", "render")


@dataclass(frozen=True)
class Muster:
    """Who was there when somebody looked. `known`: whether the broker could say."""

    known: bool = False
    roles: Counter[str] = field(default_factory=Counter[str])
    generators: frozenset[str] = frozenset()

    @classmethod
    def of(cls, workers: dict[str, tuple[str, ...]]) -> Muster:
        """Of the workers that live, with the generators of each."""
        rendered: Iterable[str] = (name for names in workers.values() for name in names)
        return cls(True, Counter(map(role_of, workers)), frozenset(rendered))

    def missing(self) -> dict[str, str]:
        """The roles that nobody has, with what to do; nothing where it is not known."""
        said = {
            "reason": "no reason worker lives: start `cliploop worker reason`",
            "render": "no render worker lives: start `cliploop worker render --generator NAME`",
        }
        return {role: said[role] for role in ROLES if self.known and not self.roles[role]}

    def lacks(self, generator: str) -> str | None:
        """Whom a job of this generator waits for while nobody works on it."""
        if not self.known:
            return None
        if not self.roles["reason"]:
            return "a reason worker"
        return None if generator in self.generators else f"a render worker ({generator})"


class Crew:
    """Of one site. Safe for threads."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._lock = threading.Lock()
        self._looked_at = float("-inf")
        self._seen = Muster()

    @property
    def latest(self) -> Muster | None:
        """What was seen in the last second; never waits."""
        return self._seen if time.monotonic() - self._looked_at < KEPT_SECONDS else None

    def look(self) -> Muster:
        """Who lives. Where the broker is away, that is not known."""
        with self._lock:
            if self.latest is None:
                try:
                    self._seen = Muster.of(self._site.messages.crew())
                except BackendUnavailable:
                    self._seen = Muster()
                self._looked_at = time.monotonic()
            return self._seen

    def wait_for(self, database: SqlDatabase, job_ids: Sequence[str]) -> dict[str, str | None]:
        """The same of several jobs; those that are gone are left out. Raises BackendUnavailable."""
        found: dict[str, str | None] = {}
        for job_id in job_ids[:ASKED_AT_ONCE]:
            with contextlib.suppress(JobNotFound):
                stored = load_job(database, job_id)
                generator = str(stored.policy.get("generator", ""))
                found[job_id] = self.waits_for(job_id, stored.state.state, generator)
        return found

    def waits_for(self, job_id: str, state: State, generator: str) -> str | None:
        """Which worker, that does not live, a job waits for. Raises BackendUnavailable."""
        if state not in ("queued", "running", "cancelling"):
            return None
        lacked = self.look().lacks(generator)
        if lacked is None or (state != "running" and lacked != "a reason worker"):
            return None
        if state == "queued":  # nobody has taken it up
            return lacked
        database = self._site.database
        worked_on = is_held(database, f"job/{job_id}") or any_held(database, f"clip/{job_id}/")
        return None if worked_on else lacked
