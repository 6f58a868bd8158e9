"""What is wrong with a value, in plain words: the kinds of faults that pydantic finds.

It knows no field, and not where a value was written: a message begins with that, and goes on with these words.
"""

from __future__ import annotations

import difflib
import types
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel

MAX_CHARS = 300
MUST_BE: Mapping[str, str] = {
    **dict.fromkeys(("int_parsing", "int_type", "int_from_float"), "an integer, such as 3"),
    "int_parsing_size": "an integer of fewer digits",
    **dict.fromkeys(("float_parsing", "float_type"), "a number, such as 0.5"),
    "finite_number": "a finite number, such as 0.5",
    **dict.fromkeys(("bool_parsing", "bool_type"), "true or false"),
    "string_type": "a text",
    "string_unicode": "a text in UTF-8",
    "string_sub_type": "a text",
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type", "mapping_type"), "an object"),
    **dict.fromkeys(("list_type", "tuple_type", "set_type", "frozen_set_type"), "a list"),
    **dict.fromkeys(("bytes_type", "bytes_invalid_encoding"), "bytes"),
    "none_required": "null",
    "json_type": "JSON as text",
    "greater_than_equal": "at least {ge}",
    "greater_than": "more than {gt}",
    "less_than_equal": "at most {le}",
    "less_than": "less than {lt}",
    "multiple_of": "a multiple of {multiple_of}",
    **dict.fromkeys(("literal_error", "enum"), "{expected}"),
    "string_pattern_mismatch": "like {pattern}",
}
SAYS: Mapping[str, str] = {
    "missing": "is missing",
    "extra_forbidden": "there is no such field: leave it out",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "too_short": "must have at least {min_length} entries",
    "too_long": "must have at most {max_length} entries",
    "recursion_loop": "is nested too deeply",
}
NOT_FIT = "is not what can stand here"


def must_be(error: Mapping[str, Any], *, own: Mapping[str, str] | None = None) -> str | None:
    """What it must be, such as `at least 1`; None for another kind of fault. `own`: words to use instead."""
    form = {**MUST_BE, **(own or {})}.get(error["type"])
    return None if form is None else form.format_map(_figures(error))


def words(error: Mapping[str, Any]) -> str:
    """What follows a field's name and a colon: `must be at least 1`, `is missing`; nothing that was sent."""
    wanted = must_be(error)
    if wanted is not None:
        return f"must be {wanted}"[:MAX_CHARS]
    if error["type"] in ("value_error", "assertion_error"):  # of a validator of ours, in its own words
        return str(error.get("ctx", {}).get("error", NOT_FIT))[:MAX_CHARS]
    return SAYS.get(error["type"], NOT_FIT).format_map(_figures(error))[:MAX_CHARS]


def unknown_field(name: str, known: Iterable[str]) -> str:
    """`there is no such field; did you mean 'seed'? known: …`."""
    return f"there is no such field{suggest(name, known)}"


def suggest(wrong: str, known: Iterable[str]) -> str:
    """`; did you mean 'generator'? Known: …` for a message about an unknown name."""
    names = sorted(known)
    close = difflib.get_close_matches(wrong.lower(), names, n=1, cutoff=0.6)
    meant = f"; did you mean {close[0]!r}?" if close else ";"
    return f"{meant} known: {', '.join(names)}" if names else "; none is known"


def place(kind: Any, where: Sequence[int | str]) -> tuple[list[str], list[str]]:
    """Where a fault is, by the names of fields alone, and the fields that are known at its end.

    `kind` is the model, or the type of a field. Pydantic puts the branches of a union into the place of a fault;
    they are no fields, and left out.
    """
    names: list[str] = []
    for part in where:
        known = {name: model for model in _models(kind) for name in model.model_fields}
        if isinstance(part, int):
            names.append(str(part))
        elif part in known:
            names.append(part)
            kind = known[part].model_fields[part].annotation
    return names, sorted({name for model in _models(kind) for name in model.model_fields})


def _models(kind: Any) -> list[type[BaseModel]]:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return [kind]
    if get_origin(kind) in (Union, types.UnionType):
        return [model for branch in get_args(kind) for model in _models(branch)]
    return []


def _figures(error: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(value).removesuffix(".0") for name, value in error.get("ctx", {}).items()}
