"""What each role's reply must look like: JSON schemas in the subset that guided decoding understands everywhere.

Every field is required and no other allowed; reasons come before decisions, so that a model weighs before it
says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from orchestrator.records import Confidence, FailureKind, Progress, RouteAction
from planners.questions import Role

_TEXT: Mapping[str, Any] = {"type": "string"}
_FLAG: Mapping[str, Any] = {"type": "boolean"}


def _one_of(*words: str) -> dict[str, Any]:
    return {"type": "string", "enum": list(words)}


def _whole(least: int, most: int | None = None) -> dict[str, Any]:
    bounds = {"minimum": least} if most is None else {"minimum": least, "maximum": most}
    return {"type": "integer", **bounds}


def _object(**fields: Mapping[str, Any]) -> dict[str, Any]:
    properties = {name: dict(kind) for name, kind in fields.items()}
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_CONFIDENCE = _one_of(*get_args(Confidence))
SCHEMAS: Mapping[Role, Mapping[str, Any]] = {
    "planner": _object(
        observation=_TEXT,
        remaining_goal=_TEXT,
        task_complete=_FLAG,
        instruction=_TEXT,
        target_state=_TEXT,
        estimated_steps_remaining=_whole(0),
        confidence=_CONFIDENCE,
    ),
    "verifier": _object(
        reason=_TEXT,
        verdict=_one_of("accept", "reject", "unclear"),
        action_executed=_FLAG,
        progress=_one_of(*get_args(Progress)),
        confidence=_CONFIDENCE,
        failure=_one_of("none", *get_args(FailureKind)),
        suggestion=_TEXT,
        good_fraction={"type": "number", "minimum": 0, "maximum": 1},
    ),
    "router": _object(
        reason=_TEXT,
        action=_one_of(*get_args(RouteAction)),
        suggestion=_TEXT,
        sub_actions={"type": "array", "items": dict(_TEXT)},
    ),
    "assessor": _object(reason=_TEXT, task_complete=_FLAG),
    "selector": _object(reason=_TEXT, best_index=_whole(0)),
}


def choice_schema(count: int) -> dict[str, Any]:
    """The selector's, among so many candidates."""
    return _object(reason=_TEXT, best_index=_whole(0, count - 1))
