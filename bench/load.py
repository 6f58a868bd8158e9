"""Measures the service under load, on processes that it starts itself: a table with aims (`make bench-load`).

    python -m bench.load                 # everything, about six minutes on a quiet machine
    python -m bench.load --minutes 10    # the API's memory is watched for ten minutes
    python -m bench.load --quick busy    # one part of it, small: a smoke test, no figures to quote

Parts: busy (the share of time in which the generator runs, by jobs in flight), overhead (from a submission to its
first render), watchers (events, status reads and memory of one API process). It wants two cores for itself.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench import load_busy, load_overhead, load_watchers
from bench.load_figures import Figure, table
from bench.load_service import Elsewhere
from orchestrator.errors import CliploopError

IN_FLIGHT = (1, 2, 4, 16)


@dataclass(frozen=True)
class Given:
    """The options."""

    parts: Sequence[str]
    in_flight: Sequence[int]
    seconds: float
    reason_workers: int
    jobs: int
    quick: bool
    minutes: float
    elsewhere: Elsewhere


def say(words: str) -> None:
    """Progress, for people."""
    print(f"... {words}", file=sys.stderr, flush=True)


def busy(folder: Path, given: Given) -> list[Figure]:
    """Part (a)."""
    figures: list[Figure] = []
    load = load_busy.Load(seconds=given.seconds, num_reason=given.reason_workers)
    if given.quick:
        load = load_busy.Load(
            render_seconds=0.2, vlm_seconds=0.02, width=192, height=128, seconds=3.0, warm_up_seconds=1.0
        )
    for count in given.in_flight:
        say(f"{count} jobs in flight for {load.seconds:g} s")
        figures += load_busy.measure(folder / f"busy-{count}", count, load, given.elsewhere)
    return figures


def overhead(folder: Path, given: Given) -> list[Figure]:
    """Part (b)."""
    say(f"{given.jobs} submissions, one after the other")
    load = load_busy.Load(width=192, height=128) if given.quick else load_busy.Load()
    return load_overhead.measure(folder / "overhead", given.jobs, load, given.elsewhere)


def watchers(folder: Path, given: Given) -> list[Figure]:
    """Part (c)."""
    crowd = load_watchers.Crowd(minutes=given.minutes)
    if given.quick:
        crowd = load_watchers.Crowd(jobs=6, watchers=30, processes=2, rounds=1, minutes=0.05, seconds=1.0)
    return load_watchers.measure(folder / "watchers", crowd, given.elsewhere, say)


PARTS: dict[str, Callable[[Path, Given], list[Figure]]] = {
    "busy": busy,
    "overhead": overhead,
    "watchers": watchers,
}


def parsed(arguments: Sequence[str] | None) -> Given:
    """The options. Ends with a message where they cannot be."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.load", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all if none is named")
    parser.add_argument("--quick", action="store_true", help="small: whether it runs, not how fast")
    parser.add_argument("--in-flight", type=int, nargs="+", metavar="N", help="jobs in flight (1 2 4 16)")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long each of them is measured (60)")
    parser.add_argument("--reason-workers", type=int, default=2, metavar="N", help="in part busy (2)")
    parser.add_argument("--jobs", type=int, metavar="N", help="submissions in part overhead (30)")
    parser.add_argument("--minutes", type=float, default=1.0, help="how long memory is watched (1)")
    parser.add_argument("--redis-url", metavar="URL", help="a broker that is there, instead of an own one")
    parser.add_argument("--database-url", metavar="URL", help="an empty PostgreSQL database, instead of SQLite")
    said = parser.parse_args(arguments)
    unknown = set(said.parts) - set(PARTS)
    if unknown:
        parser.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    numbers = (*(said.in_flight or ()), said.reason_workers, *(() if said.jobs is None else (said.jobs,)))
    if min(numbers) < 1 or min(said.seconds, said.minutes) <= 0:
        parser.error("numbers of things must be 1 or more, times more than 0")
    return Given(
        parts=said.parts or list(PARTS),
        in_flight=said.in_flight or ((2,) if said.quick else IN_FLIGHT),
        seconds=said.seconds,
        reason_workers=said.reason_workers,
        jobs=said.jobs or (3 if said.quick else 30),
        quick=said.quick,
        minutes=said.minutes,
        elsewhere=Elsewhere(said.redis_url, said.database_url),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 1 if an aim was missed. With `--quick` figures say nothing: 1 if one is missing."""
    given = parsed(arguments)
    with tempfile.TemporaryDirectory(prefix="cliploop-load-") as folder:
        found = {name: _measured(name, Path(folder), given) for name in given.parts}
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}{', quick' if given.quick else ''}")
    print(table(found))
    missed = [row for rows in found.values() for row in rows if row.met is False]
    if given.quick:
        return 1 if any(row.value == "-" for row in missed) else 0
    return 1 if missed else 0


def _measured(name: str, folder: Path, given: Given) -> list[Figure]:
    """A part that cannot be measured is a missed aim; the others are measured all the same."""
    try:
        return PARTS[name](folder, given)
    except (CliploopError, ValueError) as error:
        return [Figure(f"could not be measured: {error}", "-", "", False)]


if __name__ == "__main__":
    sys.exit(main())
