"""A generator `wan` on a tiny checkpoint, and a look into the pipeline that it loaded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from generators.catalog import build
from generators.wan import Wan
from tests.generators.tiny_i2v import Table
from tests.generators.tiny_wan import SMALL


def wan(folder: Path, table: Table, **options: Any) -> Wan:
    """A generator of that checkpoint; a fresh one, which loads it again."""
    made = build("wan", {"model": str(folder), **SMALL, **options}, table.reader)
    assert isinstance(made, Wan)
    return made


def pipeline_of(generator: Wan) -> Any:
    """The pipeline that was loaded."""
    return generator._pipeline


def counted(pipeline: Any, names: tuple[str, ...] = ("transformer", "transformer_2")) -> dict[str, int]:
    """How often each expert runs from now on."""
    ran: dict[str, int] = {}

    def counter(name: str) -> Callable[..., None]:
        def count(*_: Any) -> None:
            ran[name] = ran.get(name, 0) + 1

        return count

    for name in names:
        if (expert := getattr(pipeline, name)) is not None:
            expert.register_forward_hook(counter(name))
    return ran
