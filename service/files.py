"""What a job has made: trajectory, video, contact sheet, the clip of each attempt. Only through the job."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response

from cliploop.site import Site
from orchestrator.records import ArtifactKey, Attempt, Trajectory
from service.callers import Caller, JobId, TheSite
from service.making import Made, best_footage, best_video, clip, sheet, steps_of
from service.problems import Refused, documented
from service.ranges import file_response
from service.reading import trajectory
from service.tally import Tallies
from storage.jobs import FINAL_STATES, StoredJob
from storage.submissions import find

LARGEST = 1_000_000
router = APIRouter(prefix="/v1/jobs/{job_id}")
_RETRY = {"Retry-After": "2"}


def _file(media_type: str) -> dict[int | str, dict[str, Any]]:
    content = {media_type: {"schema": {"type": "string", "format": "binary"}}}
    return {
        200: {"description": "The file.", "content": content},
        206: {"description": "The parts that Range asked for.", "content": content},
        304: {"description": "Unchanged since the ETag in If-None-Match."},
        **documented(404, 409, 416),
    }


@router.get(
    "/trajectory", response_model=Trajectory, responses=documented(404, 409), summary="All of a job so far"
)
def read_trajectory(site: TheSite, caller: Caller, job_id: JobId) -> Response:
    """Every plan, attempt and verdict; the step under way too."""
    told = trajectory(site, find(site.database, job_id, caller).job)
    return Response(told.model_dump_json(), media_type="application/json")


@router.head("/video", include_in_schema=False)
@router.get(
    "/video",
    response_class=Response,
    responses=_file("video/mp4"),
    summary="The stitched video",
)
def read_video(request: Request, site: TheSite, caller: Caller, job_id: JobId) -> Response:
    """The answer; of a job that failed or was cancelled, the best of what it had rendered."""
    stored = find(site.database, job_id, caller).job
    if stored.state.state not in FINAL_STATES:
        raise Refused(
            409, "not_ready", f"job {job_id} is {stored.state.state}: its video comes at the end", headers=_RETRY
        )
    return _sent(request, site, video_of(request, site, stored), "video/mp4", f"{job_id}.mp4")


def video_of(request: Request, site: Site, stored: StoredJob) -> ArtifactKey:
    """The answer of a job that has ended, else the best that it has to show. Raises Refused (404) if nothing."""
    tallies: Tallies = request.app.state.tallies
    video = tallies.of(site.database, stored.id).video
    if video is not None:
        return video
    told = trajectory(site, stored)
    footage = best_footage(told)
    if footage is None:
        raise Refused(404, "no_video", f"job {stored.id} ended before anything was rendered: it has no video")
    made: Made = request.app.state.made
    return made.get(stored.id, "video", ".mp4", lambda: best_video(site, told, footage))


@router.head("/contact-sheet", include_in_schema=False)
@router.get(
    "/contact-sheet",
    response_class=Response,
    responses=_file("image/png"),
    summary="The whole story as one picture",
)
def read_contact_sheet(request: Request, site: TheSite, caller: Caller, job_id: JobId) -> Response:
    """Every step with its attempts and verdicts, as far as the job is."""
    stored = find(site.database, job_id, caller).job
    tallies: Tallies = request.app.state.tallies
    made: Made = request.app.state.made
    seen = tallies.of(site.database, job_id).seen
    told = trajectory(site, stored)
    if not told.first_frame:
        raise Refused(409, "not_ready", f"job {job_id} has not begun: there is nothing to show", headers=_RETRY)
    if stored.state.state not in FINAL_STATES:
        picture = made.passing(lambda: sheet(site, told))
        return Response(picture, media_type="image/png", headers={"Cache-Control": "no-store"})
    artifact = made.get(job_id, f"sheet {seen}", ".png", lambda: sheet(site, told))
    return _sent(request, site, artifact, "image/png", f"{job_id}.png")


@router.head("/steps/{step}/attempts/{attempt}/clip", include_in_schema=False)
@router.get(
    "/steps/{step}/attempts/{attempt}/clip",
    response_class=Response,
    responses=_file("video/mp4"),
    summary="The clip of an attempt",
)
def read_clip(
    request: Request,
    site: TheSite,
    caller: Caller,
    job_id: JobId,
    step: Annotated[int, Path(ge=0, le=LARGEST, description="0 is the single-shot gate.")],
    attempt: Annotated[int, Path(ge=1, le=LARGEST)],
) -> Response:
    """What was judged, for browsers: made when it is first asked for."""
    stored = find(site.database, job_id, caller).job
    found = _attempt(trajectory(site, stored), step, attempt)
    if found is None:
        raise Refused(404, "no_clip", f"job {job_id} has rendered no clip in attempt {attempt} of step {step}")
    made: Made = request.app.state.made
    judged = "candidate" if found.candidate else "clip"
    name = f"{judged} {step}/{attempt}"
    artifact = made.get(job_id, name, ".mp4", lambda: clip(site, found))
    return _sent(request, site, artifact, "video/mp4", f"{job_id}-{step}-{attempt}.mp4")


def _attempt(told: Trajectory, step: int, index: int) -> Attempt | None:
    attempts = [each for found in steps_of(told) if found.index == step for each in found.attempts]
    return next((each for each in attempts if each.index == index and each.clip is not None), None)


def _sent(request: Request, site: Site, artifact: ArtifactKey, media_type: str, name: str) -> Response:
    return file_response(request, site.artifacts.path(artifact), media_type, artifact[:64], name=name)
