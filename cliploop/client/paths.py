"""Where things are on a server."""

from __future__ import annotations

from urllib.parse import quote

from cliploop.client.errors import RequestRejected

LONGEST_NAME = 300


def job_path(job_id: str) -> str:
    """A job's address. Raises RequestRejected for what can be no id, before anything is sent."""
    return f"/v1/jobs/{segment(job_id, 'job')}"


def segment(name: str, what: str) -> str:
    """One segment of an address, whatever the name holds. Raises RequestRejected: `what` has no such name."""
    if not name.strip() or name in (".", ".."):
        raise RequestRejected(f"the {what} has no name: give one", code="usage")
    if len(name) > LONGEST_NAME or not name.isprintable():
        raise RequestRejected(f"no {what} can have this name: correct it", code="usage")
    return quote(name, safe="")
