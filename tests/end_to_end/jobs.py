"""One small job, run in children that can be killed: quick to start, every effect and every commit on record.

A fork server imports the product once; each run is a fork of it, so that a run costs what it renders.
"""

from __future__ import annotations

import functools
import json
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from cliploop.choosing import Wanted
from cliploop.commands.inputs import Asked
from cliploop.commands.run import admitted_job, interruptible
from cliploop.compose import Composition
from cliploop.local import Ending, LocalJob, SystemClock, play
from cliploop.settings import Settings
from media.pictures import encode_png
from media.uploads import normalise
from orchestrator.ports import Frames, Generator, Inputs, Ports
from orchestrator.records import Record, Shot
from orchestrator.seeds import attempt_seed
from worlds.catalog import load
from worlds.sampling import sample

SEED = 1
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tests.end_to_end.warm"])


@dataclass(frozen=True)
class Kill:
    """When the child kills itself: at the n-th commit, before or after it, or never."""

    number: int = -1
    moment: str = ""


@functools.cache
def small_job() -> LocalJob:
    """A small maze and clips of a second: two steps, one clip repaired from a kept prefix, one from the start."""
    composition = Composition(Settings())
    task = sample(load("maze"), "easy", 3, side_px=64)
    upload = normalise(encode_png(task.frame))
    asked = Asked(picture=upload.png, prompt=task.prompt, name="maze", slug="maze")
    job = admitted_job(composition, Wanted(seed=SEED, generator="simulated-perfect"), asked, upload)
    policy = job.policy.model_copy(update={"first_step_seconds": 1.0, "step_seconds": 1.0})
    return LocalJob(task=job.task, policy=policy, png=job.png, slug=job.slug)


class Faulty:
    """A perfect generator with two faults: step 1 melts half-way at first, step 2 stands still at first."""

    def __init__(self, perfect: Generator) -> None:
        self._perfect = perfect
        self.capabilities = perfect.capabilities

    def render(
        self,
        shot: Shot,
        *,
        resume: str | None,
        checkpoint: Callable[[str], None],
        progress: Callable[[float], None],
        cancelled: Callable[[], bool],
    ) -> Frames:
        """As the perfect one, but for the two shots."""
        frames: Frames = self._perfect.render(
            shot, resume=resume, checkpoint=checkpoint, progress=progress, cancelled=cancelled
        )
        if shot.seed == attempt_seed(SEED, 1, 1):
            half = len(frames) // 2
            return np.concatenate([frames[:half], np.roll(frames[half:], 40, axis=(1, 2)) // 2])
        if shot.seed == attempt_seed(SEED, 2, 1):
            return np.repeat(frames[:1], len(frames), axis=0)
        return frames


class Recorder:
    """Writes down what began and what was committed; each line is the kernel's before the next thing happens."""

    def __init__(self, log: Path, kill: Kill) -> None:
        self._file = os.open(log, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
        self._kill = kill
        self._commits = 0

    def _write(self, word: str, key: str) -> None:
        os.write(self._file, f"{word} {key}\n".encode())

    def began(self, key: str, inputs: Inputs) -> None:
        """An effect runs."""
        self._write("began", key)

    def recorded(self, key: str, inputs: Inputs, value: Record, *, remembered: bool) -> None:
        """Not needed: commits tell."""

    def lost(self, key: str, reason: str, *, remembered: bool) -> None:
        """Not needed."""

    def on_commit(self, moment: str, key: str) -> None:
        """The journal's seam."""
        if moment == "after":
            self._write("committed", key)
        if self._kill.moment == moment and self._kill.number == self._commits:
            os.kill(os.getpid(), signal.SIGKILL)
        if moment == "after":
            self._commits += 1


def with_faults(ports: Ports) -> Ports:
    """The same ports with the faulty generator."""
    return replace(ports, generator=Faulty(ports.generator))


def run_here(job: LocalJob, folder: Path, recorder: Recorder) -> Ending:
    """Run or resume in this process."""
    composition = Composition(Settings())
    with interruptible() as stopped:
        return play(
            job,
            folder,
            fresh=False,
            make_ports=lambda artifacts: with_faults(
                composition.ports(job.policy, artifacts, clock=SystemClock(), cancelled=stopped.is_set)
            ),
            watcher=recorder,
            journal_options={"on_commit": recorder.on_commit},
        )


def _child(folder: Path, log: Path, kill: Kill) -> None:
    ending = run_here(small_job(), folder, Recorder(log, kill))
    if ending.state != "succeeded":
        raise SystemExit(9)


@dataclass(frozen=True)
class Child:
    """A run in a process of its own."""

    process: Any

    @classmethod
    def start(cls, folder: Path, log: Path, kill: Kill = Kill()) -> Child:
        """Begin."""
        process = _CONTEXT.Process(target=_child, args=(folder, log, kill))
        process.start()
        return cls(process)

    def end(self, timeout: float = 300.0) -> int:
        """Wait; the exit code, negative for a signal."""
        self.process.join(timeout)
        assert not self.process.is_alive(), "the child did not end"
        return int(self.process.exitcode)

    def kill_at(self, log: Path, num_lines: int, pause: float) -> None:
        """SIGKILL, a while after the log has that many lines; nothing if the child ends before."""
        limit = time.monotonic() + 300
        while self.process.is_alive() and _num_lines(log) < num_lines:
            assert time.monotonic() < limit
            time.sleep(0.001)
        time.sleep(pause)
        if self.process.is_alive():
            os.kill(self.process.pid, signal.SIGKILL)


def _num_lines(log: Path) -> int:
    return log.read_text().count("\n") if log.exists() else 0


def products(folder: Path) -> Mapping[str, bytes]:
    """Every byte that must be equal after a resume: artifacts and exports; the trajectory without times."""
    artifacts = {path.name: path.read_bytes() for path in (folder / ".cliploop" / "artifacts").iterdir()}
    exported = {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".cliploop" not in path.parts and path.name != "trajectory.json"
    }
    timeless = json.dumps(without_times(json.loads((folder / "trajectory.json").read_text())), sort_keys=True)
    return {**artifacts, **exported, "trajectory.json": timeless.encode()}


def without_times(value: Any) -> Any:
    """The same JSON without what was measured."""
    measured = ("wall_seconds", "gpu_seconds")
    if isinstance(value, dict):
        return {key: without_times(each) for key, each in value.items() if key not in measured}  # pyright: ignore
    if isinstance(value, list):
        return [without_times(each) for each in value]  # pyright: ignore
    return value


def effects(log: Path) -> tuple[list[str], list[str]]:
    """(began, committed), in order, over all runs that wrote into this log."""
    lines = [line.split(" ", 1) for line in log.read_text().splitlines()]
    began = [key for word, key in lines if word == "began"]
    committed = [key for word, key in lines if word == "committed" and not key.startswith("state/")]
    return began, committed


def assert_nothing_ran_twice(log: Path, *, kills: int) -> None:
    """No effect begins after its commit; at most the one in flight at each kill is begun again."""
    done: set[str] = set()
    repeated = 0
    seen: set[str] = set()
    for line in log.read_text().splitlines():
        word, key = line.split(" ", 1)
        if word == "committed":
            done.add(key)
            continue
        assert key not in done, f"{key} ran again after it was recorded"
        repeated += key in seen and "/try/" not in key
        seen.add(key)
    assert repeated <= 2 * kills  # a plan and its ask are one effect in flight, nested
