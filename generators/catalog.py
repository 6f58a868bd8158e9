"""Every generator by name: where its code is and what its options are, as strings, imported when it is built."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from media.frames import FrameReader
from orchestrator.catalogs import Catalog, Line
from orchestrator.ports import Generator

_SIMULATED = (
    "generators.simulated:build",
    "generators.simulated:SimulatedOptions",
    "generators.simulated:figures",
)
GENERATORS = Catalog(
    "generator",
    {
        "simulated": Line(*_SIMULATED, {"profile": "vbvr-wan2.2"}),
        "simulated-perfect": Line(*_SIMULATED, {"profile": "perfect"}),
        "simulated-veo": Line(*_SIMULATED, {"profile": "veo-3.1"}),
        "simulated-cosmos": Line(*_SIMULATED, {"profile": "cosmos-2.5"}),
        "wan": Line(
            "generators.wan:build", "generators.wan_options:WanOptions", "generators.wan:figures", extra="wan"
        ),
        "cosmos": Line(
            "generators.cosmos:build", "generators.cosmos:CosmosOptions", "generators.cosmos:figures", extra="wan"
        ),
        "diffusers_i2v": Line(
            "generators.diffusers_i2v:build",
            "generators.diffusers_options:DiffusersI2vOptions",
            "generators.diffusers_i2v:figures",
            extra="wan",
        ),
        "veo": Line(
            "generators.veo:build", "generators.veo:VeoOptions", "generators.veo:figures", extra="gemini"
        ),
        "openai_videos": Line(
            "generators.openai_videos:build",
            "generators.openai_videos:OpenAIVideosOptions",
            "generators.openai_videos:figures",
            extra="openai",
        ),
    },
)


def build(name: str, given: Mapping[str, Any], reader: FrameReader | None) -> Generator:
    """Build the generator of that name; without a reader it can only be asked for its capabilities.

    Raises BackendMisconfigured.
    """
    return GENERATORS.build(name, given, reader)
