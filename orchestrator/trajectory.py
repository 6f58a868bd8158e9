"""The trajectory: rebuilt from the journal by a replay that runs nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import TypeVar

from orchestrator.budget import Ledger
from orchestrator.errors import BackendFailed, CliploopError, Suspended
from orchestrator.job import Job
from orchestrator.loop import play
from orchestrator.ports import Call, Inputs, Journal, Ports
from orchestrator.records import Policy, Record, Spend, Step, Task, Trajectory

R = TypeVar("R", bound=Record)


class ReadOnlyJournal:
    """A journal that only remembers: what is missing suspends."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def once(self, key: str, inputs: Inputs, kind: type[R], effect: Callable[[], R]) -> R:
        """The recorded value; Suspended where there is none."""
        value = self._journal.peek(key, kind)
        if value is None:
            raise Suspended((key,))
        return value

    def once_all(self, calls: Sequence[Call[R]]) -> list[R | BackendFailed]:
        """As once, for several; Suspended names every missing key."""
        results: list[R | BackendFailed] = []
        missing: list[str] = []
        for call in calls:
            try:
                results.append(self.once(call.key, call.inputs, call.kind, call.effect))
            except BackendFailed as failure:
                results.append(failure)
            except Suspended as suspended:
                missing.extend(suspended.keys)
        if missing:
            raise Suspended(tuple(missing))
        return results

    def peek(self, key: str, kind: type[R]) -> R | None:
        """As the journal's own."""
        return self._journal.peek(key, kind)

    def renewals(self, key: str) -> int:
        """As the journal's own."""
        return self._journal.renewals(key)


def trajectory_of(job_id: str, task: Task, policy: Policy, ports: Ports, journal: Journal) -> Trajectory:
    """All of a job so far; the step under way is there with status `running`. Runs no effect."""
    job = Job(task, policy, ports, ReadOnlyJournal(journal), Ledger(policy.budget))
    with contextlib.suppress(Suspended, CliploopError):
        play(job)
    under_way = _under_way(job)
    return Trajectory(
        id=job_id,
        task=task,
        policy=policy,
        first_frame=job.first_picture,
        gate=under_way if under_way and not under_way.index else job.tape.gate,
        steps=(*job.tape.steps, *([under_way] if under_way and under_way.index else [])),
        assessment=job.tape.assessment,
        outcome=job.tape.outcome,
        shown=tuple(job.tape.shown),
        spend=job.ledger.used,
    )


def _under_way(job: Job) -> Step | None:
    if job.tape.plan is None:
        return None
    attempts = tuple(job.tape.attempts)
    return Step(
        index=job.tape.index,
        plan=job.tape.plan,
        attempts=attempts,
        status="running",
        last_frame=job.tape.steps[-1].last_frame if job.tape.steps else job.first_picture,
        spend=sum((a.spend for a in attempts), start=Spend()),
    )
