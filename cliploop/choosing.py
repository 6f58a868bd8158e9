"""What was chosen, by whom: built-in defaults, file, environment, command; the last word wins.

Each source names a preset, single keys, or both: its preset comes first, its keys refine that.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cliploop.settings import Settings
from orchestrator.errors import BackendMisconfigured
from orchestrator.faults import suggest

BUILT_IN: Mapping[str, Any] = {
    "generator": "simulated",
    "planner": "oracle",
    "verifier": "oracle",
    "strategy": "collabvr",
    "max_steps": 3,
    "max_attempts": 3,
    "seed": 0,
    "gate": "none",
}


@dataclass(frozen=True)
class Wanted:
    """What a command chooses; None = not said."""

    preset: str | None = None
    generator: str | None = None
    planner: str | None = None
    verifier: str | None = None
    strategy: str | None = None
    gate: str | None = None
    seed: int | None = None
    max_steps: int | None = None
    max_attempts: int | None = None
    budget: str | None = None

    def where(self, key: str) -> str:
        """What the one who chooses calls a field."""
        return f"--{key.replace('_', '-')}"


@dataclass(frozen=True)
class Chosen:
    """A value and where it was said, for messages: `--max-steps`, `cliploop.toml: [defaults] max_steps`."""

    value: Any
    where: str


def choose(settings: Settings, wanted: Wanted) -> dict[str, Chosen]:
    """The values that count. Raises BackendMisconfigured for an unknown preset."""
    chosen = {key: Chosen(value, f"built-in {key}") for key, value in BUILT_IN.items()}
    for source in _sources(settings, wanted):
        chosen.update(source)
    return chosen


def _sources(settings: Settings, wanted: Wanted) -> Iterator[dict[str, Chosen]]:
    origin = settings.origin
    file_keys = _said(settings.defaults.model_dump(exclude={"preset"}), lambda key: f"{origin}: [defaults] {key}")
    yield from _with_preset(settings, settings.defaults.preset, f"{origin}: [defaults] preset", file_keys)

    def variable(key: str) -> str:
        return settings.variables.get(("defaults", key), key)

    environment = _said(settings.environment.model_dump(exclude={"preset"}), variable)
    yield from _with_preset(settings, settings.environment.preset, variable("preset"), environment)
    options = {key: value for key, value in dataclasses.asdict(wanted).items() if key != "preset"}
    yield from _with_preset(settings, wanted.preset, wanted.where("preset"), _said(options, wanted.where))


def _with_preset(
    settings: Settings, preset: str | None, where: str, keys: dict[str, Chosen]
) -> Iterator[dict[str, Chosen]]:
    if preset is not None:
        if preset not in settings.presets:
            remedy = "" if settings.presets else f"; write [presets.{preset}] into cliploop.toml"
            what = f"{where}: no preset {preset!r}{suggest(preset, settings.presets)}"
            outside = what if settings.presets else f"{where}: this server has no presets: leave it out"
            raise BackendMisconfigured(f"{what}{remedy}", outside=outside)
        body = settings.presets[preset].model_dump()
        yield _said(body, lambda key: settings.where("presets", preset, key))
    yield keys


def _said(values: Mapping[str, Any], where: Callable[[str], str]) -> dict[str, Chosen]:
    return {key: Chosen(value, where(key)) for key, value in values.items() if value is not None}
