"""The journal of a job that goes on from another one: what of the parent's still fits, replayed up to a step.

The parent is only read. What models said is taken over as they said it; what was rendered and measured only where
it is what the new job would ask for, so that no clip ever stands for another shot than the one recorded.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from pydantic import ValidationError

from orchestrator.budget import Ledger
from orchestrator.errors import BackendFailed, CliploopError, Suspended, TaskRejected
from orchestrator.job import Job
from orchestrator.loop import play
from orchestrator.ports import Call, Inputs
from orchestrator.records import Answer, Asked, Plan, Policy, Record, Spend, Step, Task
from service.reading import NO_PORTS
from storage.digest import digest, dump
from storage.journal import Entry

R = TypeVar("R", bound=Record)
_OF_STEP = re.compile(r"step/(\d+)/")
_SAID = re.compile(r"/(plan|verdict|route|select)(/try/\d+)?$")


def inherited(
    task: Task,
    policy: Policy,
    parent_backends: str,
    entries: Sequence[Entry],
    step: int,
    instruction: str | None = None,
) -> tuple[Entry, ...]:
    """The entries that a job with this policy inherits when it goes on at `step` (1 or more).

    With an instruction, that is the step's plan. Raises TaskRejected where the step cannot be reached.
    """
    journal = _Inheriting(entries, parent_backends, step, instruction)
    job = Job(task, policy, NO_PORTS, journal, Ledger(policy.budget))
    with contextlib.suppress(Suspended, CliploopError):
        play(job)
    if not journal.reached:
        raise TaskRejected(
            f"step {step} cannot be reached with these options: what was done before it does not fit them, or the"
            " job ended earlier; choose an earlier step, or leave out what changes the steps before it",
            reason="step",
        )
    if instruction is not None and not journal.planned:
        why = "is a part of a step that was split: choose that one" if journal.taken else "has not begun"
        raise TaskRejected(f"step {step} has no plan of its own to replace, it {why}", reason="step")
    return tuple(journal.taken)


def next_step(steps: Sequence[Step]) -> int:
    """Where a retry goes on: after the last accepted step."""
    return 1 + max((step.index for step in steps if step.status == "accepted"), default=0)


class _Inheriting:
    """A journal that hands out the parent's values and notes them, until the step where the new job goes on."""

    def __init__(
        self, entries: Sequence[Entry], parent_backends: str, step: int, instruction: str | None
    ) -> None:
        self._parent = {entry.key: entry for entry in entries if entry.kind != "state"}
        self._backends = parent_backends
        self._step = step
        self._instruction = instruction
        self._known: dict[str, Entry] = {}
        self._stopped_at = ""
        self.planned = False

    @property
    def reached(self) -> bool:
        """Whether the replay stopped at the step; the first one is reached from wherever the parent stopped."""
        here = self._stopped_at.startswith(f"step/{self._step}/")
        return here or (self._step == 1 and not self._stopped_at.startswith("final/"))

    @property
    def taken(self) -> list[Entry]:
        """What the new job inherits, in the order of its replay."""
        return list(self._known.values())

    def once(self, key: str, inputs: Inputs, kind: type[R], effect: Callable[[], R]) -> R:
        """The parent's value. Raises Suspended where there is none that fits, BackendFailed for a failure."""
        self._stopped_at = key
        entry = self._known.get(key)
        if entry is None:
            entry = self._known[key] = self._entry(key, inputs)
        if entry.kind == "failure":
            raise _failure(entry)
        try:
            return kind.model_validate(entry.value)
        except ValidationError as error:
            del self._known[key]
            raise Suspended((key,)) from error

    def once_all(self, calls: Sequence[Call[R]]) -> list[R | BackendFailed]:
        """As once, for several, up to the first that is missing."""
        values: list[R | BackendFailed] = []
        for call in calls:
            try:
                values.append(self.once(call.key, call.inputs, call.kind, call.effect))
            except BackendFailed as failure:
                values.append(failure)
        return values

    def peek(self, key: str, kind: type[R]) -> R | None:
        """What was inherited so far; the loop peeks only inside effects, which never run here."""
        entry = self._known.get(key)
        return None if entry is None else kind.model_validate(entry.value)

    def renewals(self, key: str) -> int:
        """The new job has never waited."""
        return 0

    def _entry(self, key: str, inputs: Inputs) -> Entry:
        found = _OF_STEP.match(key)
        if found is not None and int(found[1]) >= self._step:
            if self._instruction is None or key != f"step/{self._step}/plan/try/1":
                raise Suspended((key,))
            self.planned = True
            return Entry(0, key, "record", digest(inputs), _planned(self._instruction), self._latest())
        entry = self._parent.get(key)
        if entry is None or key.startswith("final/"):
            raise Suspended((key,))
        before = digest({**inputs, "backends": self._backends})
        if entry.inputs != before and not _SAID.search(key):
            raise Suspended((key,))
        return Entry(0, key, entry.kind, digest(inputs), entry.value, entry.recorded_at)

    def _latest(self) -> float:
        return max((entry.recorded_at for entry in self._known.values()), default=0.0)


def _planned(instruction: str) -> dict[str, Any]:
    """A person's plan, in the form of a model's answer."""
    answer = Answer[Plan](value=Plan(instruction=instruction), model="person")
    return dump(Asked[Plan](answer=answer))


def _failure(entry: Entry) -> BackendFailed:
    spend = cast("Any", entry.value.get("spend"))
    return BackendFailed(str(entry.value["message"]), spend=Spend.model_validate(spend) if spend else None)
