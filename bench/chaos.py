"""Breaks a running service on purpose, and counts what it lost: nothing, it should be.

    python -m bench.chaos                        # every scenario ten times
    python -m bench.chaos --count 1 kill-render  # one of them once

Each run submits small mazes to a real `cliploop up`, disturbs it, and waits until the jobs have ended. Frames are
compared with those of a run that nobody disturbed, by the hashes of the lossless clips.
"""

from __future__ import annotations

import argparse
import base64
import secrets
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from bench.chaos_service import Service as Running
from bench.chaos_service import TookTooLongHere, kill, running, until
from media.pictures import encode_png
from orchestrator.errors import JobNotFound
from storage.jobs import IllegalState
from storage.leases import any_held, is_held
from storage.submissions import cancel, remove
from worlds.catalog import load
from worlds.sampling import sample

SEEDS = (9, 10, 4)  # mazes of 4, 6 and 3 clips
PHASE_SECONDS = 60.0
INSTANT_JOBS = 20
ASKERS = 8
PERFECT = "simulated-perfect"


@dataclass(frozen=True)
class Disturbed:
    """What a disturbance left behind: its jobs with their seeds, and how long until they moved again."""

    jobs: Mapping[str, int] = field(default_factory=dict[str, int])
    moved_seconds: float | None = None
    ends_as: str = "succeeded"
    notes: Sequence[str] = ()


@dataclass
class Row:
    """One line of the table, summed over runs."""

    scenario: str
    runs: int = 0
    jobs: int = 0
    ended: int = 0
    identical: int = 0
    comparable: int = 0
    doubled: int = 0
    rendered_again: int = 0
    reaped: int = 0
    moved_seconds: list[float] = field(default_factory=list[float])
    faults: list[str] = field(default_factory=list[str])


Scenario = Callable[[Running, int], Disturbed]


def kill_reason(service: Running, seed: int) -> Disturbed:
    """SIGKILL of the reason worker while it holds the job."""
    return _killed(service, seed, "reason", "job/{job}")


def kill_render(service: Running, seed: int) -> Disturbed:
    """SIGKILL of the render worker in the middle of a clip."""
    return _killed(service, seed, "render", "clip/{job}/")


def kill_broker(service: Running, seed: int) -> Disturbed:
    """SIGKILL of the broker."""
    return _killed(service, seed, "broker", "clip/{job}/")


def kill_api(service: Running, seed: int) -> Disturbed:
    """SIGKILL of the API: jobs do not notice."""
    return _killed(service, seed, "api", "clip/{job}/")


def restart_broker(service: Running, seed: int) -> Disturbed:
    """SIGTERM of the broker, which is started again."""
    return _killed(service, seed, "broker", "job/{job}", signal.SIGTERM)


def kill_all(service: Running, seed: int) -> Disturbed:
    """SIGKILL of every process at once, then a new start."""
    job_id = service.submit(seed)
    _wait_for(service, f"clip/{job_id}/")
    at, began = len(service.entries(job_id)), time.monotonic()
    service.kill_all()
    service.start()
    return Disturbed({job_id: seed}, _moved(service, job_id, at, began))


def stop_render(service: Running, seed: int) -> Disturbed:
    """SIGSTOP of a render worker past its lease while another one takes over; then SIGCONT: it is refused."""
    other = service.add_render_worker()
    refused = service.said("held by somebody else now")
    job_id = service.submit(seed)
    pid = _stopped_in_a_clip(service, job_id, [*service.pids("render"), other])
    at, began = len(service.entries(job_id)), time.monotonic()
    try:
        moved = _moved(service, job_id, at, began)
    finally:
        kill(pid, signal.SIGCONT)
    until(
        lambda: service.said("held by somebody else now") > refused, PHASE_SECONDS, "the refusal of a late write"
    )
    service.ended(job_id)
    service.end_more()
    return Disturbed({job_id: seed}, moved)


def flush(service: Running, seed: int) -> Disturbed:
    """FLUSHALL while messages of three jobs wait."""
    jobs = {service.submit(each): each for each in (seed, *(other for other in SEEDS if other != seed))}
    first = next(iter(jobs))
    _wait_for(service, f"job/{first}")
    at, began = len(service.entries(first)), time.monotonic()
    service.flush_broker()
    return Disturbed(jobs, _moved(service, first, at, began))


def cancel_queued(service: Running, seed: int) -> Disturbed:
    """Cancel before any worker came: it never begins."""
    job_id = service.submit(seed, send=False)
    began = time.monotonic()
    cancel(service.site.database, job_id, None)
    service.site.messages.advance(job_id)
    service.ended(job_id)
    moved = time.monotonic() - began
    time.sleep(0.5)
    began_all_the_same = [entry.key for entry in service.entries(job_id) if entry.kind != "state"]
    notes = [f"a cancelled job began: {began_all_the_same}"] if began_all_the_same else []
    return Disturbed({job_id: seed}, moved, "cancelled", notes)


