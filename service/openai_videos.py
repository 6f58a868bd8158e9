"""OpenAI's video API over the same jobs: its official clients create, follow, download and delete unchanged."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.concurrency import run_in_threadpool

from cliploop.admission import admitted
from cliploop.site import Site, asked_of
from media.frames import FrameReader
from orchestrator.errors import BackendMisconfigured, TaskRejected
from orchestrator.loop import refuse_unplayable
from orchestrator.records import ArtifactKey, Policy, Task
from service.asks import Unreadable, idempotency_key
from service.callers import Caller, TheSite, job_id_of
from service.files import video_of
from service.jobs import MAX_PAGE, delete_job
from service.making import Made
from service.openai_asks import VideoAsk, pictures_named, read_video_ask, within
from service.openai_errors import PREFIX, Wrong, documented
from service.openai_pictures import spritesheet, thumbnail
from service.openai_views import DeletedVideo, VideoList, VideoView, video_view
from service.pictures import named_picture
from service.picturing import Desk, normalised
from service.ranges import file_response
from service.submitting import IDEMPOTENCY_HEADER, store
from service.tally import Tallies
from storage.digest import digest
from storage.jobs import FINAL_STATES
from storage.resends import Sending
from storage.submissions import Request as Requested
from storage.submissions import Submitted, find, listed, repeated

POLL_AFTER_MS = 1000
router = APIRouter(prefix=PREFIX, tags=["OpenAI-compatible"])
_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {"schema": {"$ref": "#/components/schemas/VideoForm"}},
            "application/json": {"schema": {"$ref": "#/components/schemas/VideoRequest"}},
        },
    },
    **IDEMPOTENCY_HEADER,
}
_BINARY: dict[str, Any] = {"schema": {"type": "string", "format": "binary"}}
_CONTENT = {kind: _BINARY for kind in ("video/mp4", "image/webp", "image/jpeg")}
_FILES: dict[int | str, dict[str, Any]] = {
    200: {"description": "The file.", "content": _CONTENT},
    206: {"description": "The parts that Range asked for.", "content": _CONTENT},
    304: {"description": "Unchanged since the ETag in If-None-Match."},
    **documented(404, 409, 416, 507),
}


async def _video_id(
    video_id: Annotated[str, Path(description="A video's id: its job's.", examples=["job-0f3a"])],
) -> str:
    return await job_id_of(video_id)


VideoId = Annotated[str, Depends(_video_id)]


class Remix(BaseModel):
    """What should happen in the same picture instead."""

    model_config = ConfigDict(extra="forbid", strict=True)

    prompt: str = Field(max_length=1_000_000)


def _tallies(request: Request) -> Tallies:
    tallies: Tallies = request.app.state.tallies
    return tallies


def _shown(request: Request, site: Site, job: Submitted) -> Response:
    told = video_view(site, _tallies(request), job)
    final = told.status in ("completed", "failed")
    headers = {} if final else {"openai-poll-after-ms": str(POLL_AFTER_MS)}
    return JSONResponse(told.model_dump(mode="json"), headers=headers)


@router.post(
    "",
    response_model=VideoView,
    openapi_extra=_BODY,
    responses=documented(404, 408, 409, 413, 415, 507),
    summary="Create a video",
)
async def create_video(request: Request, site: TheSite, caller: Caller) -> Response:
    """Check the task, store the job, wake a worker. A client's own retry gives the same video."""
    sending = await run_in_threadpool(_sending, request, site)
    key = idempotency_key(request)
    try:
        ask = await read_video_ask(request)
    except Unreadable as unreadable:
        return unreadable.response
    desk: Desk = request.app.state.desk
    return await desk.work(_created, request, site, caller, key, sending, ask)


def _sending(request: Request, site: Site) -> Sending:
    count = request.headers.get("x-stainless-retry-count", "")
    with site.database.read() as connection:
        now = site.database.now(connection)
    return Sending(again=count.isascii() and count.isdigit() and count.strip("0") != "", came_at=now)


def _created(
    request: Request, site: Site, caller: str, key: str | None, sending: Sending, ask: VideoAsk
) -> Response:
    choice = ask.said.choice(site.composition)
    requested = Requested(
        caller,
        ask.said.model,
        choice.priority,
        idempotency_key=key,
        fingerprint=ask.fingerprint,
        asked=ask.words,
        sending=sending,
    )
    job_id = repeated(site.database, requested)
    if job_id is None:
        limit_seconds = ask.said.limit_seconds
        upload = normalised(_picture(site, caller, ask), ask.name)
        ask.said.refuse_size(upload.size)
        try:
            task, policy = admitted(site.composition, choice.wanted(), ask.said.prompt, upload)
        except BackendMisconfigured as error:
            raise TaskRejected(error.outside, reason="misconfigured") from error
        job_id = store(site, task, _playable(task, within(policy, limit_seconds)), requested, upload.png)
    return _shown(request, site, find(site.database, job_id, caller))


def _picture(site: Site, caller: str, ask: VideoAsk) -> bytes:
    if isinstance(ask.picture, bytes):
        return ask.picture
    with pictures_named():
        return named_picture(site, caller, ask.picture)


def _playable(task: Task, policy: Policy) -> Policy:
    refuse_unplayable(task, policy)
    return policy


