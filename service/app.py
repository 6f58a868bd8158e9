"""The HTTP application over one site: its routes, its limits, its errors. Knows no concrete backend."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator

from fastapi import FastAPI

import cliploop
from cliploop.site import Site
from service import events, files, forking, health, jobs, offers, problems, submitting
from service.bodies import MAX_BODY_BYTES, BodyLimit
from service.document import document
from service.hub import Hub
from service.making import Made
from service.metrics import registry
from service.tally import Tallies


def create_app(site: Site, *, max_body_bytes: int = MAX_BODY_BYTES) -> FastAPI:
    """The application. The caller closes the site, after the application has stopped."""
    hub = Hub(site)

    @contextlib.asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncGenerator[None]:
        async with hub.running():
            yield

    app = FastAPI(title="Cliploop", description=cliploop.__doc__ or "", lifespan=lifespan)
    app.state.site = site
    app.state.hub = hub
    app.state.metrics = registry(site)
    app.state.made = Made(site)
    app.state.tallies = Tallies(hub.progress_of)
    app.state.max_body_bytes = max_body_bytes
    problems.install(app)
    app.add_middleware(BodyLimit, max_bytes=max_body_bytes)
    for routes in (submitting, jobs, forking, events, files, offers, health):
        app.include_router(routes.router)
    app.openapi = lambda: document(app)
    return app
