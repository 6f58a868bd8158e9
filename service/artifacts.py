"""POST /v1/artifacts: a picture that waits for its job, checked and stored as jobs store it."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field
from starlette.datastructures import UploadFile

from cliploop.site import Site
from orchestrator.records import Size
from service.callers import Caller, TheSite
from service.picturing import Desk, normalised
from service.problems import Refused, documented
from storage import references
from storage.artifacts import key_of

router = APIRouter()
HOUR_SECONDS = 3600.0
_RAW = frozenset({"application/octet-stream", ""})
_BINARY: dict[str, Any] = {"type": "string", "format": "binary"}
_FORM = {"type": "object", "properties": {"file": _BINARY}, "required": ["file"], "additionalProperties": False}
_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "A picture (PNG, JPEG, WebP, GIF, BMP, TIFF, AVIF); what it is, is told by its content."
        " `curl --data-binary @maze.png -H 'Content-Type: image/png' …/v1/artifacts` sends one, or"
        " `curl -F file=@maze.png …/v1/artifacts`.",
        "content": {
            "multipart/form-data": {"schema": _FORM},
            "application/octet-stream": {"schema": _BINARY},
            "image/png": {"schema": _BINARY},
            "image/jpeg": {"schema": _BINARY},
        },
    }
}


class ArtifactView(BaseModel):
    """A picture that was uploaded. `id` is what `picture` of POST /v1/jobs takes, from the same caller."""

    id: str
    object: str = "artifact"
    size: Size
    bytes: int = Field(description="Of the upright RGB picture that was stored.")
    notes: list[str] = Field(default_factory=list, description="What was changed on the way.")
    expires_at: float = Field(description="When it goes, unless a job holds it; seconds since the epoch.")


@router.post(
    "/v1/artifacts",
    status_code=201,
    response_model=ArtifactView,
    openapi_extra=_BODY,
    responses=documented(400, 413, 415),
    summary="Upload a picture for a job",
)
async def upload_picture(request: Request, site: TheSite, caller: Caller) -> ArtifactView:
    """Check and keep a picture for a while. The same picture again has the same id, and is kept anew."""
    data, name = await _read(request)
    desk: Desk = request.app.state.desk
    return await desk.work(_kept, site, caller, data, name)


async def _read(request: Request) -> tuple[bytes, str]:
    """The picture, and the client's own name of it for messages. Raises Refused."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "multipart/form-data":
        if kind in _RAW or kind.startswith("image/"):
            return await request.body(), ""
        raise Refused(
            415, "media_type", "send the picture as the body, or as the field file of multipart/form-data"
        )
    async with request.form(max_files=1, max_fields=1) as form:
        fields = form.multi_items()
        if len(fields) != 1 or fields[0][0] != "file" or not isinstance(fields[0][1], UploadFile):
            raise Refused(422, "invalid", "file: send one file in the field file, and nothing else")
        return await fields[0][1].read(), fields[0][1].filename or ""


def _kept(site: Site, caller: str, data: bytes, name: str) -> ArtifactView:
    picture = normalised(data, name)
    key = key_of(picture.png, ".png")
    with site.database.write() as connection:
        references.expect(connection, [key], site.database.now(connection))
    site.artifacts.put(picture.png, ".png")
    with site.database.write() as connection:
        now = site.database.now(connection)
        references.hold_upload(connection, caller, key, now)
    return ArtifactView(
        id=key,
        size=picture.size,
        bytes=len(picture.png),
        notes=list(picture.notes),
        expires_at=now + site.composition.settings.service.upload_keep_hours * HOUR_SECONDS,
    )