@router.get("", response_model=VideoList, responses=documented(404), summary="List videos")
def list_videos(
    request: Request,
    site: TheSite,
    caller: Caller,
    after: Annotated[str | None, Query(max_length=128, pattern="^[A-Za-z0-9_-]+$")] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 20,
    order: Annotated[Literal["asc", "desc"], Query(description="By the time of creation.")] = "desc",
) -> VideoList:
    """Every job of yours, however it was submitted. `after` is the id of the last video of the page before."""
    found = listed(site.database, caller, limit=limit + 1, after=after, oldest_first=order == "asc")
    data = [video_view(site, _tallies(request), job) for job in found[:limit]]
    return VideoList(
        data=data,
        first_id=data[0].id if data else None,
        last_id=data[-1].id if data else None,
        has_more=len(found) > limit,
    )


@router.get("/{video_id}", response_model=VideoView, responses=documented(404), summary="Retrieve a video")
def retrieve_video(request: Request, site: TheSite, caller: Caller, video_id: VideoId) -> Response:
    """How it stands. While that may change, openai-poll-after-ms says when to ask again."""
    return _shown(request, site, find(site.database, video_id, caller))


@router.delete(
    "/{video_id}", response_model=DeletedVideo, responses=documented(404, 409), summary="Delete a video"
)
async def delete_video(site: TheSite, caller: Caller, video_id: VideoId) -> DeletedVideo:
    """Cancel it, wait until its work has stopped, remove it with its files. 409 while it is still stopping."""
    await delete_job(site, caller, video_id)
    return DeletedVideo(id=video_id)


@router.head("/{video_id}/content", include_in_schema=False)
@router.get(
    "/{video_id}/content",
    response_class=Response,
    responses=_FILES,
    summary="Download a video, or pictures of it",
)
def download_content(
    request: Request,
    site: TheSite,
    caller: Caller,
    video_id: VideoId,
    variant: Annotated[Literal["video", "thumbnail", "spritesheet"], Query()] = "video",
) -> Response:
    """The MP4; its last frame as WebP; ten of its frames as JPEG. Of a failed job the best that it has."""
    stored = find(site.database, video_id, caller).job
    if stored.state.state not in FINAL_STATES:
        what = f"video {video_id} is {stored.state.state}: its content comes when it is completed"
        raise Wrong("not_ready", what, "video_id", status=409)
    video = video_of(request, site, stored)
    if variant == "video":
        return _sent(request, site, video, "video/mp4", f"{video_id}.mp4")
    made: Made = request.app.state.made
    if variant == "thumbnail":
        picture = made.get(video_id, "thumbnail", ".webp", lambda: thumbnail(site, video))
        return _sent(request, site, picture, "image/webp", f"{video_id}.webp")
    picture = made.get(video_id, "spritesheet", ".jpg", lambda: spritesheet(site, video))
    return _sent(request, site, picture, "image/jpeg", f"{video_id}.jpg")


def _sent(request: Request, site: Site, artifact: ArtifactKey, media_type: str, name: str) -> Response:
    return file_response(request, site.artifacts.path(artifact), media_type, artifact[:64], name=name)


@router.post(
    "/{video_id}/remix",
    response_model=VideoView,
    responses=documented(404, 409, 413, 415, 507),
    summary="Remix a video",
)
def remix_video(request: Request, site: TheSite, caller: Caller, video_id: VideoId, remix: Remix) -> Response:
    """A new job from the same first picture, with the same policy and another prompt."""
    parent = find(site.database, video_id, caller)
    task, policy = _anew(site, parent, remix.prompt)
    requested = Requested(
        caller,
        parent.preset,
        parent.priority,
        idempotency_key=idempotency_key(request),
        fingerprint=digest({"api": "openai", "remix": video_id, "prompt": remix.prompt}),
        parent_id=video_id,
        asked={name: value for name, value in parent.asked.items() if name in ("model", "seconds", "size")},
        sending=_sending(request, site),
    )
    job_id = repeated(site.database, requested) or store(site, task, policy, requested)
    return _shown(request, site, find(site.database, job_id, caller))


def _anew(site: Site, parent: Submitted, prompt: str) -> tuple[Task, Policy]:
    """The parent's task with another prompt. Raises Wrong, TaskRejected."""
    try:
        task, policy = asked_of(parent.job)
    except ValidationError as error:
        what = f"video {parent.job.id} was stored by another version: create a new one from its picture"
        raise Wrong("other_version", what, status=409) from error
    task = task.model_copy(update={"prompt": prompt})
    refuse_unplayable(task, policy)
    try:
        site.composition.planner(policy.planner, FrameReader(site.artifacts)).accepts(task)
    except BackendMisconfigured as error:  # the settings have changed since
        raise TaskRejected(error.outside, reason="misconfigured") from error
    return task, policy


@router.post("/edits", include_in_schema=False)
@router.post("/extensions", include_in_schema=False)
@router.post("/characters", include_in_schema=False)
@router.get("/characters/{name}", include_in_schema=False)
def refuse_unknown(request: Request) -> Response:
    """What their clients know and this server has not."""
    raise Wrong(
        "not_supported",
        f"there is no {request.method} {request.url.path} here: a video is created, remixed with another prompt"
        f" ({PREFIX}/{{id}}/remix), or its job forked from a step (/v1/jobs/{{id}}/fork)",
        status=404,
    )
