"""docker-compose.yml as Compose reads it: anchors merged, each ${NAME} filled in from what `.env` would say."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import yaml

ROOT = Path(__file__).parents[2]
COMPOSE_FILE = ROOT / "docker-compose.yml"
_NAME = re.compile(r"\$(?:(\$)|\{(\w+)(?::([-?])([^}]*))?\})")


@dataclass(frozen=True)
class Service:
    """What a test needs of a service to run it as a plain process."""

    name: str
    image: str
    command: list[str]
    environment: dict[str, str]
    check: list[str]  # the health check's words
    replicas: int


def written() -> dict[str, Any]:
    """The file itself, merged, nothing filled in."""
    return cast("dict[str, Any]", yaml.safe_load(COMPOSE_FILE.read_text(encoding="utf-8")))


def composed(values: Mapping[str, str]) -> dict[str, Any]:
    """With these values filled in. Raises LookupError with the file's own words for one that must be set."""
    return _filled(written(), values)


def services(values: Mapping[str, str]) -> dict[str, Service]:
    """Every service; `values` reach the processes too where the file says so with env_file."""
    found: dict[str, Service] = {}
    for name, body in composed(values)["services"].items():
        given = dict(values) if "env_file" in body else {}
        found[name] = Service(
            name=name,
            image=body["image"],
            command=body.get("command", []),
            environment={**given, **body.get("environment", {})},
            check=body["healthcheck"]["test"][1:],
            replicas=body.get("deploy", {}).get("replicas", 1),
        )
    return found


def _filled(value: Any, values: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _filled(each, values) for key, each in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_filled(each, values) for each in cast("list[Any]", value)]
    if isinstance(value, str):
        return _NAME.sub(lambda found: _value(found, values), value)
    return value


def _value(found: re.Match[str], values: Mapping[str, str]) -> str:
    dollar, name, how, words = found.groups()
    if dollar:
        return "$"
    if values.get(name):
        return values[name]
    if how == "?":
        raise LookupError(words)
    return words or ""
