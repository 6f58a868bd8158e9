"""A stored job's trajectory, from its journal alone: no backend is built to read it."""

from __future__ import annotations

from typing import Any, cast

from pydantic import ValidationError

from cliploop.site import Site, asked_of
from orchestrator.ports import Ports
from orchestrator.records import Trajectory
from orchestrator.trajectory import trajectory_of
from service.problems import Refused
from storage.jobs import StoredJob
from storage.journal import SqlJournal

_NOBODY = cast("Any", None)  # a replay runs no effect: it asks none of them
NO_PORTS = Ports(_NOBODY, _NOBODY, _NOBODY, _NOBODY, _NOBODY, _NOBODY, _NOBODY)


def trajectory(site: Site, stored: StoredJob) -> Trajectory:
    """All of the job so far. Raises Refused (409) for a job that another version stored."""
    try:
        task, policy = asked_of(stored)
    except ValidationError as error:
        raise Refused(
            409, "other_version", f"job {stored.id} was stored by another version: read it with that"
        ) from error
    return trajectory_of(stored.id, task, policy, NO_PORTS, SqlJournal(site.database, stored.id))
