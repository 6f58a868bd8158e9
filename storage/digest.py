"""One form of JSON for a value, and its digest: equal inputs, equal digest, on every machine.

It knows records and plain JSON values; anything else is refused, so that no accident of `repr` gets in.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

from orchestrator.records import Record

_EXACT = 2**53  # every whole float below is also an int, digit for digit


def dump(record: Record) -> dict[str, Any]:
    """The record's JSON form."""
    return record.model_dump(mode="json")


def canonical(value: Any) -> str:
    """Canonical JSON: keys sorted, no spaces, ASCII; 1 and 1.0 are one number, as are 0.0 and -0.0.

    Raises TypeError for what is neither JSON nor a record, ValueError for NaN and infinity.
    """
    return json.dumps(_plain(value, ""), sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def digest(value: Any) -> str:
    """SHA-256 of the canonical JSON, 64 hex digits."""
    return hashlib.sha256(canonical(value).encode("ascii")).hexdigest()


def _plain(value: Any, where: str) -> Any:
    if isinstance(value, Record):
        return _plain(dump(value), where)
    if isinstance(value, Mapping):
        return _plain_mapping(cast("Mapping[Any, Any]", value), where)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return _number(float(value), where)
    if isinstance(value, list | tuple):
        items = cast("Sequence[Any]", value)
        return [_plain(item, f"{where}/{index}") for index, item in enumerate(items)]
    raise TypeError(f"inputs{where}: {type(value).__name__} is neither a record nor JSON")


def _plain_mapping(value: Mapping[Any, Any], where: str) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    for key, item in value.items():
        if not isinstance(key, str):
            raise TypeError(f"inputs{where}: key {key!r} is not a string")
        plain[str(key)] = _plain(item, f"{where}/{key}")
    return plain


def _number(value: float, where: str) -> int | float:
    if not math.isfinite(value):
        raise ValueError(f"inputs{where}: {value} has no JSON form")
    return int(value) if value.is_integer() and abs(value) < _EXACT else value
