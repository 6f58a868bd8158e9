"""What a render worker does: make one clip of a job, record it, and wake the job."""

from __future__ import annotations

import contextlib
import itertools
import logging
import threading
import time
from dataclasses import dataclass, replace
from functools import partial

from cliploop.site import Site
from orchestrator.errors import BackendUnavailable, JobNotFound
from orchestrator.ports import Ports
from storage.journal import read_entries
from storage.leases import Lease, LeaseLost, hand_back, release, take
from workers.backends import SpentGenerator
from workers.desk import Desk
from workers.heartbeat import renewed
from workers.playing import visit

PROGRESS_TOLD_EVERY_SECONDS = 0.2
STARTS_AT_MOST = 10  # of one clip, whatever ended the earlier ones
_log = logging.getLogger(__name__)


def render(desk: Desk, job_id: str, key: str) -> None:
    """Render the clip `key` if it is still missing. Harmless if called too often: a lease decides.

    The job is replayed up to the clip, which is made, stored and recorded here, and so is its quick check, for
    which the frames are still at hand; what comes after that is not ours.
    """
    site = desk.site
    check = f"{key.removesuffix('/clip')}/check"
    try:
        lease = take(site.database, f"clip/{job_id}/{key}", desk.name)
        if lease is None:
            return
        try:
            with renewed(site.database, lease) as lost:
                visit(
                    desk,
                    job_id,
                    lease,
                    runnable=lambda wanted: wanted in (key, check) or wanted.startswith(f"{key}/"),
                    progress=_Teller(desk, job_id, lease, lost),
                    equip=partial(_equipped, site, job_id, lease),
                    whole=False,
                )
        except BaseException:
            hand_back(site.database, lease)
            raise
        while lease is not None:  # who came meanwhile came for the same clip
            lease = release(site.database, lease)
    except LeaseLost as lost_now:
        _log.warning("%s of job %s: %s", key, job_id, lost_now)
    except JobNotFound:
        _log.info("job %s was deleted", job_id)
        return
    site.messages.advance(job_id)


def _equipped(site: Site, job_id: str, lease: Lease, ports: Ports) -> Ports:
    """Every taking of a clip's lease is a start of it; a clip that ends its worker each time is given up.

    A start that only found the disk full, or the backend away, ended no worker.
    """
    if lease.token <= STARTS_AT_MOST:
        return ports
    starts = lease.token - 1 - _waits(site, job_id)
    return ports if starts < STARTS_AT_MOST else replace(ports, generator=SpentGenerator(ports.generator, starts))


def _waits(site: Site, job_id: str) -> int:
    """How often the job has waited since anything of it was recorded."""
    since = itertools.takewhile(
        lambda entry: entry.kind == "state", reversed(read_entries(site.database, job_id))
    )
    return sum(entry.value["state"] == "waiting" for entry in since)


@dataclass
class _Teller:
    """Called at every denoising step: stops a worker that lost its lease or is to end, and tells watchers.

    A broker that is away is no reason to stop rendering.
    """

    desk: Desk
    job_id: str
    lease: Lease
    lost: threading.Event
    at: float = 0.0

    def __call__(self, key: str, fraction: float) -> None:
        self.desk.stop_if_ending()
        if self.desk.turns is not None:
            self.desk.turns.progressed(fraction)
        if self.lost.is_set():
            raise LeaseLost(f"the lease {self.lease.name} is held by somebody else now: the render is dropped")
        now = time.monotonic()
        if now - self.at < PROGRESS_TOLD_EVERY_SECONDS and fraction < 1.0:
            return
        self.at = now
        with contextlib.suppress(BackendUnavailable):
            said = {"key": key, "fraction": round(fraction, 4)}
            self.desk.site.messages.tell(self.job_id, said, "progress")
