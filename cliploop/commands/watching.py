"""`cliploop watch`: a server's job in the same view as a run here, until it ends or waits for a person."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from types import FrameType
from typing import Any

from cliploop.client import Client, ClientError, Event, Job, NotUnderstood, WrongMoment
from cliploop.commands.talking import RECONNECT_SECONDS, Contact, talking
from cliploop.live import RunView, Surface, surface
from cliploop.narrate import Line, Tone, outcome_lines
from cliploop.retelling import Retelling
from cliploop.terminal import (
    EXIT_COMPLETED,
    EXIT_EXHAUSTED,
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    EXIT_WAITING,
    Terminal,
    one_line,
)
from orchestrator.records import Trajectory

HEARD_WITHIN_SECONDS = 1.0
BY_ITSELF = frozenset({"backend", "disk"})  # what the service tries again without a person
BY_VERDICT = frozenset({"review", "unclear"})


def watch_command(job_id: str, contact: Contact) -> int:
    """Follow a job. Exit 0 completed, 3 exhausted, 4 waiting for a person, 1 failed or cancelled, 130 Ctrl-C."""
    return talking(contact.terminal, lambda: watched(job_id, contact))


def watched(job_id: str, contact: Contact) -> int:
    """The same within a command. Raises ClientError."""
    with contact.client() as client:
        job = client.get(job_id)
    shown = surface(contact.terminal)
    try:
        with _ended_by_signals(), contact.client(RECONNECT_SECONDS) as client:
            report = _Watch(job, client, shown, contact).to_the_end()
            shown.show(report.lines())
    except KeyboardInterrupt:
        shown.close()
        return _stopped(job, contact)
    finally:
        shown.close()
    contact.terminal.result(report.json())
    return report.exit_code


@contextlib.contextmanager
def _ended_by_signals() -> Generator[None]:
    """Within the block SIGTERM and SIGHUP end the watch as Ctrl-C does: the terminal is given back.

    What a finaliser swallows is raised again until it is heard.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    asked: list[int] = []
    over = threading.Event()

    def end(number: int, frame: FrameType | None) -> None:
        if not over.is_set():
            asked.append(number)
            signal.default_int_handler(number, frame)

    def insist() -> None:
        while not over.wait(HEARD_WITHIN_SECONDS):
            if asked:
                signal.pthread_kill(threading.main_thread().ident or 0, asked[0])

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    listening = [each for each in numbers if signal.getsignal(each) is not signal.SIG_IGN]
    before = {number: signal.signal(number, end) for number in listening}
    insisting = threading.Thread(target=insist, name="interrupts", daemon=True)
    insisting.start()
    try:
        yield
    finally:
        over.set()
        insisting.join()
        for number, handler in before.items():
            signal.signal(number, handler)


def _stopped(job: Job, contact: Contact) -> int:
    message = (
        f"stopped watching, job {job.id} goes on; to watch on: {contact.again('watch', job.id)}; "
        f"to stop it: {contact.again('cancel', job.id)}"
    )
    return contact.terminal.error(message, reason="interrupted", code=EXIT_INTERRUPTED, id=job.id)


class _Watch:
    """One watch of a job."""

    def __init__(self, job: Job, client: Client, shown: Surface, contact: Contact) -> None:
        self._job, self._client, self._shown, self._contact = job, client, shown, contact
        self._away = False
        self._view: RunView | None = None
        self._retelling: Retelling | None = None

    def to_the_end(self) -> Report:
        """Show every event, until the job ends or waits for a person."""
        self._shown.show([Line(f"Job {self._job.id} at {self._client.url}", "quiet")])
        self._begin()
        for event in self._client.events(self._job.id, on_lost=self._lost):
            self._found_again()
            if event.kind == "deleted":
                return Report(self._job, None, self._contact, self._client.url, deleted=True)
            if self._show(event):
                break
        job = self._client.get(self._job.id)
        told = self._trajectory() if job.state == "succeeded" else None
        return Report(job, told, self._contact, self._client.url)

    def _begin(self) -> None:
        told = self._trajectory()
        if told is None:
            note = "it was stored by another version: only its states are told"
            self._shown.show([Line(note, "note")])
            return
        self._view = RunView(self._shown, told.policy)
        self._retelling = Retelling(told.task, told.policy, self._view)

    def _trajectory(self) -> Trajectory | None:
        try:
            return self._client.trajectory(self._job.id)
        except (NotUnderstood, WrongMoment):
            return None

    def _show(self, event: Event) -> bool:
        """Whether a person is waited for."""
        if event.kind == "progress" and self._view is not None:
            self._view.progress(event.key, float(event.value.get("fraction") or 0.0))
        elif self._retelling is not None and event.kind in ("record", "failure", "state"):
            self._retelling.hear(event.kind, event.key, event.value)
        elif event.kind == "waits" and event.value.get("for"):
            self._shown.show([Line(f"Waits for {one_line(str(event.value['for']))}: none is there", "note")])
        if event.kind != "state":
            return False
        state, reason = str(event.value.get("state")), str(event.value.get("reason"))
        if state == "waiting" and reason not in BY_ITSELF:
            now = self._client.get(self._job.id)
            return now.state == "waiting" and now.reason not in BY_ITSELF
        if self._retelling is None or state in ("waiting", "cancelling"):
            again = "; the service tries again by itself" if state == "waiting" else ""
            message = f": {one_line(str(event.value['message']))}" if event.value.get("message") else ""
            why = f" ({reason})" if state == "waiting" else ""
            self._shown.show([Line(f"{state.capitalize()}{why}{message}{again}", "note")])
        return False

    def _lost(self, error: ClientError, _seconds: float) -> None:
        if not self._away:
            self._away = True
            self._shown.show([Line(f"connection lost: {one_line(str(error))}; trying again ...", "note")])

    def _found_again(self) -> None:
        if self._away:
            self._away = False
            self._shown.show([Line("connected again", "note")])


