"""The HTTP application over one site: its routes, its limits, its errors. Knows no concrete backend."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator

from fastapi import FastAPI

from cliploop.site import Site
from cliploop.terminal import version
from service import (
    artifacts,
    events,
    files,
    forking,
    health,
    jobs,
    offers,
    openai_errors,
    openai_videos,
    pointer,
    problems,
    reviewing,
    submitting,
)
from service.access import Access, KnownKeys
from service.bodies import BodyLimit
from service.crew import Crew
from service.document import document
from service.hub import Hub
from service.making import Made
from service.metrics import registry
from service.picturing import Desk
from service.tally import Tallies
from service.views import Shown


def create_app(site: Site, *, keys_required: bool = False) -> FastAPI:
    """The application. The caller closes the site, after the application has stopped.

    `keys_required`: whether every request needs an API key, also while none was ever made.
    """
    crew = Crew(site)
    hub = Hub(site, crew)
    max_body_bytes = int(site.composition.settings.service.max_upload_mib * 2**20)

    @contextlib.asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncGenerator[None]:
        async with hub.running():
            yield

    app = FastAPI(
        title="Cliploop",
        version=version(),
        lifespan=lifespan,
        generate_unique_id_function=lambda route: route.name,
    )
    app.state.site = site
    app.state.hub = hub
    app.state.metrics = registry(site)
    app.state.made = Made(site)
    app.state.desk = Desk()
    app.state.crew = crew
    app.state.tallies = Tallies(hub.progress_of, crew)
    app.state.shown = Shown(site, app.state.tallies)
    app.state.max_body_bytes = max_body_bytes
    problems.install(app)
    app.add_middleware(BodyLimit, max_bytes=max_body_bytes)
    known = KnownKeys(site.database, required=keys_required)
    app.add_middleware(Access, site=site, known=known)  # the last one added is asked first
    openai_errors.install(app)  # outermost, so that it says every refusal in its form
    native = (submitting, artifacts, jobs, forking, reviewing, events, files, offers)
    for routes in (*native, openai_videos, health, pointer):
        app.include_router(routes.router)
    app.openapi = lambda: document(app)
    return app
