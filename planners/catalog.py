"""Every planner by name, each in every role: strings, imported when it is built."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from media.frames import FrameReader
from orchestrator.catalogs import Catalog, Line
from orchestrator.ports import Assessor, Clock, Planner, RateLimiter, Router, Selector, Verifier


class Model(Planner, Verifier, Router, Assessor, Selector, Protocol):
    """A vision-language model in every role."""


_ORACLE = ("planners.oracle:build", "planners.oracle:OracleOptions", "planners.oracle:figures")
PLANNERS = Catalog(
    "planner",
    {
        "oracle": Line(*_ORACLE, {"profile": "exact"}),
        "oracle-gemini": Line(*_ORACLE, {"profile": "gemini-2.5-pro"}),
        "oracle-qwen": Line(*_ORACLE, {"profile": "qwen3.5"}),
        "gemini": Line(
            "planners.gemini:build", "planners.gemini:GeminiOptions", "planners.gemini:figures", extra="gemini"
        ),
        "openai_compatible": Line(
            "planners.openai_compatible:build",
            "planners.openai_compatible_options:OpenAICompatibleOptions",
            "planners.roles:figures",
            extra="openai",
        ),
    },
    asked="planner or verifier",
)


def build(
    name: str,
    given: Mapping[str, Any],
    reader: FrameReader | None,
    *,
    limiter: RateLimiter | None = None,
    clock: Clock | None = None,
) -> Model:
    """Build the model of that name, for any role; with a limiter it keeps to its options' limits.

    Raises BackendMisconfigured.
    """
    model: Any = PLANNERS.build(name, given, reader)
    if limiter is None or clock is None:
        return model
    from planners.pacing import keeping_pace

    return keeping_pace(model, PLANNERS.options(name, given), limiter, clock)
