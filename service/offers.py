"""What can be asked for: presets, backends, worlds and their tasks."""

from __future__ import annotations

import base64
from typing import Annotated, Any, Literal, get_args

from fastapi import APIRouter, Path
from pydantic import BaseModel, ConfigDict, Field

from cliploop.site import Site
from media.pictures import encode_png
from orchestrator.errors import BackendMisconfigured
from orchestrator.faults import suggest
from orchestrator.records import Capabilities
from service.callers import TheSite
from service.problems import Refused, documented
from worlds.catalog import DESCRIPTIONS, WORLDS, load
from worlds.sampling import sample
from worlds.world import Difficulty

router = APIRouter(prefix="/v1")
_DIFFICULTIES: tuple[str, ...] = get_args(Difficulty)


class Preset(BaseModel):
    """A named choice from the server's configuration; null = left to the defaults."""

    name: str
    choices: dict[str, Any]


class Backend(BaseModel):
    """A name that a submission can choose. `type` is the catalog entry, or the VLM, behind it."""

    name: str
    type: str
    usable: bool = True
    detail: str = Field(default="", description="Why it cannot be used here.")
    capabilities: Capabilities | None = None


class WorldView(BaseModel):
    """A procedural world of tasks with exact answers."""

    name: str
    description: str
    difficulties: list[str]


class Presets(BaseModel):
    """All of them."""

    object: Literal["list"] = "list"
    data: list[Preset]


class Backends(BaseModel):
    """All of them."""

    object: Literal["list"] = "list"
    data: list[Backend]


class Worlds(BaseModel):
    """All of them."""

    object: Literal["list"] = "list"
    data: list[WorldView]


class SampleRequest(BaseModel):
    """Which task of a world."""

    model_config = ConfigDict(extra="forbid", strict=True)

    difficulty: Difficulty = "medium"
    seed: int = Field(default=0, ge=0, le=2**63 - 1)
    side_px: int = Field(default=512, ge=128, le=1024)


class Sampled(BaseModel):
    """A task, ready to be submitted: the same two fields as in POST /v1/jobs."""

    picture: str = Field(description="A PNG as a data URL.")
    prompt: str


@router.get("/presets", response_model=Presets, responses=documented(), summary="Presets")
def list_presets(site: TheSite) -> Presets:
    """What `preset` can name."""
    named = site.composition.settings.presets
    return Presets(
        data=[
            Preset(name=name, choices=choices.model_dump(mode="json", exclude_none=True))
            for name, choices in named.items()
        ]
    )


@router.get("/generators", response_model=Backends, responses=documented(), summary="Generators")
def list_generators(site: TheSite) -> Backends:
    """What `generator` can name; one that cannot be used here says why."""
    return Backends(
        data=[_generator(site, name, kind) for name, kind in site.composition.generator_names().items()]
    )


def _generator(site: Site, name: str, kind: str) -> Backend:
    try:
        capabilities = site.composition.generator(name).capabilities
    except BackendMisconfigured as error:
        return Backend(name=name, type=kind, usable=False, detail=error.outside)
    return Backend(name=name, type=kind, capabilities=capabilities)


@router.get("/planners", response_model=Backends, responses=documented(), summary="Planners")
def list_planners(site: TheSite) -> Backends:
    """What `planner` can name."""
    return _models(site, "planner")


@router.get("/verifiers", response_model=Backends, responses=documented(), summary="Verifiers")
def list_verifiers(site: TheSite) -> Backends:
    """What `verifier` can name."""
    return _models(site, "verifier")


def _models(site: Site, role: str) -> Backends:
    named = site.composition.model_names(role)
    return Backends(data=[_model(site, role, name, kind) for name, kind in named.items()])


def _model(site: Site, role: str, name: str, kind: str) -> Backend:
    try:
        site.composition.require_model(role, name)
    except BackendMisconfigured as error:
        return Backend(name=name, type=kind, usable=False, detail=error.outside)
    return Backend(name=name, type=kind)


@router.get("/worlds", response_model=Worlds, responses=documented(), summary="Worlds")
async def list_worlds() -> Worlds:
    """What POST /v1/worlds/{name}/sample can name."""
    return Worlds(
        data=[
            WorldView(name=name, description=DESCRIPTIONS[name], difficulties=list(_DIFFICULTIES))
            for name in WORLDS
        ]
    )


@router.post(
    "/worlds/{name}/sample",
    response_model=Sampled,
    responses=documented(400, 404, 413, 415),
    summary="A task of a world",
)
def sample_world(name: Annotated[str, Path(examples=["maze"])], asked: SampleRequest | None = None) -> Sampled:
    """The picture and the prompt of a seed: the same seed gives the same task."""
    if name not in WORLDS:
        raise Refused(404, "unknown_world", f"there is no world {name[:60]!r}{suggest(name[:60], WORLDS)}")
    asked = asked or SampleRequest()
    task = sample(load(name), asked.difficulty, asked.seed, side_px=asked.side_px)
    png = base64.b64encode(encode_png(task.frame)).decode()
    return Sampled(picture=f"data:image/png;base64,{png}", prompt=task.prompt)
