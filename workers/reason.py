"""What a reason worker does: go on with a job as far as it can without rendering, and send its missing clips."""

from __future__ import annotations

import logging
from functools import partial

from cliploop.site import Site, asked_of
from orchestrator.errors import JobNotFound
from storage.jobs import load_job
from storage.journal import read_entries
from storage.leases import LeaseLost, hand_back, release, take
from storage.queue import PRIORITIES
from storage.submissions import priority_of
from workers.desk import Desk
from workers.heartbeat import renewed
from workers.playing import visit

_log = logging.getLogger(__name__)


def is_clip(key: str) -> bool:
    """Whether the effect of this key is a render."""
    return key.endswith("/clip")


def advance(desk: Desk, job_id: str) -> None:
    """Go on with a job until it waits for clips or for somebody, or has ended. Harmless if called too often.

    Whoever finds the lease taken only says that there is more to do; the holder looks again before it leaves.
    """
    site = desk.site
    try:
        lease = take(site.database, f"job/{job_id}", desk.name)
        while lease is not None:
            try:
                with renewed(site.database, lease):
                    runnable = partial(_may_run, desk)
                    missing = visit(desk, job_id, lease, runnable=runnable, whole=True).missing
                    _send(site, job_id, missing)
            except BaseException:
                hand_back(site.database, lease)
                raise
            lease = release(site.database, lease)
    except LeaseLost as lost:
        _log.warning("job %s: %s", job_id, lost)
    except JobNotFound:
        _log.info("job %s was deleted", job_id)


def _may_run(desk: Desk, key: str) -> bool:
    desk.stop_if_ending()
    return not is_clip(key)


def _send(site: Site, job_id: str, missing: tuple[str, ...]) -> None:
    """A job that has clips goes before those that have none: it ends sooner, and fewer are under way at a time.

    Jobs that begin together would else also end together, and their videos be encoded while nothing renders.
    """
    if not missing:
        return
    stored = load_job(site.database, job_id)
    _, policy = asked_of(stored)
    priority = priority_of(site.database, job_id)
    assert priority in PRIORITIES
    begun = any(is_clip(entry.key) for entry in read_entries(site.database, job_id))
    for key in reversed(missing) if begun else missing:
        site.messages.render(policy.generator, priority, job_id, key, first=begun)
