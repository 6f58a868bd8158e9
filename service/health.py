"""Whether the process lives, and whether it can serve; metrics."""

from __future__ import annotations

from typing import Any, Literal

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import BaseModel, Field

from orchestrator.errors import CliploopError
from service.callers import TheSite
from service.crew import Crew
from service.problems import documented
from storage.submissions import counts

router = APIRouter()


class Alive(BaseModel):
    """The process answers."""

    status: Literal["ok"] = "ok"


class Ready(BaseModel):
    """What the service stands on. `missing` names what is away, and why."""

    ready: bool
    missing: dict[str, str] = Field(default_factory=dict)


@router.get("/healthz", response_model=Alive, summary="Whether the process lives")
async def healthz() -> Alive:
    """Always ok where it answers at all."""
    return Alive()


@router.get(
    "/readyz",
    response_model=Ready,
    responses={503: {"model": Ready, "description": "Something is missing."}},
    summary="Whether jobs can be taken and done",
)
def readyz(request: Request, site: TheSite) -> Response:
    """Ready, or 503 with what is missing: a part, room on the disk, or every worker of a role.

    Jobs are taken all the same while the database answers, and begin when the rest is back.
    """
    missing: dict[str, str] = {}
    checks: dict[str, Any] = {"database": lambda: counts(site.database), "broker": site.messages.ping}
    checks["artifacts"] = site.artifacts.check
    checks["disk"] = site.require_room
    for name, check in checks.items():
        try:
            check()
        except CliploopError as error:
            missing[name] = error.outside  # anybody may ask: no address of a part
    crew: Crew = request.app.state.crew
    missing.update(crew.look().missing())
    found = Ready(ready=not missing, missing=missing)
    return JSONResponse(found.model_dump(), 503 if missing else 200)


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}, **documented()},
    summary="Metrics for Prometheus",
)
def metrics(request: Request) -> Response:
    """Of the whole service, from the database and the broker; any API process answers the same.

    They are of all jobs, whoever asks: where keys are asked for, the scraper sends one as `authorization`.
    """
    return Response(generate_latest(request.app.state.metrics), headers={"Content-Type": CONTENT_TYPE_LATEST})
