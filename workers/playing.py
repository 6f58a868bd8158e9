"""One visit to a job: replay its journal, go on as far as this process may, and note how the visit ended.

The same function serves both kinds of worker: a reason worker may do everything but render, a render worker
nothing but one clip. It knows leases and states; not queues, and no concrete backend.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Connection

from cliploop.site import Site, asked_of
from orchestrator.errors import BackendUnavailable, CliploopError, JobCancelled, JobWaiting, Suspended
from orchestrator.loop import run
from orchestrator.ports import Ports
from orchestrator.records import ArtifactKey, WaitReason
from storage import references
from storage.artifacts import ArtifactMissing, StoreUnusable
from storage.jobs import FINAL_STATES, JobState, load_job
from storage.journal import EntryConflict, Event, SqlJournal, StateChanged, read_entries
from storage.leases import Lease, LeaseLost, any_held, require
from workers.desk import Desk

CANCEL_ASKED_EVERY_SECONDS = 0.25
TAKEN_UP_ON_PURPOSE: frozenset[WaitReason] = frozenset({"unclear", "backend", "disk"})  # each try costs something
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Visit:
    """How a visit ended: the keys that are missing here; `()` where there is nothing to wait for."""

    missing: tuple[str, ...] = ()


def visit(
    desk: Desk,
    job_id: str,
    lease: Lease,
    *,
    runnable: Callable[[str], bool],
    progress: Callable[[str, float], None] = lambda _key, _fraction: None,
    equip: Callable[[Ports], Ports] = lambda ports: ports,
    whole: bool,
) -> Visit:
    """Go on with the job under a lease. `whole`: this process decides how the job ends, not only its clip.

    A late message does not take up a job that waits for what another try would cost: `submissions.take_up` does.
    Raises LeaseLost if somebody else took over, JobNotFound if the job was deleted, BackendUnavailable if the
    database is away: the job goes on when it is back.
    """
    state = load_job(desk.site.database, job_id).state
    if state.state in FINAL_STATES or state.reason in TAKEN_UP_ON_PURPOSE:
        return Visit()
    journal = _journal(desk.site, job_id, lease, runnable)
    try:
        _play_on(desk, job_id, journal, progress, equip, whole)
    except Suspended as missing:
        return Visit(missing.keys)
    except (LeaseLost, BackendUnavailable):
        raise
    except JobWaiting as stop:
        if stop.reason == "changed" and journal.state().state == "queued":
            journal.set_state("running")  # or nobody would ever be told: no worker takes it up as it is
        journal.wait(stop)
    except (ArtifactMissing, StoreUnusable) as away:  # a fault of the store: files may be brought back
        journal.wait(JobWaiting("backend", str(away)))
    except JobCancelled:
        if whole:
            _cancelled(journal)
    except (CliploopError, ValidationError) as error:
        _failed(journal, str(error))
    except Exception as error:
        _log.exception("job %s: a fault of ours", job_id)
        if isinstance(error, OSError) and error.errno is not None:  # of this machine: another try may do better
            journal.wait(JobWaiting("backend", f"a file could not be used here: {error}"))
            return Visit()
        _failed(journal, f"internal error: {type(error).__name__}: {error}")
    return Visit()


def _play_on(
    desk: Desk,
    job_id: str,
    journal: SqlJournal,
    progress: Callable[[str, float], None],
    equip: Callable[[Ports], Ports],
    whole: bool,
) -> None:
    """Play; what another process recorded meanwhile (the quick check of a clip) stands, and is read."""
    while True:
        try:
            return _play(desk, job_id, journal, progress, equip, whole)
        except EntryConflict as conflict:
            _log.info("%s", conflict)


def _play(
    desk: Desk,
    job_id: str,
    journal: SqlJournal,
    progress: Callable[[str, float], None],
    equip: Callable[[Ports], Ports],
    whole: bool,
) -> None:
    site = desk.site
    task, policy = asked_of(load_job(site.database, job_id))
    ports = equip(desk.backends.ports(policy, progress, _cancelled_asked(site, job_id)))
    if whole and journal.state().state == "cancelling":
        if any_held(site.database, f"clip/{job_id}/"):
            return  # the clip's worker stops it and comes back
        raise JobCancelled(f"job {job_id} is being cancelled")
    outcome = run(task, policy, ports, journal)
    if whole:
        journal.set_state("succeeded", outcome=outcome.kind)


def _journal(site: Site, job_id: str, lease: Lease, runnable: Callable[[str], bool]) -> SqlJournal:
    missed: set[ArtifactKey] = set()

    def fence(connection: Connection, value: Mapping[str, Any]) -> None:
        require(connection, lease)
        lost = references.missing(connection, value)
        if lost & missed:
            raise ArtifactMissing(
                f"{', '.join(sorted(lost))} of job {job_id} cannot be found: bring the files back"
            )
        if lost:  # this process stood still for so long that they were swept: they are made once more
            missed.update(lost)
            raise EntryConflict(f"{len(lost)} artifacts of job {job_id} were removed before they were recorded")
        references.hold(connection, job_id, value)

    def tell(event: Event) -> None:
        sequence = getattr(event, "sequence", None)
        if sequence is None:
            key = getattr(event, "key", "")
            _log.log(logging.INFO if key.endswith("/clip") else logging.DEBUG, "job %s: %s begins", job_id, key)
            return
        if isinstance(event, StateChanged):
            _log_change(site, job_id, event.state)
        with contextlib.suppress(BackendUnavailable):  # watchers look at the database now and then
            site.messages.tell(job_id, {"sequence": sequence})

    return SqlJournal(site.database, job_id, watcher=tell, runnable=runnable, fence=fence)


def _log_change(site: Site, job_id: str, state: JobState) -> None:
    """A line for operators; what the job is about is never in it."""
    if state.state == "running":
        _log.info("job %s: begun", job_id)
    elif state.state == "waiting":
        _log.info("job %s: waits (%s): %s", job_id, state.reason, state.message)
    elif state.state in FINAL_STATES:
        entries = read_entries(site.database, job_id)
        began = next((each.recorded_at for each in entries if each.value.get("state") == "running"), None)
        seconds = "" if began is None else f", {entries[-1].recorded_at - began:.1f} s after it began"
        how = f" ({state.outcome})" if state.outcome else ""
        why = f": {state.message}" if state.message else ""
        _log.info("job %s: %s%s%s%s", job_id, state.state, how, seconds, why)


def _cancelled_asked(site: Site, job_id: str) -> Callable[[], bool]:
    """Whether somebody asked to cancel; the database is asked now and then, not at every denoising step."""
    known, asked_at = False, 0.0

    def cancelled() -> bool:
        nonlocal known, asked_at
        now = time.monotonic()
        if not known and now - asked_at > CANCEL_ASKED_EVERY_SECONDS:
            asked_at = now
            known = load_job(site.database, job_id).state.state in ("cancelling", "cancelled")
        return known

    return cancelled


def _cancelled(journal: SqlJournal) -> None:
    """The work has stopped: only now is the job cancelled."""
    if journal.state().state == "cancelling":
        journal.set_state("cancelled")


def _failed(journal: SqlJournal, message: str) -> None:
    state = journal.state().state
    if state == "queued":
        journal.set_state("running")
    if state == "cancelling":
        journal.set_state("cancelled")
    elif state not in FINAL_STATES:
        journal.set_state("failed", message=message)
