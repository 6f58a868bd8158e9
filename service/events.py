"""GET /v1/jobs/{id}/events: a job's journal as server-sent events, from where a watcher stopped."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Annotated

from fastapi import APIRouter, Header, Request, Response
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from cliploop.site import Site
from service.callers import Caller, JobId, TheSite
from service.hub import Hub
from service.problems import Refused, documented
from storage.jobs import FINAL_STATES
from storage.submissions import find, last_sequences

LARGEST = 2**31 - 1  # what the database takes as a number
_RECONNECT = b"retry: 1000\n\n"
router = APIRouter(prefix="/v1/jobs")
_EVENT = {
    "type": "object",
    "description": "One event of the stream.",
    "properties": {
        "id": {"type": "string", "description": "Its number in the job's journal."},
        "event": {"enum": ["record", "failure", "state", "progress", "waits", "deleted"]},
        "data": {"type": "string", "description": "An object as JSON: the journal's entry, or the progress."},
        "retry": {"type": "integer"},
    },
}
_STREAM = {
    200: {
        "description": "Events `record`, `failure` and `state` with the journal's numbers as ids, and "
        "`progress` and `waits` (for a missing worker) without; the stream ends after the final state.",
        "content": {"text/event-stream": {"schema": _EVENT}},
    },
    204: {"description": "The job has ended and every event was seen: do not come back."},
}


@router.get(
    "/{job_id}/events",
    response_class=StreamingResponse,
    responses=_STREAM | documented(404),
    summary="Follow a job",
)
async def follow(
    request: Request,
    site: TheSite,
    caller: Caller,
    job_id: JobId,
    last_event_id: Annotated[str, Header(description="The number of the last event that was seen.")] = "",
) -> Response:
    """Every stored event once and in order; a lost connection goes on after `Last-Event-ID`."""
    after = _number(last_event_id)
    if await run_in_threadpool(_has_ended, site, job_id, caller, after):
        return Response(status_code=204)
    hub: Hub = request.app.state.hub
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(_stream(hub, job_id, after), media_type="text/event-stream", headers=headers)


async def _stream(hub: Hub, job_id: str, after: int) -> AsyncGenerator[bytes]:
    yield _RECONNECT
    async for events in hub.watch(job_id, after):
        yield events


def _number(text: str) -> int:
    if not text.strip():
        return 0
    if not (text.isascii() and text.isdigit()):
        raise Refused(
            422, "last_event_id", "Last-Event-ID must be the id of an event of this job, a whole number"
        )
    return min(int(text[:20]), LARGEST)


def _has_ended(site: Site, job_id: str, caller: str, after: int) -> bool:
    """Whether the final event was seen. Raises JobNotFound."""
    if find(site.database, job_id, caller).job.state.state not in FINAL_STATES:
        return False
    return after >= last_sequences(site.database, [job_id]).get(job_id, 0)
