"""`cliploop run`: from options to a job, through the loop, to files and an exit code."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import threading
import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

from cliploop.admission import admitted
from cliploop.asked import LocalJob, SystemClock, slug
from cliploop.commands.boundary import guarded
from cliploop.commands.dry_run import refuse_folder, show_estimate
from cliploop.commands.inputs import Asked, read_picture, read_prompt
from cliploop.compose import Composition, Wanted
from cliploop.interrupts import note, refuse_if_heard
from cliploop.live import RunView, surface
from cliploop.narrate import Line, story
from cliploop.terminal import Terminal, called_as, one_line
from media.uploads import Upload, normalise
from orchestrator.errors import TaskRejected
from orchestrator.ports import Artifacts, Ports

if TYPE_CHECKING:
    from cliploop.commands.report import Report

ECHO_SECONDS = 2.0  # a terminal and a parent process often send the same signal twice
FLAGS = ("fresh", "dry_run")


@dataclass(frozen=True)
class RunRequest(Wanted):
    """The options of `cliploop run`, as given; None = not given."""

    image: str | None = None
    prompt: str | None = None
    world: str | None = None
    difficulty: str = "medium"
    output: str | None = None
    fresh: bool = False
    dry_run: bool = False
    config: Path | None = None

    def again(self) -> str:
        """The command that goes on: every option that was given, but for --fresh."""
        words = [*called_as(), "run"]
        for option in sorted(fields(self), key=lambda option: option in fields(Wanted)):  # what, then how
            value = getattr(self, option.name)
            if option.name in FLAGS or value is None or (option.name == "difficulty" and self.world is None):
                continue
            words += ["-o" if option.name == "output" else f"--{option.name.replace('_', '-')}", str(value)]
        return shlex.join(words)

    def wanted(self) -> Wanted:
        """What it chooses of backends, strategy and limits."""
        return Wanted(**{option.name: getattr(self, option.name) for option in fields(Wanted)})


def run_command(request: RunRequest, terminal: Terminal) -> int:
    """Run, resume or show one job. Returns the exit code."""
    with interruptible() as signals:
        return guarded(terminal, lambda: _run(request, terminal, signals))


def _run(request: RunRequest, terminal: Terminal, signals: Signals) -> int:
    if request.output is not None and not request.output.strip():
        raise TaskRejected("-o is empty; name a folder, or leave it out", reason="usage")
    composition = Composition.read(request.config, os.environ, Path())
    asked = _asked(request)
    upload = normalise(asked.picture, name=asked.name)
    job = admitted_job(composition, request.wanted(), asked, upload)
    folder = Path(request.output) if request.output else Path("out") / f"{job.slug}-{job.id}"
    if request.dry_run:
        refuse_folder(job, folder, fresh=request.fresh)
        composition.check(job.policy)
        return show_estimate(job, folder, upload.notes, terminal)
    head = [Line(f"Job {job.id} in {one_line(str(folder))}", "quiet")]
    head += [Line(f"Picture: {one_line(note)}", "quiet") for note in upload.notes]
    report = _play(composition, job, folder, request, head, terminal, signals)
    terminal.result(report.json())
    return report.exit_code


def _asked(request: RunRequest) -> Asked:
    """The picture and the prompt, from files or from a world. Raises TaskRejected."""
    if request.world is not None:
        if request.image is not None or request.prompt is not None:
            raise TaskRejected(
                "--world makes its own picture and prompt; leave out --image and --prompt", reason="usage"
            )
        from cliploop.commands.samples import sampled

        return sampled(request.world, request.difficulty, request.seed or 0)
    if request.image is None or request.prompt is None:
        missing = [f"--{name}" for name in ("image", "prompt") if getattr(request, name) is None]
        said = f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing"
        remedy = "add it, or try a procedural task with --world maze"
        raise TaskRejected(f"{said}; {remedy}", reason="usage")
    picture = read_picture(request.image)
    prompt = read_prompt(request.prompt)
    return Asked(picture=picture, prompt=prompt, name=request.image, slug=slug(prompt))


def admitted_job(composition: Composition, wanted: Wanted, asked: Asked, upload: Upload) -> LocalJob:
    """The job, if it could run: limits, and whether the planner can read the task. Nothing is written."""
    task, policy = admitted(composition, wanted, asked.prompt, upload)
    return LocalJob(task=task, policy=policy, png=upload.png, slug=asked.slug)


def _play(
    composition: Composition,
    job: LocalJob,
    folder: Path,
    request: RunRequest,
    head: Sequence[Line],
    terminal: Terminal,
    signals: Signals,
) -> Report:
    """Play it and tell of it; the `head` is said only when the folder is not refused."""
    from cliploop.commands.report import Report  # with the journal: what is refused before needs no SQL
    from cliploop.local import play

    shown = surface(terminal)
    try:
        view = RunView(shown, job.policy)

        def make_ports(artifacts: Artifacts) -> Ports:
            composition.check(job.policy)
            shown.show(head)
            return composition.ports(
                job.policy, artifacts, clock=SystemClock(), progress=view.progress, cancelled=signals.is_set
            )

        ending = play(job, folder, fresh=request.fresh, make_ports=make_ports, watcher=view)
        signals.ignore()
        report = Report(ending, job.id, folder, request.again())
        if ending.recalled and ending.trajectory is not None:
            shown.show(head)
            shown.show(story(ending.trajectory))
        shown.show(report.lines())
        return report
    finally:
        shown.close()


@dataclass
class Signals:
    """What SIGINT, SIGTERM and SIGHUP have asked for, and whether they are still listened to."""

    numbers: Sequence[signal.Signals] = ()
    last: float | None = None  # seconds, monotonic
    ignored: bool = False

    def is_set(self) -> bool:
        """Whether one came. It covers the moment when Python swallows the exception (in a finaliser)."""
        return self.last is not None

    def stop(self, _number: int, _frame: object) -> None:
        """Raise KeyboardInterrupt; one on the heels of another says nothing new, and disturbs no saving."""
        before, self.last = self.last, time.monotonic()
        note()
        if before is None or self.last - before > ECHO_SECONDS:
            raise KeyboardInterrupt

    def ignore(self) -> None:
        """Listen no more: the ending is known, and is now told whole."""
        self.ignored = True
        for number in self.numbers:
            signal.signal(number, signal.SIG_IGN)


@contextlib.contextmanager
def interruptible() -> Generator[Signals]:
    """Within the block SIGINT, SIGTERM and SIGHUP stop the job: KeyboardInterrupt, and a word for renderers.

    A SIGHUP that is ignored from outside (nohup) stays ignored. Signals that are no longer listened to stay so
    after the block: the process is about to end, and `cliploop.cli.invoke` gives them back where it does not.
    """
    if threading.current_thread() is not threading.main_thread():
        yield Signals()
        return
    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    signals = Signals(numbers)
    before = {number: signal.signal(number, signals.stop) for number in numbers}
    try:
        refuse_if_heard()
        yield signals
    finally:
        for number, handler in () if signals.ignored else before.items():
            signal.signal(number, handler)
