"""`cliploop list`, `cancel`, `delete`, `retry` and `fork`: a server's jobs."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass

from cliploop.budgets import parse_budget
from cliploop.client import Job
from cliploop.client.routes import STOPPED
from cliploop.commands.inputs import read_prompt
from cliploop.commands.submit import priority_of
from cliploop.commands.talking import Contact, table, talking
from cliploop.commands.watching import submitted
from cliploop.terminal import EXIT_COMPLETED, EXIT_FAILED, counted, one_line
from orchestrator.errors import TaskRejected
from orchestrator.records import Budget

STATES = ("queued", "running", "waiting", "cancelling", "succeeded", "failed", "cancelled")
HEAD = ("ID", "STATE", "STEP", "AGE", "PRESET", "PROMPT")
PROMPT_CHARACTERS = 48


@dataclass(frozen=True)
class Changes:
    """What a retry or a fork has otherwise, as given; None = not given."""

    max_steps: int | None = None
    max_attempts: int | None = None
    seed: int | None = None
    budget: str | None = None
    priority: str | None = None
    watch: bool = False

    def limits(self) -> Budget | None:
        """The budget. Raises TaskRejected."""
        return None if self.budget is None else parse_budget(self.budget, "--budget")


def list_command(states: Sequence[str], limit: int, contact: Contact) -> int:
    """The latest jobs, newest first."""
    return talking(contact.terminal, lambda: _list(states, limit, contact))


def cancel_command(job_id: str, contact: Contact) -> int:
    """Ask a job to stop."""
    return talking(contact.terminal, lambda: _cancel(job_id, contact))


def delete_command(job_id: str, contact: Contact) -> int:
    """Stop a job and remove it with its files."""
    return talking(contact.terminal, lambda: _delete(job_id, contact))


def retry_command(job_id: str, changes: Changes, contact: Contact) -> int:
    """A new job that goes on after the last accepted step."""
    return talking(contact.terminal, lambda: _retry(job_id, changes, contact))


def fork_command(job_id: str, from_step: int, prompt: str | None, changes: Changes, contact: Contact) -> int:
    """A new job that goes another way from a step on."""
    return talking(contact.terminal, lambda: _fork(job_id, from_step, prompt, changes, contact))


def _list(states: Sequence[str], limit: int, contact: Contact) -> int:
    for state in states:
        if state not in STATES:
            raise TaskRejected(f"--state {state}: must be one of {', '.join(STATES)}", reason="usage")
    if limit < 1:
        raise TaskRejected(f"--limit {limit}: must be 1 or more", reason="usage")
    terminal = contact.terminal
    with contact.client() as client:
        jobs = list(itertools.islice(client.list(states=states, page_size=min(limit, 100)), limit))
    if not jobs:
        terminal.say(f"no jobs at {client.url}" + (f" in state {' or '.join(states)}" if states else ""))
    else:
        for line in table([HEAD, *(_row(job, time.time()) for job in jobs)]):
            terminal.say(line, whole=True)
    terminal.result(
        {"ok": True, "exit_code": EXIT_COMPLETED, "jobs": [job.model_dump(mode="json") for job in jobs]}
    )
    return EXIT_COMPLETED


def _row(job: Job, now: float) -> tuple[str, ...]:
    lacking = f"needs {job.waits_for}" if job.waits_for else None
    why = job.reason or job.outcome or lacking
    step = "" if job.progress.step is None else f"{job.progress.step}/{job.progress.max_steps}"
    prompt = one_line(job.prompt)
    shortened = prompt if len(prompt) <= PROMPT_CHARACTERS else f"{prompt[: PROMPT_CHARACTERS - 1]}…"
    state = one_line(f"{job.state} ({why})" if why else job.state)
    return one_line(job.id), state, step, age(now - job.submitted_at), one_line(job.preset), shortened


def age(seconds: float) -> str:
    """`12 s`, `3 min`, `5 h`, `2 d`: each unit from its first whole one on."""
    for unit, length, below in (("s", 1, 60), ("min", 60, 3600), ("h", 3600, 86400)):
        if seconds < below:
            return f"{max(0, int(seconds // length))} {unit}"
    return f"{int(seconds // 86400)} d"


def _cancel(job_id: str, contact: Contact) -> int:
    terminal = contact.terminal
    with contact.client() as client:
        job = client.cancel(job_id)
    if job.state not in STOPPED:
        said = f"the server was asked to stop job {one_line(job.id)}, and says that it is {one_line(job.state)}"
        return terminal.error(said, reason="not_stopped", code=EXIT_FAILED, id=job.id)
    said = "cancelled" if job.state == "cancelled" else "asked to stop; it stops after what it is doing now"
    terminal.say(f"Job {one_line(job.id)}: {said}")
    terminal.result({"ok": True, "exit_code": EXIT_COMPLETED, "id": job.id, "state": job.state})
    return EXIT_COMPLETED


def _delete(job_id: str, contact: Contact) -> int:
    terminal = contact.terminal
    with contact.client() as client:
        job = client.get(job_id)
        client.delete(job_id)
    was = f"it was in state {job.state}, with {job.spend.video_seconds:.1f} s of video rendered in "
    was += f"{counted(job.progress.step or 0, 'step')}; its files go too, but for those that other jobs share"
    terminal.say(f"Job {one_line(job.id)} is deleted: {was}")
    terminal.result({"ok": True, "exit_code": EXIT_COMPLETED, "id": job.id, "was": job.model_dump(mode="json")})
    return EXIT_COMPLETED


def _retry(job_id: str, changes: Changes, contact: Contact) -> int:
    budget, priority = changes.limits(), priority_of(changes.priority)
    with contact.client() as client:
        job = client.retry(
            job_id,
            max_steps=changes.max_steps,
            max_attempts=changes.max_attempts,
            seed=changes.seed,
            budget=budget,
            priority=priority,
        )
    return submitted(job, contact, watch=changes.watch)


def _fork(job_id: str, from_step: int, prompt: str | None, changes: Changes, contact: Contact) -> int:
    budget, priority = changes.limits(), priority_of(changes.priority)
    instruction = None if prompt is None else read_prompt(prompt, "--instruction")
    with contact.client() as client:
        job = client.fork(
            job_id,
            from_step,
            instruction=instruction,
            max_steps=changes.max_steps,
            max_attempts=changes.max_attempts,
            seed=changes.seed,
            budget=budget,
            priority=priority,
        )
    return submitted(job, contact, watch=changes.watch)
