"""What a render worker does: make one clip of a job, record it, and wake the job."""

from __future__ import annotations

import logging
import time

from cliploop.site import Site
from orchestrator.errors import BackendUnavailable, JobNotFound
from storage.leases import LeaseLost, hand_back, release, take
from workers.heartbeat import renewed
from workers.playing import visit

PROGRESS_TOLD_EVERY_SECONDS = 0.2
_log = logging.getLogger(__name__)


def render(site: Site, job_id: str, key: str, holder: str) -> None:
    """Render the clip `key` if it is still missing. Harmless if called too often: a lease decides.

    The job is replayed up to the clip, which is made, stored and recorded here; what comes after it is not ours.
    """
    try:
        lease = take(site.database, f"clip/{job_id}/{key}", holder)
        if lease is None:
            return
        try:
            with renewed(site.database, lease):
                visit(
                    site,
                    job_id,
                    lease,
                    runnable=lambda wanted: wanted == key or wanted.startswith(f"{key}/"),
                    progress=_Teller(site, job_id),
                    whole=False,
                )
        except BaseException:
            hand_back(site.database, lease)
            raise
        while lease is not None:  # who came meanwhile came for the same clip
            lease = release(site.database, lease)
    except LeaseLost as lost:
        _log.warning("%s of job %s: %s", key, job_id, lost)
    except JobNotFound:
        _log.info("job %s was deleted", job_id)
        return
    site.messages.advance(job_id)


class _Teller:
    """Tells watchers how far a clip is; a broker that is away is no reason to stop rendering."""

    def __init__(self, site: Site, job_id: str) -> None:
        self._site, self._job_id, self._at = site, job_id, 0.0

    def __call__(self, key: str, fraction: float) -> None:
        now = time.monotonic()
        if now - self._at < PROGRESS_TOLD_EVERY_SECONDS and fraction < 1.0:
            return
        self._at = now
        try:
            self._site.messages.tell(self._job_id, {"key": key, "fraction": round(fraction, 4)}, "progress")
        except BackendUnavailable:
            return
