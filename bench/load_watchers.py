"""Many watchers and readers on one API process: whether all see every event in order, at which speed and size."""

from __future__ import annotations

import contextlib
import json
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.load_busy import Load
from bench.load_clients import allow_descriptors
from bench.load_figures import Figure, Seen, checksum, fault_of, percentile, slope
from bench.load_service import ROOT, Caller, Elsewhere, Service, cpu_seconds, memory_mib, running, submission
from orchestrator.errors import CliploopError
from storage.jobs import FINAL_STATES
from storage.journal import read_entries
from storage.submissions import counts

AIM_PER_SECOND, AIM_P99_SECONDS, AIM_TIMES = 300.0, 0.050, 3.0
AIM_MIB, AIM_GROWTH_MIB = 400.0, 10.0
GROWTH_MINUTES = 10.0
SAMPLE_SECONDS = 0.5
CHURN_SECONDS = 0.5
SETTLED = 0.3  # of the samples: caches fill first
CONNECT_SECONDS, END_SECONDS = 120.0, 600.0
NOTHING = "/healthz"


@dataclass(frozen=True)
class Crowd:
    """How many of everything. `minutes`: how long memory is watched while jobs come and go."""

    jobs: int = 200
    watchers: int = 1000
    processes: int = 4
    connections: int = 4
    rounds: int = 3
    minutes: float = 1.0
    seconds: float = 5.0  # of reading in each round, of either route
    soak_per_second: float = 50.0


