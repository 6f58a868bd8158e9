"""Text that can be written down as UTF-8."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

_LONE = re.compile(r"[\ud800-\udfff]")  # halves of a character, as JSON may hold them
UNKNOWN = "\ufffd"


def encodable(text: str) -> str:
    """The text with lone surrogates replaced: with one, nothing that holds it can be stored."""
    return text if text.isascii() else _LONE.sub(UNKNOWN, text)


def all_encodable(value: Any) -> Any:
    """A value as it is read from JSON, every text in it encodable."""
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, dict):
        held = cast("Mapping[Any, Any]", value)
        return {all_encodable(key): all_encodable(inner) for key, inner in held.items()}
    if isinstance(value, list):
        return [all_encodable(inner) for inner in cast("list[Any]", value)]
    if isinstance(value, tuple):
        return tuple(all_encodable(inner) for inner in cast("tuple[Any, ...]", value))
    return value