def cancel_rendering(service: Running, seed: int) -> Disturbed:
    """Cancel in the middle of a clip."""
    return _cancelled(service, seed, "clip/{job}/")


def cancel_between(service: Running, seed: int) -> Disturbed:
    """Cancel while the reason worker has it."""
    return _cancelled(service, seed, "job/{job}")


def delete_at_the_end(service: Running, seed: int) -> Disturbed:
    """Delete at the instant of completion; another job goes on."""
    job_id, other = service.submit(seed), service.submit(SEEDS[-1])

    def removed() -> bool:
        try:
            remove(service.site.database, job_id, None)
        except IllegalState:
            return False
        return True

    until(removed, PHASE_SECONDS, "the end of the job")
    service.ended(other)
    try:
        service.state(job_id)
        notes = ["a deleted job came back"]
    except JobNotFound:
        notes = ["its journal was left behind"] if service.entries(job_id) else []
    return Disturbed({other: SEEDS[-1]}, notes=notes)


def same_key(service: Running, seed: int) -> Disturbed:
    """Two API processes are sent the same idempotency key at once, several times: it is one job."""
    until(lambda: bool(service.own_address()), PHASE_SECONDS, "the API")
    addresses = [service.own_address(), service.add_api()]
    task = sample(load("maze"), "easy", seed, side_px=128)
    picture = f"data:image/png;base64,{base64.b64encode(encode_png(task.frame)).decode()}"
    body = {"prompt": task.prompt, "picture": picture, "max_steps": 6, "seed": seed, "generator": "simulated"}
    headers = {"Idempotency-Key": secrets.token_hex(8)}

    def ask(number: int) -> str:
        with httpx.Client(base_url=addresses[number % 2], timeout=30.0, trust_env=False) as client:
            answer = client.post("/v1/jobs", json=body, headers=headers)
        answer.raise_for_status()
        return answer.json()["id"]

    with ThreadPoolExecutor(ASKERS) as pool:
        ids = set(pool.map(ask, range(ASKERS)))
    for job_id in ids:
        service.ended(job_id)
    service.end_more()
    notes = [f"one key made {len(ids)} jobs"] if len(ids) != 1 else []
    return Disturbed(dict.fromkeys(ids, seed), notes=notes)


def instant(service: Running, seed: int) -> Disturbed:
    """Many jobs of a generator that takes next to no time: none may wait for the reaper."""
    reaped = service.said("taken up again")
    jobs = {service.submit(seed, generator=PERFECT): -seed for _ in range(INSTANT_JOBS)}
    for job_id in jobs:
        service.ended(job_id)
    late = service.said("taken up again") - reaped
    notes = [f"the reaper was needed {late} times"] if late else []
    return Disturbed(jobs, notes=notes)


SCENARIOS: dict[str, Scenario] = {
    "kill-reason": kill_reason,
    "kill-render": kill_render,
    "kill-api": kill_api,
    "kill-broker": kill_broker,
    "kill-all": kill_all,
    "stop-render": stop_render,
    "flush": flush,
    "restart-broker": restart_broker,
    "cancel-queued": cancel_queued,
    "cancel-rendering": cancel_rendering,
    "cancel-between": cancel_between,
    "delete-at-the-end": delete_at_the_end,
    "same-key": same_key,
    "instant": instant,
}


def _killed(service: Running, seed: int, role: str, phase: str, number: int = signal.SIGKILL) -> Disturbed:
    job_id = service.submit(seed)
    _wait_for(service, phase.format(job=job_id))
    at, began = len(service.entries(job_id)), time.monotonic()
    for pid in service.pids(role):
        kill(pid, number)
    return Disturbed({job_id: seed}, _moved(service, job_id, at, began))


def _cancelled(service: Running, seed: int, phase: str) -> Disturbed:
    job_id = service.submit(seed)
    _wait_for(service, phase.format(job=job_id))
    began = time.monotonic()
    cancel(service.site.database, job_id, None)
    service.site.messages.advance(job_id)
    service.ended(job_id)
    moved, count = time.monotonic() - began, len(service.entries(job_id))
    time.sleep(0.5)
    notes = ["an effect was recorded after the end"] if len(service.entries(job_id)) != count else []
    return Disturbed({job_id: seed}, moved, "cancelled", notes)


def _wait_for(service: Running, lease: str) -> None:
    """Until somebody works on that: a lease, or any whose name begins so."""
    database = service.site.database
    if not lease.endswith("/"):
        until(lambda: is_held(database, lease), PHASE_SECONDS, f"somebody to hold {lease}")
        return
    job_id = lease.split("/")[1]
    until(lambda: any_held(database, lease) and service.renders(job_id), PHASE_SECONDS, f"a render of {job_id}")


