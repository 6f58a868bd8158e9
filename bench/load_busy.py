"""How much of the time the generator runs: one render worker, so many jobs in flight."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.load_figures import Figure, busy_share, read_marks, steady
from bench.load_service import Caller, Elsewhere, Service, cpu_seconds, running, submission
from storage.submissions import unfinished

AIM = 0.98
FROM_IN_FLIGHT = 4  # the aim holds from here on
LOOK_SECONDS = 0.05
PICTURES = 8
SETTINGS = """
[defaults]
generator = "slow"
planner = "slow"
verifier = "slow"
max_steps = 3
first_step_seconds = 5.0
step_seconds = 5.0

[generators.slow]
type = "bench.slow_backends:GENERATOR"
draws = "shift"
seconds = {render_seconds}
marks = "{marks}"

[vlms.slow]
type = "bench.slow_backends:MODEL"
seconds = {vlm_seconds}
reads = "nothing"
steps = 3

[planners.slow]
vlm = "slow"

[verifiers.slow]
vlm = "slow"
"""


@dataclass(frozen=True)
class Load:
    """What is measured. 5 s at 16 frames/s are 81 frames."""

    render_seconds: float = 0.98
    vlm_seconds: float = 0.068
    width: int = 832
    height: int = 480
    seconds: float = 60.0
    warm_up_seconds: float = 8.0
    num_reason: int = 2

    @property
    def settings(self) -> str:
        values = {"render_seconds": self.render_seconds, "vlm_seconds": self.vlm_seconds}
        text = SETTINGS
        for name, value in values.items():
            text = text.replace(f"{{{name}}}", str(float(value)))
        return text


def measure(folder: Path, in_flight: int, load: Load, elsewhere: Elsewhere) -> list[Figure]:
    """The share with that many jobs in flight."""
    with running(folder, load.settings, elsewhere) as service:
        service.start_workers(num_reason=load.num_reason)
        bodies = itertools.cycle([submission(seed, load.width, load.height) for seed in range(PICTURES)])
        first, last, used = _keep_in_flight(service, in_flight, load, bodies)
        marks = steady(read_marks(service.marks.read_text()), first, last)
    within = busy_share(marks)
    mean = statistics.mean(mark.ended - mark.began for mark in marks)
    share = load.render_seconds * len(marks) / (marks[-1].ended - marks[0].began)
    gaps = [after.began - before.ended for before, after in itertools.pairwise(marks)]
    aimed = in_flight >= FROM_IN_FLIGHT
    aim = f"≥ {AIM:.0%}" if aimed else ""
    name = f"{in_flight} in flight"
    return [
        Figure(f"{name}: the generator runs", f"{share:.1%}", aim, share >= AIM if aimed else None),
        Figure(f"{name}: renders, their mean, share within them", f"{len(marks)}, {mean:.3f} s, {within:.1%}"),
        Figure(
            f"{name}: gap between renders, median (max)", f"{_ms(statistics.median(gaps))} ({_ms(max(gaps))})"
        ),
        Figure(f"{name}: cores used: api, reason, render", ", ".join(f"{each:.2f}" for each in used)),
    ]


def _keep_in_flight(
    service: Service, in_flight: int, load: Load, bodies: Iterator[dict[str, object]]
) -> tuple[float, float, list[float]]:
    """Submit a job whenever one has ended; when the steady time began and ended, and the cores used meanwhile."""
    caller = Caller(service.address)
    _wait(lambda: bool(service.marks.stat().st_size), caller, service, in_flight, bodies, 120.0)
    limit = time.monotonic() + load.warm_up_seconds
    _wait(lambda: time.monotonic() > limit, caller, service, in_flight, bodies, load.warm_up_seconds + 1)
    first, before = time.monotonic(), _used(service)
    _wait(lambda: time.monotonic() > first + load.seconds, caller, service, in_flight, bodies, load.seconds + 1)
    last, after = time.monotonic(), _used(service)
    return first, last, [(b - a) / (last - first) for a, b in zip(before, after, strict=True)]


def _wait(
    over: Callable[[], bool],
    caller: Caller,
    service: Service,
    in_flight: int,
    bodies: Iterator[dict[str, object]],
    seconds: float,
) -> None:
    limit = time.monotonic() + seconds
    while not over() and time.monotonic() < limit:
        for _ in range(in_flight - len(unfinished(service.site.database))):
            caller.submit(next(bodies))
        time.sleep(LOOK_SECONDS)


def _used(service: Service) -> list[float]:
    return [cpu_seconds(service.pids(role)) for role in ("api", "reason", "render")]


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:.0f} ms"
