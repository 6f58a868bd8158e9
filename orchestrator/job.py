"""One job while it is played: what was asked, the ports, the journal, and the tape of what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from orchestrator.budget import Ledger
from orchestrator.errors import JobCancelled
from orchestrator.ports import Inputs, Journal, Ports
from orchestrator.records import (
    ArtifactKey,
    Assessment,
    Attempt,
    Outcome,
    Plan,
    Policy,
    Progressed,
    Shown,
    Step,
    Task,
    View,
)
from orchestrator.seeds import derived_seed


@dataclass
class Tape:
    """What has happened so far, in order; the trajectory is made of it. Filled in by the loop."""

    gate: Step | None = None
    steps: list[Step] = field(default_factory=list[Step])
    attempts: list[Attempt] = field(default_factory=list[Attempt])  # of the step under way
    plan: Plan | None = None  # of the step under way
    index: int = 0  # of the step under way; 0 is the gate
    assessment: Assessment | None = None
    outcome: Outcome | None = None
    shown: list[Shown] = field(default_factory=list[Shown])

    def begin(self, index: int, plan: Plan) -> None:
        """A step is under way."""
        self.index, self.plan, self.attempts = index, plan, []

    def end(self) -> None:
        """No step is under way."""
        self.plan, self.attempts = None, []

    def note(self, attempt: Attempt) -> Attempt:
        """Put the attempt on the tape, in place of what was known of it before."""
        places = [place for place, other in enumerate(self.attempts) if other.index == attempt.index]
        for place in places:
            self.attempts[place] = attempt
        if not places:
            self.attempts.append(attempt)
        return attempt


@dataclass
class Job:
    """Everything that the parts of the loop share; nothing of it outlives the process but the journal."""

    task: Task
    policy: Policy
    ports: Ports
    journal: Journal
    ledger: Ledger
    first_picture: ArtifactKey = ""
    tape: Tape = field(default_factory=Tape)

    def view(self, key: str, step: int, frame: ArtifactKey, history: tuple[Progressed, ...] = ()) -> View:
        """What a model sees at `key`; the seed is replaced for each ask."""
        return View(
            first_picture=self.first_picture,
            current_frame=frame,
            history=history,
            step=step,
            max_steps=self.policy.max_steps,
            seed=derived_seed(self.policy.seed, key),
            temperature=self.policy.vlm_temperature,
            prompt_chars=self.policy.capabilities.prompt_chars,
        )

    def inputs(self, **more: Any) -> Inputs:
        """What every entry's digest covers, and more."""
        shared: Mapping[str, Any] = {"task": self.task, "backends": self.policy.backends_digest}
        return {**shared, **more}

    def stop_if_cancelled(self) -> None:
        """Asked before every effect."""
        if self.ports.cancelled():
            raise JobCancelled("the job was cancelled")
