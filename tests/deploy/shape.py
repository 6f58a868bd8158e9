"""A schema of those parts of the Compose specification that docker-compose.yml uses; anything else is refused."""

from __future__ import annotations

from typing import Any

_TEXT = {"type": "string", "minLength": 1}
_WORDS = {"type": "array", "items": _TEXT, "minItems": 1}
_DURATION = {"type": "string", "pattern": "^[0-9]+(ms|s|m|h)$"}
_SIZE = {"type": "string", "pattern": "^[0-9]+(kb|mb|gb)$"}
_NAME = "^[a-z][a-z0-9_-]*$"


def _object(required: list[str], /, **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "required": required,
        "properties": properties,
        "additionalProperties": False,
    }


def _named(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "patternProperties": {_NAME: schema}, "additionalProperties": False}


_HEALTH_CHECK = _object(
    ["test", "interval", "timeout", "retries", "start_period"],
    test={"type": "array", "items": _TEXT, "minItems": 2, "prefixItems": [{"const": "CMD"}]},
    interval=_DURATION,
    timeout=_DURATION,
    retries={"type": "integer", "minimum": 1},
    start_period=_DURATION,
)
_BUILD = {
    "anyOf": [
        _TEXT,
        _object(["context"], context=_TEXT, args={"type": "object", "additionalProperties": _TEXT}),
    ]
}
_DEVICE = _object(
    ["driver", "count", "capabilities"],
    driver={"const": "nvidia"},
    count={"type": "integer", "minimum": 1},
    capabilities={"const": ["gpu"]},
)
_RESOURCES = _object(
    ["reservations"], reservations=_object(["devices"], devices={"type": "array", "items": _DEVICE})
)
_SERVICE = _object(
    ["image", "user", "init", "restart", "stop_grace_period", "networks", "healthcheck"],
    image={"type": "string", "pattern": "^[a-z0-9/._-]+:[A-Za-z0-9._-]+$"},
    build=_BUILD,
    command=_WORDS,
    user={"type": "string", "minLength": 1},
    init={"type": "boolean"},
    restart={"enum": ["unless-stopped", "always", "on-failure"]},
    stop_grace_period=_DURATION,
    shm_size=_SIZE,
    cap_drop={"const": ["ALL"]},
    security_opt=_WORDS,
    env_file={
        "type": "array",
        "items": _object(["path", "required"], path=_TEXT, required={"type": "boolean"}),
    },
    environment={"type": "object", "additionalProperties": {"type": "string"}},
    configs={"type": "array", "items": _object(["source", "target"], source=_TEXT, target=_TEXT)},
    volumes={"type": "array", "items": {"type": "string", "pattern": "^[a-z]+:/[a-z/]+$"}},
    networks={"type": "array", "items": _TEXT, "uniqueItems": True, "minItems": 1},
    ports={"type": "array", "items": {"type": "string"}},
    profiles=_WORDS,
    depends_on=_named(_object(["condition"], condition={"enum": ["service_healthy", "service_started"]})),
    deploy=_object([], replicas={"type": "integer", "minimum": 1}, resources=_RESOURCES),
    healthcheck=_HEALTH_CHECK,
)
_NOTHING: dict[str, Any] = {"type": "null"}

SHAPE: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "required": ["name", "services"],
    "properties": {
        "name": {"type": "string", "pattern": _NAME},
        "services": _named(_SERVICE),
        "networks": _named({"anyOf": [_NOTHING, _object([], internal={"type": "boolean"})]}),
        "volumes": _named(_NOTHING),
        "configs": _named(_object(["file"], file=_TEXT)),
    },
    "patternProperties": {"^x-": {"type": "object"}},
    "additionalProperties": False,
}
