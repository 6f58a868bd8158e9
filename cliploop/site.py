"""What the processes of one service share: the database, the artifacts, the messages, and how to build ports.

The service and the workers are given one of these; a test makes one in a folder of its own.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from cliploop.asked import SystemClock
from cliploop.compose import Composition
from cliploop.serving import Serving
from orchestrator.errors import JobWaiting
from orchestrator.ports import Ports
from orchestrator.records import Policy, Task
from storage.artifacts import LocalArtifacts
from storage.beats import machine
from storage.booked import BookedArtifacts, Store
from storage.database import BUSY_SECONDS, Database
from storage.folders import JOBS_GO_ON, low_on_space
from storage.jobs import StoredJob
from storage.pacing import ANSWER_SECONDS, SharedPacing
from storage.postgres import PostgresDatabase
from storage.queue import Messages
from storage.s3 import HURRIED, PATIENT, S3Artifacts
from storage.sql import SqlDatabase
from storage.sweeper import Sweep, Terms

DATA = Path("cliploop-data")
HURRIED_SECONDS = 5.0  # for another writer of SQLite
HOUR_SECONDS, DAY_SECONDS = 3600.0, 86400.0


@dataclass(frozen=True)
class Addresses:
    """Where the parts of a service are. `data` is a folder of this machine; the rest are URLs.

    `database` is PostgreSQL's, or None for SQLite in the data folder; `artifacts` is `s3://bucket/prefix`, or
    None for a folder there.
    """

    data: Path
    broker: str
    database: str | None = None
    artifacts: str | None = None

    def environment(self) -> dict[str, str]:
        """The variables that tell a child process the same; no secret is ever on a command line."""
        said = {
            "CLIPLOOP_DATA": str(self.data.absolute()),
            "CLIPLOOP_REDIS_URL": self.broker,
            "CLIPLOOP_DATABASE_URL": self.database,
            "CLIPLOOP_ARTIFACTS_URL": self.artifacts,
        }
        return {name: value for name, value in said.items() if value is not None}

    def opened_database(self, *, patient: bool = True) -> SqlDatabase:
        """The database, made if there is none. Raises BackendMisconfigured, BackendUnavailable, JobWaiting.

        `patient`: nobody waits for an answer, so that other writers are waited for longer.
        """
        if self.database:
            return PostgresDatabase(self.database)
        busy_seconds = BUSY_SECONDS if patient else HURRIED_SECONDS
        return Database(self._file, service=True, busy_seconds=busy_seconds)

    def opened_store(self, *, patient: bool = True) -> Store:
        """Where the artifacts are; `patient` as above. Raises BackendMisconfigured, BackendUnavailable."""
        data = self.data.absolute()
        if self.artifacts:
            return S3Artifacts(self.artifacts, data / "copies", pace=PATIENT if patient else HURRIED)
        return LocalArtifacts(data / "artifacts", service=True)

    @property
    def scratch(self) -> Path:
        """Where encoders write."""
        return self.data.absolute() / "scratch"

    @property
    def has_database(self) -> bool:
        """Whether there is one already, as far as that can be seen without making it."""
        return bool(self.database) or self._file.exists()

    @property
    def _file(self) -> Path:
        return self.data.absolute() / "cliploop.sqlite"

    @classmethod
    def of(cls, environ: Mapping[str, str], *, broker: str = "") -> Addresses:
        """As the environment says; `broker` is the embedded one's, where none is named."""
        return cls(
            data=Path(environ.get("CLIPLOOP_DATA") or DATA),
            broker=environ.get("CLIPLOOP_REDIS_URL") or broker,
            database=environ.get("CLIPLOOP_DATABASE_URL") or None,
            artifacts=environ.get("CLIPLOOP_ARTIFACTS_URL") or None,
        )


@dataclass(frozen=True)
class Site:
    """Open connections to all parts."""

    database: SqlDatabase
    artifacts: BookedArtifacts
    messages: Messages
    composition: Composition
    scratch: Path

    @classmethod
    def opened(cls, addresses: Addresses, composition: Composition, *, patient: bool = False) -> Site:
        """Connect. `patient`: for work whose loss costs more than a wait; without, somebody waits for an answer.

        Raises BackendMisconfigured, BackendUnavailable, JobWaiting(disk).
        """
        database = addresses.opened_database(patient=patient)
        try:
            store = addresses.opened_store(patient=patient)
        except BaseException:
            database.close()
            raise
        try:
            messages = Messages(addresses.broker)
        except BaseException:
            store.close()
            database.close()
            raise
        addresses.scratch.mkdir(exist_ok=True)
        return cls(database, BookedArtifacts(database, store), messages, composition, addresses.scratch)

    def ports(
        self, policy: Policy, progress: Callable[[str, float], None], cancelled: Callable[[], bool]
    ) -> Ports:
        """The ports that a job's frozen policy names. Raises BackendMisconfigured."""
        return self.composition.ports(
            policy,
            self.artifacts,
            clock=SystemClock(),
            progress=progress,
            cancelled=cancelled,
            scratch=self.scratch,
            pacing=self.pacing,
        )

    @cached_property
    def pacing(self) -> SharedPacing:
        """Whose turn it is at a VLM, among all processes on this broker."""
        return SharedPacing(self.messages.pool(ANSWER_SECONDS))

    def sweep(self) -> Sweep:
        """A sweep by the operator's settings."""
        terms = terms_of(self.composition.settings.service)
        return Sweep(self.database, self.artifacts.store, self.scratch, terms)

    @property
    def least_free_bytes(self) -> int:
        """The low-water mark of this machine's disk."""
        return int(self.composition.settings.service.min_free_gib * 2**30)

    def has_room(self) -> bool:
        """Whether the disk has at least so much left: with less, no new clip is begun."""
        return not low_on_space(self.scratch, self.least_free_bytes)

    def require_room(self) -> None:
        """Raise JobWaiting(disk) below the low-water mark."""
        if not self.has_room():
            least = self.composition.settings.service.min_free_gib
            raise JobWaiting(
                "disk",
                f"less than {least:g} GiB are free at {self.scratch.parent}: free some space, {JOBS_GO_ON}",
                outside="this server's disk is nearly full: it takes no more until there is room",
            )

    def close(self) -> None:
        """Give back every connection."""
        if "pacing" in vars(self):
            self.pacing.close()
        self.messages.close()
        self.artifacts.store.close()
        self.database.close()

    def __enter__(self) -> Site:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def terms_of(kept: Serving) -> Terms:
    """How long the sweeper keeps what, as the operator set it."""
    retention = None if kept.retention_days is None else kept.retention_days * DAY_SECONDS
    return Terms(kept.sweep_after_seconds, kept.upload_keep_hours * HOUR_SECONDS, retention)


def asked_of(stored: StoredJob) -> tuple[Task, Policy]:
    """The records of a stored job. Raises pydantic.ValidationError for those of a version that had others."""
    return Task.model_validate(stored.task), Policy.model_validate(stored.policy)


def is_loopback(host: str) -> bool:
    """Whether an address, or the name `localhost`, is this machine and nothing else."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def process_name(role: str) -> str:
    """Who holds a lease: role, machine, process."""
    return f"{role}@{machine()}:{os.getpid()}"
