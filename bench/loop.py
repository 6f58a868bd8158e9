"""What the loop costs per attempt, outside generator and verifier: a table with aims (`make bench-loop`).

Each kind of clip is measured in processes of its own, so that memory is its own too.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from dataclasses import dataclass

CLIPS = ((832, 480, 81), (512, 512, 33))
CONTENTS = ("flat", "natural")

Figures = dict[str, float]


@dataclass(frozen=True)
class Row:
    """A line of the table: what, the figure's key, unit, and the highest value aimed at."""

    what: str
    key: str
    unit: str = "ms"
    aim: float | None = None


ROWS = (
    Row("journal, one entry", "journal"),
    Row("journal, one entry, 95th percentile", "journal_p95"),
    Row("journal, a rejected attempt's 5 entries", "journal_attempt", aim=2.0),
    Row("mezzanine: encode, last frame, PSNR and SSIM", "mezzanine"),
    Row("quick checks", "check"),
    Row("hand-off: cut, frame k, PNG", "hand_off", aim=150.0),
    Row("hand-off, in a resumed process", "hand_off_cold", aim=150.0),
    Row("an attempt in all", "attempt"),
    Row("the frames of 3 clips in one encode", "one_go"),
    Row("stitch and deliver 3 clips", "deliver"),
    Row("ratio", "ratio", "×", aim=1.5),
    Row("stitch and deliver, in a resumed process", "deliver_cold"),
    Row("ratio, in a resumed process", "ratio_cold", "×", aim=1.5),
    Row("peak memory, ffmpeg included", "memory_mib", "MiB", aim=600.0),
)
ENTRIES_PER_ATTEMPT = 5  # of a rejected one: clip, check, verdict/try/1, verdict, cut


def measure(clip: tuple[int, int, int], content: str, runs: int) -> Figures:
    """All figures of one kind of clip."""
    figures = {**_child("loop", clip, content, runs), **_child("one_go", clip, content, runs)}
    figures["ratio"] = figures["deliver"] / figures["one_go"]
    figures["ratio_cold"] = figures["deliver_cold"] / figures["one_go"]
    figures["journal_attempt"] = ENTRIES_PER_ATTEMPT * figures["journal"]
    parts = ("journal_attempt", "mezzanine", "check", "hand_off")
    figures["attempt"] = sum(figures[part] for part in parts)
    return figures


def _child(part: str, clip: tuple[int, int, int], content: str, runs: int) -> Figures:
    command = [sys.executable, "-m", "bench.loop_costs", part, content, *map(str, clip), str(runs)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def table(columns: dict[str, Figures]) -> str:
    """Rows of text; a figure over its aim is marked with `!`."""
    width = max(len(row.what) for row in ROWS)
    lines = [f"{'per attempt, medians':<{width}}  {'aim':>9}" + "".join(f"{name:>22}" for name in columns)]
    for row in ROWS:
        aim = f"≤ {row.aim:g} {row.unit}" if row.aim is not None else ""
        cells = "".join(f"{_cell(figures[row.key], row):>22}" for figures in columns.values())
        lines.append(f"{row.what:<{width}}  {aim:>9}{cells}")
    return "\n".join(lines)


def _cell(value: float, row: Row) -> str:
    over = "!" if row.aim is not None and value > row.aim else " "
    digits = 2 if value < 10 else 0
    return f"{value:.{digits}f} {row.unit}{over}"


def main() -> None:
    """Measure and print; the exit code says nothing of the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="repetitions of each measurement")
    runs = parser.parse_args().runs
    columns: dict[str, Figures] = {}
    for clip in CLIPS:
        for content in CONTENTS:
            name = f"{clip[0]}x{clip[1]}, {clip[2]}, {content}"
            print(f"measuring {name} ...", file=sys.stderr, flush=True)
            columns[name] = measure(clip, content, runs)
    print(table(columns))
    if any(row.aim is not None and f[row.key] > row.aim for row in ROWS for f in columns.values()):
        print("! above the aim")


if __name__ == "__main__":
    main()
