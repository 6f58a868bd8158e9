"""A budget as text: `video_seconds=60,vlm_calls=40`, or as a table of the settings file."""

from __future__ import annotations

import math
from collections.abc import Mapping

from orchestrator.errors import TaskRejected
from orchestrator.faults import suggest
from orchestrator.records import Budget

WHOLE = frozenset({"vlm_calls", "vlm_tokens"})
EXAMPLE = "write it like video_seconds=60,vlm_calls=40"


def parse_budget(given: str | Mapping[str, float], where: str) -> Budget:
    """The budget. `where` is `--budget` or a place in a file. Raises TaskRejected(reason="budget")."""
    pairs = _pairs(given, where) if isinstance(given, str) else list(given.items())
    values: dict[str, float] = {}
    for key, written in pairs:
        if key not in Budget.model_fields:
            raise _wrong(f"{where}: unknown budget {key!r}{suggest(key, Budget.model_fields)}")
        if key in values:
            raise _wrong(f"{where}: {key} is there twice; keep one")
        values[key] = _number(key, written, where)
    return Budget.model_validate(values)


def _pairs(text: str, where: str) -> list[tuple[str, str]]:
    if not text.strip():
        raise _wrong(f"{where} is empty; {EXAMPLE}, or leave it out for no limit")
    pairs: list[tuple[str, str]] = []
    for part in text.split(","):
        key, equals, value = part.partition("=")
        if not equals or not key.strip() or not value.strip():
            raise _wrong(f"{where}: {part.strip()!r} is no KEY=N; {EXAMPLE}")
        pairs.append((key.strip(), value.strip()))
    return pairs


def _number(key: str, written: str | float, where: str) -> float:
    try:
        value = float(written)
    except ValueError:
        raise _wrong(f"{where}: {key}={written} is not a number; {EXAMPLE}") from None
    if not math.isfinite(value):
        raise _wrong(
            f"{where}: {key}={written} is no limit; give a finite number, or leave {key} out for no limit"
        )
    if value < 0:
        raise _wrong(f"{where}: {key}={written} is negative; give 0 or more")
    if key in WHOLE and value != int(value):
        raise _wrong(f"{where}: {key}={written} must be a whole number")
    return int(value) if key in WHOLE else value


def _wrong(message: str) -> TaskRejected:
    return TaskRejected(message, reason="budget")
