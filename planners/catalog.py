"""Every planner by name, each in every role: strings, imported when it is built."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from pydantic import BaseModel, ValidationError

from media.frames import FrameReader
from orchestrator.errors import BackendMisconfigured
from orchestrator.ports import Assessor, Planner, Router, Verifier


class Model(Planner, Verifier, Router, Assessor, Protocol):
    """A vision-language model in every role."""


@dataclass(frozen=True)
class Line:
    """A catalog entry. `builder(options, reader)` builds it; `preset` are options that the name stands for.

    `figures(options)` says what else decides its answers.
    """

    builder: str
    options: str
    figures: str
    preset: Mapping[str, Any] = field(default_factory=dict[str, Any])


_ORACLE = ("planners.oracle:build", "planners.oracle:OracleOptions", "planners.oracle:figures")
PLANNERS: dict[str, Line] = {
    "oracle": Line(*_ORACLE, {"profile": "exact"}),
    "oracle-gemini": Line(*_ORACLE, {"profile": "gemini-2.5-pro"}),
    "oracle-qwen": Line(*_ORACLE, {"profile": "qwen3.5"}),
}


def find(name: str) -> Line:
    """The entry of that name. Raises BackendMisconfigured, naming those that exist."""
    if name not in PLANNERS:
        near = difflib.get_close_matches(name, PLANNERS, n=1)
        meant = f"; did you mean {near[0]}?" if near else ""
        raise BackendMisconfigured(
            f"there is no planner or verifier {name!r}; there are {', '.join(PLANNERS)}{meant}"
        )
    return PLANNERS[name]


def options(name: str, given: Mapping[str, Any] | None = None) -> BaseModel:
    """The options of an entry, its preset first, then what is given. Raises BackendMisconfigured."""
    line = find(name)
    model: type[BaseModel] = _resolved(line.options)
    try:
        return model(**{**line.preset, **(given or {})})
    except ValidationError as error:
        first = error.errors()[0]
        known = ", ".join(model.model_fields)
        where = ".".join(map(str, first["loc"]))
        raise BackendMisconfigured(f"planner {name!r}: {where}: {first['msg']}; its options: {known}") from error


def build(name: str, given: Mapping[str, Any], reader: FrameReader | None) -> Model:
    """Build the model of that name, for any role. Raises BackendMisconfigured."""
    return _resolved(find(name).builder)(options(name, given), reader)


def content(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """All that decides how it answers, for a digest: options and the figures behind them."""
    chosen = options(name, given)
    return {"options": chosen.model_dump(mode="json"), "figures": _resolved(find(name).figures)(chosen)}


def _resolved(line: str) -> Any:
    module, _, attribute = line.partition(":")
    return getattr(importlib.import_module(module), attribute)
