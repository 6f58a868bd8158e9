"""Every generator by name: where its code is and what its options are, as strings, imported when it is built."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ValidationError

from media.frames import FrameReader
from orchestrator.errors import BackendMisconfigured
from orchestrator.ports import Generator


@dataclass(frozen=True)
class Line:
    """A catalog entry. `builder(options, reader)` builds it; `preset` are options that the name stands for.

    `figures(options)` says what else decides how it renders.
    """

    builder: str
    options: str
    figures: str
    preset: Mapping[str, Any] = field(default_factory=dict[str, Any])


_SIMULATED = (
    "generators.simulated:build",
    "generators.simulated:SimulatedOptions",
    "generators.simulated:figures",
)
GENERATORS: dict[str, Line] = {
    "simulated": Line(*_SIMULATED, {"profile": "vbvr-wan2.2"}),
    "simulated-perfect": Line(*_SIMULATED, {"profile": "perfect"}),
    "simulated-veo": Line(*_SIMULATED, {"profile": "veo-3.1"}),
    "simulated-cosmos": Line(*_SIMULATED, {"profile": "cosmos-2.5"}),
}


def find(name: str) -> Line:
    """The entry of that name. Raises BackendMisconfigured, naming those that exist."""
    if name not in GENERATORS:
        near = difflib.get_close_matches(name, GENERATORS, n=1)
        meant = f"; did you mean {near[0]}?" if near else ""
        raise BackendMisconfigured(f"there is no generator {name!r}; there are {', '.join(GENERATORS)}{meant}")
    return GENERATORS[name]


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
        raise BackendMisconfigured(
            f"generator {name!r}: {where}: {first['msg']}; its options: {known}"
        ) from error


def build(name: str, given: Mapping[str, Any], reader: FrameReader | None) -> Generator:
    """Build the generator of that name; without a reader it can only be asked for its capabilities.

    Raises BackendMisconfigured.
    """
    return _resolved(find(name).builder)(options(name, given), reader)


def content(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """All that decides how it renders, for a digest: options and the figures behind them."""
    chosen = options(name, given)
    return {"options": chosen.model_dump(mode="json"), "figures": _resolved(find(name).figures)(chosen)}


def _resolved(line: str) -> Any:
    module, _, attribute = line.partition(":")
    return getattr(importlib.import_module(module), attribute)
