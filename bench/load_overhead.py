"""From a submission to the begin of its first render, while nothing else goes on: what the service itself takes.

Backends answer at once, so all of it is ours.
"""

from __future__ import annotations

import itertools
import statistics
import time
from dataclasses import dataclass, replace
from pathlib import Path

from bench.load_busy import Load
from bench.load_figures import Figure, Mark, percentile, read_marks
from bench.load_service import Caller, Elsewhere, Service, running, submission
from orchestrator.errors import CliploopError
from storage.jobs import FINAL_STATES, load_job
from storage.journal import Entry, read_entries

AIM_SECONDS = 0.150
WARM_UP_JOBS = 3
ENDS_SECONDS = 60.0
IDLE_SECONDS = 0.3
LOOK_SECONDS = 0.005
STAGES = ("stored", "taken up by the reason worker", "planned", "render begins")


@dataclass(frozen=True)
class Run:
    """One submission, in seconds: the request's answer, the first render's begin, and the stages up to it."""

    answered: float
    begun: float
    stages: tuple[float, ...]


def measure(folder: Path, jobs: int, load: Load, elsewhere: Elsewhere) -> list[Figure]:
    """Medians over so many jobs."""
    instant = replace(load, render_seconds=0.0, vlm_seconds=0.0)
    body = submission(3, load.width, load.height, max_steps=1)
    with running(folder, instant.settings, elsewhere) as service:
        service.start_workers(num_reason=1)
        runs = [_one(service, body) for _ in range(WARM_UP_JOBS + jobs)][WARM_UP_JOBS:]
    begun = [run.begun for run in runs]
    median = statistics.median(begun)
    parts = zip(STAGES, zip(*(run.stages for run in runs), strict=True), strict=True)
    return [
        Figure(
            f"submit to first render, median of {jobs}",
            _ms(median),
            f"≤ {_ms(AIM_SECONDS)}",
            median <= AIM_SECONDS,
        ),
        Figure("submit to first render, 95th percentile", _ms(percentile(begun, 0.95))),
        Figure("the POST is answered after", _ms(statistics.median(run.answered for run in runs))),
        *(Figure(f"of it: {stage}", _ms(statistics.median(taken))) for stage, taken in parts),
    ]


def _one(service: Service, body: dict[str, object]) -> Run:
    """Submit, wait for the end, and a little more."""
    known = len(service.marks.read_text().splitlines())
    epoch = time.time() - time.monotonic()
    sent = time.monotonic()
    job_id = Caller(service.address).submit(body)
    answered = time.monotonic() - sent
    limit = time.monotonic() + ENDS_SECONDS
    while load_job(service.site.database, job_id).state.state not in FINAL_STATES:
        if time.monotonic() > limit:
            raise CliploopError(f"{job_id} did not end within {ENDS_SECONDS:g} s")
        time.sleep(LOOK_SECONDS)
    time.sleep(IDLE_SECONDS)
    mark = read_marks(service.marks.read_text())[known]
    return run_of(sent, answered, mark, read_entries(service.site.database, job_id), epoch)


def run_of(sent: float, answered: float, mark: Mark, entries: list[Entry], epoch: float) -> Run:
    """`epoch` is what a monotonic time lacks to the journal's."""
    at: dict[str, float] = {}
    for entry in entries:
        name = f"state {entry.value['state']}" if entry.kind == "state" else entry.key
        at.setdefault(name, entry.recorded_at - epoch)
    moments = (sent, at["state queued"], at["state running"], at["step/1/plan"], mark.began)
    stages = tuple(after - before for before, after in itertools.pairwise(moments))
    return Run(answered, mark.began - sent, stages)


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:.0f} ms"