def _stopped_in_a_clip(service: Running, job_id: str, pids: Sequence[int]) -> int:
    """Stop the worker that renders; not in the middle of a write, which would keep SQLite's lock."""
    while True:
        _wait_for(service, f"clip/{job_id}/")
        holder = service.holder(f"clip/{job_id}/")
        pid = next((pid for pid in pids if holder.endswith(f":{pid}")), None)
        if pid is None:
            continue
        kill(pid, signal.SIGSTOP)
        if service.holder(f"clip/{job_id}/") == holder and service.can_write():
            return pid
        kill(pid, signal.SIGCONT)
        time.sleep(0.01)


def _moved(service: Running, job_id: str, at: int, began: float) -> float:
    until(lambda: len(service.entries(job_id)) > at, PHASE_SECONDS, f"{job_id} to move")
    return time.monotonic() - began


@dataclass
class Undisturbed:
    """The clips of a seed as they are when nothing happens; a negative seed is the perfect generator's."""

    service: Running
    _known: dict[int, dict[str, str]] = field(default_factory=dict[int, dict[str, str]])

    def clips(self, seed: int) -> dict[str, str]:
        """Key of a clip's entry -> key of its lossless file. Played when first asked for."""
        if seed not in self._known:
            job_id = self.service.submit(abs(seed), generator="simulated" if seed > 0 else PERFECT)
            self.service.ended(job_id)
            self._known[seed] = self.service.mezzanines(job_id)
        return self._known[seed]


def run(service: Running, name: str, count: int, known: Undisturbed) -> Row:
    """One scenario, so many times."""
    row = Row(name)
    for number in range(count):
        row.runs += 1
        reaped = service.said("taken up again")
        try:
            disturbed = SCENARIOS[name](service, SEEDS[number % len(SEEDS)])
        except TookTooLongHere as error:
            row.faults.append(str(error))
            continue
        if disturbed.moved_seconds is not None:
            row.moved_seconds.append(disturbed.moved_seconds)
        row.faults += disturbed.notes
        for job_id, seed in disturbed.jobs.items():
            _look_at(service, row, job_id, disturbed.ends_as, known.clips(seed))
        row.reaped += service.said("taken up again") - reaped
    return row


def _look_at(service: Running, row: Row, job_id: str, ends_as: str, known: Mapping[str, str]) -> None:
    row.jobs += 1
    try:
        state = service.ended(job_id)
    except TookTooLongHere as error:
        row.faults.append(f"{error}: it is {service.state(job_id)}")
        return
    row.ended += 1
    if state.state != ends_as:
        row.faults.append(f"{job_id} is {state}")
    clips = service.mezzanines(job_id)
    row.comparable += 1
    whole = ends_as != "succeeded" or len(clips) == len(known)
    row.identical += whole and all(known.get(key) == clip for key, clip in clips.items())
    keys = [entry.key for entry in service.entries(job_id) if entry.kind != "state"]
    row.doubled += len(keys) - len(set(keys))
    row.rendered_again += max(0, service.begun(job_id) - len([key for key in keys if key.endswith("/clip")]))


def table(rows: Sequence[Row]) -> str:
    """For people; faults below."""
    head = ("scenario", "runs", "jobs ended", "identical", "doubled", "again", "reaped", "moved after s (max)")
    lines: list[tuple[str, ...]] = [head]
    for row in rows:
        seconds = sorted(row.moved_seconds)
        moved = f"{seconds[len(seconds) // 2]:.1f} ({seconds[-1]:.1f})" if seconds else "-"
        same = f"{row.identical}/{row.comparable}"
        counts = (str(row.doubled), str(row.rendered_again), str(row.reaped))
        lines.append((row.scenario, str(row.runs), f"{row.ended}/{row.jobs}", same, *counts, moved))
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    said = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]
    return "\n".join([*said, *(f"{row.scenario}: {fault}" for row in rows for fault in row.faults)])


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=f"of {', '.join(SCENARIOS)}")
    parser.add_argument("--count", type=int, default=10, help="runs of each")
    given = parser.parse_args(arguments)
    unknown = set(given.scenarios) - set(SCENARIOS)
    if unknown:
        parser.error(f"no scenario {', '.join(sorted(unknown))}; there are {', '.join(SCENARIOS)}")
    return given


def main(arguments: Sequence[str] | None = None) -> int:
    """Run and print; 1 if anything was lost."""
    given = parsed(arguments)
    with tempfile.TemporaryDirectory(prefix="cliploop-chaos-") as folder, running(Path(folder)) as service:
        known = Undisturbed(service)
        rows: list[Row] = []
        for name in given.scenarios or SCENARIOS:
            rows.append(run(service, name, given.count, known))
            print(table(rows[-1:]).splitlines()[1], file=sys.stderr, flush=True)
        print(table(rows))
        if any(row.faults for row in rows):
            print(service.log.read_text(errors="replace")[-20000:], file=sys.stderr)
    return int(any(row.faults or row.doubled or row.identical < row.comparable for row in rows))


if __name__ == "__main__":
    sys.exit(main())
