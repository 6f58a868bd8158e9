"""POST /v1/jobs: from a request to a stored job and a message to the workers."""

from __future__ import annotations

import contextlib
import secrets
from dataclasses import replace
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from cliploop.admission import admitted
from cliploop.site import Site
from orchestrator.errors import BackendMisconfigured, BackendUnavailable, TaskRejected
from orchestrator.records import Policy, Task
from service.asks import Ask, Unreadable, idempotency_key, read_ask
from service.callers import Caller, TheSite
from service.hooks import checked, made_secret
from service.pictures import named_picture
from service.picturing import Desk, normalised
from service.problems import documented
from service.tally import Tallies
from service.views import JobView, NewJob, view
from storage import references
from storage.artifacts import key_of
from storage.journal import Entry
from storage.submissions import Request as Requested
from storage.submissions import find, repeated, submit

router = APIRouter()
IDEMPOTENCY_HEADER: dict[str, Any] = {
    "parameters": [
        {
            "name": "Idempotency-Key",
            "in": "header",
            "required": False,
            "description": "The same key with the same request gives the same job.",
            "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
        }
    ],
}
_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": {"$ref": "#/components/schemas/Submission"}},
            "multipart/form-data": {"schema": {"$ref": "#/components/schemas/FormSubmission"}},
        },
    },
    **IDEMPOTENCY_HEADER,
}


@router.post(
    "/v1/jobs",
    status_code=202,
    response_model=NewJob,
    openapi_extra=_BODY,
    responses=documented(400, 409, 413, 415),
    summary="Submit a job",
)
async def submit_job(request: Request, site: TheSite, caller: Caller) -> Response:
    """Check the task, store the job, wake a worker. 202 with the job, its address in Location."""
    key = idempotency_key(request)
    try:
        ask = await read_ask(request)
    except Unreadable as unreadable:
        return unreadable.response
    tallies: Tallies = request.app.state.tallies
    desk: Desk = request.app.state.desk
    return await desk.work(_submitted, site, tallies, caller, key, ask)


def _submitted(site: Site, tallies: Tallies, caller: str, key: str | None, ask: Ask) -> Response:
    preset = ask.choice.preset or "default"
    requested = Requested(caller, preset, ask.choice.priority, idempotency_key=key, fingerprint=ask.fingerprint)
    job_id = repeated(site.database, requested)
    if job_id is None:
        requested = replace(requested, webhook=checked(site, ask.hook))
        task, policy, png = _admitted(site, caller, ask)
        job_id = store(site, task, policy, requested, png)
    secret = made_secret(site, ask.hook, job_id)
    return accepted(view(site, tallies, find(site.database, job_id, caller)), secret)


def _admitted(site: Site, caller: str, ask: Ask) -> tuple[Task, Policy, bytes]:
    picture = ask.picture if isinstance(ask.picture, bytes) else named_picture(site, caller, ask.picture)
    upload = normalised(picture, ask.name)
    try:
        task, policy = admitted(site.composition, ask.choice.wanted(), ask.prompt, upload)
    except (
        BackendMisconfigured
    ) as error:  # what was named is wrong or cannot be used here: the caller's to change
        raise TaskRejected(error.outside, reason="misconfigured") from error
    return task, policy, upload.png


def store(
    site: Site,
    task: Task,
    policy: Policy,
    requested: Requested,
    png: bytes | None = None,
    inherited: tuple[Entry, ...] = (),
) -> str:
    """Store the job and its picture, and wake a worker; the job's id.

    Raises OtherRequest, TooManyJobs, JobWaiting(disk).
    """
    if png is not None:
        with site.database.write() as connection:
            references.expect(connection, [key_of(png, ".png")], site.database.now(connection))
        site.artifacts.put(png, ".png")
    new_id = f"job-{secrets.token_hex(10)}"
    limit = site.composition.settings.service.concurrent_jobs
    job_id, is_new = submit(site.database, new_id, task, policy, requested, inherited, concurrent_jobs=limit)
    if is_new:
        wake(site, job_id)
    return job_id


def wake(site: Site, job_id: str) -> None:
    """Have a worker look at the job; with the broker away the reaper sends the message later."""
    with contextlib.suppress(BackendUnavailable):
        site.messages.advance(job_id)


def accepted(job: JobView, webhook_secret: str | None = None) -> Response:
    """202: the job, where it is, and the secret that was made for its webhook."""
    secret = {} if webhook_secret is None else {"webhook_secret": webhook_secret}
    return JSONResponse({**job.model_dump(mode="json"), **secret}, 202, headers={"Location": job.links["self"]})
