"""GET /: what answers here, and where to read on."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import BaseModel

from cliploop.terminal import version

router = APIRouter()


class Pointer(BaseModel):
    """What this is, and addresses to go on from."""

    name: str
    version: str
    links: dict[str, str]


@router.get("/", response_model=Pointer, summary="What this is")
async def read_pointer() -> Pointer:
    """Name, version, and where the documentation and the jobs are."""
    links = {"openapi": "/openapi.json", "docs": "/docs", "jobs": "/v1/jobs", "ready": "/readyz"}
    return Pointer(name="cliploop", version=version(), links=links)
