"""Where things are on a server."""

from __future__ import annotations

from urllib.parse import quote


def job_path(job_id: str) -> str:
    """A job's address; an id is one segment, whatever it holds. Raises ValueError for an empty one."""
    if not job_id.strip() or job_id in (".", ".."):
        raise ValueError("a job's id is missing")
    return f"/v1/jobs/{quote(job_id, safe='')}"
