"""Jobs: read one, list them, cancel, delete."""

from __future__ import annotations

import contextlib
import time
from typing import Annotated

import anyio
from fastapi import APIRouter, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from cliploop.site import Site
from orchestrator.errors import BackendUnavailable
from service.callers import Caller, JobId, TheSite
from service.problems import Refused, documented
from service.submitting import wake
from service.tally import Tallies
from service.views import JobList, JobView, Shown, view
from storage.jobs import FINAL_STATES, IllegalState, State
from storage.submissions import cancel, find, listed, remove

MAX_PAGE = 100
DELETE_WAITS_SECONDS = 20.0
_LOOK_EVERY_SECONDS = 0.1
router = APIRouter(prefix="/v1/jobs")


def tallies_of(request: Request) -> Tallies:
    """What the application knows of journals."""
    tallies: Tallies = request.app.state.tallies
    return tallies


@router.get("", response_model=JobList, responses=documented(404), summary="List jobs, newest first")
def list_jobs(
    request: Request,
    site: TheSite,
    caller: Caller,
    state: Annotated[list[State] | None, Query(description="Only jobs in these states.")] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 20,
    after: Annotated[str | None, Query(max_length=128, pattern="^[A-Za-z0-9_-]+$")] = None,
) -> JobList:
    """`after` is the id of the last job of the page before."""
    found = listed(site.database, caller, states=tuple(state or ()), limit=limit + 1, after=after)
    page = found[:limit]
    tallies = tallies_of(request)
    return JobList(
        data=[view(site, tallies, job) for job in page],
        after=page[-1].job.id if len(found) > limit else None,
    )


@router.get("/{job_id}", response_model=JobView, responses=documented(404), summary="Read a job")
async def read_job(request: Request, caller: Caller, job_id: JobId) -> Response:
    """State, progress and spend so far."""
    shown: Shown = request.app.state.shown
    said = shown.known(job_id, caller)
    if said is None:
        said = await run_in_threadpool(shown.read, job_id, caller)
    return Response(said, media_type="application/json")


@router.post("/{job_id}/cancel", response_model=JobView, responses=documented(404, 409), summary="Cancel a job")
def cancel_job(request: Request, site: TheSite, caller: Caller, job_id: JobId) -> JobView:
    """Ask it to stop: `cancelling` until its work has stopped, then `cancelled`. 409 if it has ended."""
    cancel(site.database, job_id, caller)
    _tell_of_cancel(site, job_id)
    return view(site, tallies_of(request), find(site.database, job_id, caller))


@router.delete("/{job_id}", status_code=204, responses=documented(404, 409), summary="Delete a job")
async def delete_job(site: TheSite, caller: Caller, job_id: JobId) -> Response:
    """Cancel it, wait until its work has stopped, remove it with its files. 409 while it is still stopping."""
    limit = time.monotonic() + DELETE_WAITS_SECONDS
    while not await run_in_threadpool(_removed, site, job_id, caller):
        if time.monotonic() > limit:
            raise Refused(
                409,
                "still_stopping",
                f"job {job_id} is asked to stop and has not stopped yet: delete it again",
                headers={"Retry-After": "5"},
            )
        await anyio.sleep(_LOOK_EVERY_SECONDS)
    return Response(status_code=204)


def _removed(site: Site, job_id: str, caller: str) -> bool:
    """Remove it if it has ended, else see to it that it stops. Raises JobNotFound."""
    state = find(site.database, job_id, caller).job.state.state
    if state in FINAL_STATES:
        remove(site.database, job_id, caller)
        return True
    if state != "cancelling":
        with contextlib.suppress(IllegalState):  # it ended meanwhile
            cancel(site.database, job_id, caller)
        _tell_of_cancel(site, job_id)
        return _removed(site, job_id, caller) if state == "queued" else False
    return False


def _tell_of_cancel(site: Site, job_id: str) -> None:
    with contextlib.suppress(BackendUnavailable):
        site.messages.tell(job_id, {})
    wake(site, job_id)