@dataclass
class Samples:
    """The API's memory over time: seconds since the first one, MiB."""

    taken: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])

    @contextlib.contextmanager
    def of(self, pid: int) -> Generator[None]:
        """Take them while the block runs."""
        over, began = threading.Event(), time.monotonic()

        def take() -> None:
            while not over.wait(SAMPLE_SECONDS):
                with contextlib.suppress(OSError):
                    self.taken.append((time.monotonic() - began, memory_mib(pid)))

        thread = threading.Thread(target=take, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


@dataclass(frozen=True)
class Reads:
    """Answers to one kind of request, over all rounds."""

    taken: list[float]
    seconds: float
    api_cpu_seconds: float
    client_cpu_seconds: float
    refused: list[str]

    @property
    def per_second(self) -> float:
        return len(self.taken) / self.seconds


def measure(folder: Path, crowd: Crowd, elsewhere: Elsewhere, say: Callable[[str], None]) -> list[Figure]:
    """Everything of this part. Raises CliploopError where it cannot be measured."""
    if problem := allow_descriptors(crowd.watchers):  # the API inherits the limit
        raise CliploopError(problem)
    load = Load(render_seconds=0.0, vlm_seconds=0.0, width=96, height=64)
    settings = load.settings.replace("steps = 3", "steps = 1").replace("_seconds = 5.0", "_seconds = 0.25")
    with contextlib.ExitStack() as stack:
        service = stack.enter_context(running(folder, settings, elsewhere))
        samples = Samples()
        stack.enter_context(samples.of(service.pids("api")[0]))
        say(f"submitting {crowd.jobs} jobs")
        job_ids, submitted = _submitted(service, crowd.jobs)
        watching = stack.enter_context(_watching(service, crowd, job_ids))
        say(f"{crowd.watchers} watchers are connected")
        status, nothing = _read_in_turns(service, crowd, job_ids)
        say(f"memory for {crowd.minutes:g} minutes")
        soaked = _soak(service, crowd, job_ids, samples)
        say("the workers start")
        began = time.monotonic()
        service.start_workers(num_reason=1)
        _until_ended(service, crowd.jobs)
        figures = _seen(service, watching, job_ids)
        done = crowd.jobs / (time.monotonic() - began)
    return [
        *figures,
        Figure("jobs submitted, and then done, per second", f"{submitted:.0f}, {done:.1f}"),
        *_speed(status, nothing),
        *_memory(samples, soaked, crowd),
    ]


def _submitted(service: Service, count: int) -> tuple[list[str], float]:
    caller, body, began = Caller(service.address), submission(3, 96, 64, max_steps=2), time.monotonic()
    job_ids = [caller.submit({**body, "seed": number}) for number in range(count)]
    return job_ids, count / (time.monotonic() - began)


@contextlib.contextmanager
def _watching(service: Service, crowd: Crowd, job_ids: Sequence[str]) -> Generator[list[Path]]:
    """Watchers in several processes while the block runs; the files that will say what they saw."""
    everyone = [job_ids[number % len(job_ids)] for number in range(crowd.watchers)]
    outs = [service.folder / f"watched-{number}.json" for number in range(crowd.processes)]
    clients: list[subprocess.Popen[str]] = []
    try:
        for number, out in enumerate(outs):
            clients.append(_client("watch", service.address, out))
            _tell(clients[-1], "\n".join(everyone[number :: crowd.processes]))
        for client in clients:
            assert client.stdout is not None
            if client.stdout.readline().strip() != "ready":
                raise CliploopError("a process of watchers ended before all were connected")
        yield outs
    finally:
        for client in clients:
            with contextlib.suppress(subprocess.TimeoutExpired):
                client.wait(1)
            if client.poll() is None:
                client.kill()
            client.wait()
            assert client.stdout is not None
            client.stdout.close()


def _client(command: str, address: str, out: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "bench.load_clients", command, address, str(out)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _tell(client: subprocess.Popen[str], words: str) -> None:
    assert client.stdin is not None
    client.stdin.write(words)
    client.stdin.close()


def _read(service: Service, paths: Sequence[str], seconds: float, connections: int, rate: float) -> Reads:
    out = service.folder / "read.json"
    asked = {"paths": list(paths), "seconds": seconds, "connections": connections, "per_second": rate}
    before = cpu_seconds(service.pids("api"))
    with _client("read", service.address, out) as client:
        _tell(client, json.dumps(asked))
    if client.returncode:
        raise CliploopError("the process of readers failed")
    found: dict[str, Any] = json.loads(out.read_text())
    used = cpu_seconds(service.pids("api")) - before
    return Reads(found["taken"], found["seconds"], used, found["cpu_seconds"], found["refused"])


def _read_in_turns(service: Service, crowd: Crowd, job_ids: Sequence[str]) -> tuple[Reads, Reads]:
    """Status reads and a route that does nothing, turn by turn, so that both meet the same machine."""
    status: list[Reads] = []
    nothing: list[Reads] = []
    paths = [f"/v1/jobs/{job_id}" for job_id in job_ids]
    for _ in range(crowd.rounds):
        status.append(_read(service, paths, crowd.seconds, crowd.connections, 0.0))
        nothing.append(_read(service, [NOTHING], crowd.seconds, crowd.connections, 0.0))
    return _together(status), _together(nothing)


def _together(rounds: Sequence[Reads]) -> Reads:
    return Reads(
        [taken for each in rounds for taken in each.taken],
        sum(each.seconds for each in rounds),
        sum(each.api_cpu_seconds for each in rounds),
        sum(each.client_cpu_seconds for each in rounds),
        [refused for each in rounds for refused in each.refused],
    )


def _soak(service: Service, crowd: Crowd, job_ids: Sequence[str], samples: Samples) -> list[tuple[float, float]]:
    """Status is read on, and jobs come and go; the memory meanwhile."""
    at, over, caller = len(samples.taken), threading.Event(), Caller(service.address)
    body = submission(4, 96, 64, max_steps=2)

    def come_and_go() -> None:
        while not over.wait(CHURN_SECONDS):
            job_id = caller.submit(body)
            caller.post(f"/v1/jobs/{job_id}/cancel", {})
            caller.delete(f"/v1/jobs/{job_id}")

    thread = threading.Thread(target=come_and_go, daemon=True)
    thread.start()
    try:
        paths = [f"/v1/jobs/{job_id}" for job_id in job_ids]
        _read(service, paths, 60.0 * crowd.minutes, crowd.connections, crowd.soak_per_second)
    finally:
        over.set()
        thread.join()
    return samples.taken[at:]


def _until_ended(service: Service, count: int) -> None:
    limit = time.monotonic() + END_SECONDS
    while sum(number for state, number in counts(service.site.database).items() if state in FINAL_STATES) < count:
        if time.monotonic() > limit:
            raise CliploopError(f"not all jobs have ended: {counts(service.site.database)}")
        time.sleep(0.2)


def _seen(service: Service, outs: Sequence[Path], job_ids: Sequence[str]) -> list[Figure]:
    """Each watcher against its job's journal."""
    recorded: dict[str, list[Seen]] = {}
    for job_id in job_ids:
        recorded[job_id] = [
            Seen(
                entry.sequence,
                entry.kind,
                checksum(
                    {
                        "sequence": entry.sequence,
                        "key": entry.key,
                        "kind": entry.kind,
                        "value": entry.value,
                        "recorded_at": entry.recorded_at,
                    }
                ),
            )
            for entry in read_entries(service.site.database, job_id)
        ]
    limit = time.monotonic() + CONNECT_SECONDS
    while not all(_is_whole(out) for out in outs):
        if time.monotonic() > limit:
            raise CliploopError("some watchers are still connected although their jobs have ended")
        time.sleep(0.1)
    watchers = [each for out in outs for each in json.loads(out.read_text())]
    faults = [
        f"{each['job']}: {fault}"
        for each in watchers
        if (fault := fault_of([Seen(*event) for event in each["events"]], recorded[each["job"]]))
    ]
    events = sum(map(len, recorded.values()))
    whole = len(watchers) - len(faults)
    aim = f"all {len(watchers)}"
    return [
        Figure(f"watchers that saw all of {len(recorded)} jobs' {events} events", str(whole), aim, not faults),
        *(Figure("what one of them missed", fault, "", None) for fault in faults[:3]),
    ]


def _is_whole(out: Path) -> bool:
    try:
        json.loads(out.read_text())
    except (OSError, ValueError):
        return False
    return True


def _speed(status: Reads, nothing: Reads) -> list[Figure]:
    p99, base = percentile(status.taken, 0.99), percentile(nothing.taken, 0.99)
    cores = status.client_cpu_seconds / status.seconds
    figures = [
        Figure(
            "status reads per second",
            f"{status.per_second:.0f}",
            f"≥ {AIM_PER_SECOND:g}",
            status.per_second >= AIM_PER_SECOND,
        ),
        Figure("status reads, median", _ms(statistics.median(status.taken))),
        Figure("status reads, p99", _ms(p99), f"< {_ms(AIM_P99_SECONDS)}", p99 < AIM_P99_SECONDS),
        Figure(
            "status reads, p99 in units of /healthz's",
            f"{p99 / base:.1f}",
            f"≤ {AIM_TIMES:g}",
            p99 <= AIM_TIMES * base,
        ),
        Figure("status reads, CPU of the API each", _ms(status.api_cpu_seconds / len(status.taken))),
        Figure("the clients' CPU meanwhile, cores", f"{cores:.2f}"),
        Figure("/healthz per second", f"{nothing.per_second:.0f}"),
        Figure("/healthz, median, p99", f"{_ms(statistics.median(nothing.taken))}, {_ms(base)}"),
        Figure("/healthz, CPU of the API each", _ms(nothing.api_cpu_seconds / len(nothing.taken))),
    ]
    refused = [*status.refused, *nothing.refused]
    return [*figures, *([Figure("answers that were not 200", refused[0], "none", False)] if refused else [])]


def _memory(samples: Samples, soaked: list[tuple[float, float]], crowd: Crowd) -> list[Figure]:
    most = max((mib for _, mib in samples.taken), default=0.0)
    settled = soaked[int(SETTLED * len(soaked)) :]
    growth = 60.0 * GROWTH_MINUTES * slope(settled)
    long_enough = crowd.minutes >= GROWTH_MINUTES
    aim = f"≤ {AIM_GROWTH_MIB:g} MiB" if long_enough else f"≤ {AIM_GROWTH_MIB:g} MiB, from --minutes 10 on"
    return [
        Figure("API memory at most", f"{most:.0f} MiB", f"< {AIM_MIB:g} MiB", most < AIM_MIB),
        Figure(
            f"growth in 10 minutes, by {crowd.minutes:g} minutes",
            f"{growth:+.1f} MiB",
            aim,
            growth <= AIM_GROWTH_MIB if long_enough else None,
        ),
    ]


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:.1f} ms"
