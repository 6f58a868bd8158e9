"""What every route is given: the site that it serves, and who calls."""

from __future__ import annotations

import re
from typing import Annotated, cast

from fastapi import Depends, Path, Request

from cliploop.site import Site
from orchestrator.errors import JobNotFound

ANYBODY = ""  # the owner of jobs where no API keys are asked for


async def site_of(request: Request) -> Site:
    """The site of the application; a coroutine, so that it costs no thread."""
    return cast("Site", request.app.state.site)


async def caller_of(request: Request) -> str:
    """Whose jobs these are: an API key's id, as access control left it, or "" where everybody may call."""
    return cast("str", getattr(request.state, "caller", ANYBODY))


async def job_id_of(job_id: Annotated[str, Path(description="A job's id.", examples=["job-0f3a"])]) -> str:
    """An id that can be one of ours. Raises JobNotFound: the database is asked only for what it can hold."""
    if re.fullmatch(r"[A-Za-z0-9_-]{1,128}", job_id) is None:
        raise JobNotFound("there is no such job")
    return job_id


TheSite = Annotated[Site, Depends(site_of)]
Caller = Annotated[str, Depends(caller_of)]
JobId = Annotated[str, Depends(job_id_of)]