@dataclass(frozen=True)
class Report:
    """How a watch ended."""

    job: Job
    trajectory: Trajectory | None
    contact: Contact
    address: str
    deleted: bool = False

    @property
    def exit_code(self) -> int:
        """By the job's end, as that of a run here."""
        if self.deleted:
            return EXIT_FAILED
        if self.job.state == "succeeded":
            return EXIT_COMPLETED if self.job.outcome == "completed" else EXIT_EXHAUSTED
        return EXIT_WAITING if self.job.state == "waiting" else EXIT_FAILED

    def lines(self) -> Iterator[Line]:
        """What people read last."""
        job = self.job
        if self.deleted:
            yield Line(f"Deleted: job {job.id} and its files are gone", "bad")
            return
        if self.trajectory is not None:
            yield from outcome_lines(self.trajectory)
        else:
            tone: Tone = "note" if job.state in ("waiting", "succeeded") else "bad"
            why = job.reason or job.outcome
            message = f": {one_line(job.message)}" if job.message else ""
            yield Line(f"{job.state.capitalize()}{f' ({why})' if why else ''}{message}", tone)
        if job.ended:
            yield Line(f"To fetch it: {self.contact.again('download', job.id)}", "head", whole=True)
        else:
            if job.reason in BY_VERDICT:
                yield Line(f"To let it go on: POST {self.address}/v1/jobs/{job.id}/review", "head", whole=True)
            yield Line(f"To watch on, once somebody let it go on: {self.again}", "head", whole=True)

    @property
    def again(self) -> str:
        """The command that watches on."""
        return self.contact.again("watch", self.job.id)

    def json(self) -> Mapping[str, Any]:
        """The one object: as that of `cliploop run`, as far as it can be."""
        job, told = self.job, self.trajectory
        stopped = self.deleted or job.state != "succeeded"
        state = "deleted" if self.deleted else job.state
        reason = job.reason or state
        return {
            "ok": not stopped,
            "exit_code": self.exit_code,
            "state": state,
            "id": job.id,
            "outcome": told.outcome.model_dump(mode="json") if told and told.outcome else None,
            "spend": job.spend.model_dump(mode="json"),
            "resume": self.again if state == "waiting" else None,
            "error": {"reason": reason, "message": job.message or f"the job is {state}"} if stopped else None,
        }


def say_where(job: Job, contact: Contact, terminal: Terminal) -> None:
    """Of a job that was just submitted: its id, and what can be done with it."""
    ahead = f", {job.queue_position} ahead of it" if job.queue_position else ""
    terminal.say(f"Job {job.id} submitted ({job.state}{ahead})")
    terminal.say(f"{'watch':10}{contact.again('watch', job.id)}", whole=True)
    terminal.say(f"{'download':10}{contact.again('download', job.id)}", whole=True)
    if job.webhook_secret:
        terminal.say(f"{'webhook':10}signed with {job.webhook_secret}, which is told only now", whole=True)


def submitted(job: Job, contact: Contact, *, watch: bool) -> int:
    """What a command that made a job says, and does next."""
    terminal = contact.terminal
    say_where(job, contact, terminal)
    if watch:
        return watched(job.id, contact)
    terminal.result({"ok": True, "exit_code": EXIT_COMPLETED, "id": job.id, "job": job.model_dump(mode="json")})
    return EXIT_COMPLETED
