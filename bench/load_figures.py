"""The arithmetic of `bench.load`: shares of time, percentiles, slopes, and whether watchers saw all.

It knows no process and no clock.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple


@dataclass(frozen=True)
class Figure:
    """A line of the table. `met`: None where there is no aim."""

    what: str
    value: str
    aim: str = ""
    met: bool | None = None


class Mark(NamedTuple):
    """When a render began and ended, in seconds of one clock."""

    began: float
    ended: float


class Seen(NamedTuple):
    """A stored event as a watcher saw it, or as the journal has it: number, kind, checksum of what it says."""

    number: int
    kind: str
    checksum: int


def busy_share(marks: Sequence[Mark]) -> float:
    """The share of the time between the first begin and the last end in which something was rendering, 0 … 1.

    Renders that overlap count once. Raises ValueError where there are fewer than two.
    """
    if len(marks) < 2:
        raise ValueError(f"{len(marks)} renders are too few for a share of time")
    ordered = sorted(marks)
    busy, reached = 0.0, ordered[0].began
    for mark in ordered:
        busy += max(0.0, mark.ended - max(mark.began, reached))
        reached = max(reached, mark.ended)
    return busy / (reached - ordered[0].began)


def steady(marks: Sequence[Mark], first: float, last: float) -> list[Mark]:
    """The renders that began at or after `first` and ended at or before `last`."""
    return [mark for mark in sorted(marks) if mark.began >= first and mark.ended <= last]


def read_marks(text: str) -> list[Mark]:
    """From lines "began ended"."""
    pairs = (line.split() for line in text.splitlines())
    return [Mark(float(began), float(ended)) for began, ended in pairs]


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of all values does not exceed. Raises ValueError for none."""
    if not values:
        raise ValueError("there are no values")
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -int(-share * len(ordered) // 1) - 1))]


def slope(points: Sequence[tuple[float, float]]) -> float:
    """By how much y grows per unit of x, by least squares; 0 where there are fewer than two x."""
    if len(points) < 2:
        return 0.0
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 0.0


def checksum(words: Mapping[str, Any]) -> int:
    """Of what an event says, whatever the order of its keys."""
    return zlib.crc32(json.dumps(words, sort_keys=True, separators=(",", ":")).encode())


def fault_of(seen: Sequence[Seen], recorded: Sequence[Seen]) -> str:
    """What is wrong with what a watcher saw; "" if it is the whole journal, in its order, each event once."""
    for number, (ours, theirs) in enumerate(zip(seen, recorded, strict=False)):
        if ours != theirs:
            what = "another content" if ours[:2] == theirs[:2] else f"event {ours.number} ({ours.kind})"
            return f"place {number + 1}: {what} where the journal has {theirs.number} ({theirs.kind})"
    if len(seen) < len(recorded):
        return f"only {len(seen)} of {len(recorded)} events"
    return f"{len(seen) - len(recorded)} events after the last one" if len(seen) > len(recorded) else ""


def table(parts: Mapping[str, Sequence[Figure]]) -> str:
    """Rows of text, a heading for each part."""
    rows = [figure for figures in parts.values() for figure in figures]
    widths = [max((len(cell(row)) for row in rows), default=0) for cell in (_what, _value, _aim)]
    lines: list[str] = []
    for name, figures in parts.items():
        lines.append(name)
        for row in figures:
            cells = f"{row.what:<{widths[0]}}  {row.value:>{widths[1]}}  {row.aim:<{widths[2]}}  {_met(row)}"
            lines.append(f"  {cells}".rstrip())
    return "\n".join(lines)


def _what(row: Figure) -> str:
    return row.what


def _value(row: Figure) -> str:
    return row.value


def _aim(row: Figure) -> str:
    return row.aim


def _met(row: Figure) -> str:
    return "" if row.met is None else "met" if row.met else "MISSED"
