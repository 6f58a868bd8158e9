"""What a server answers, as frozen records. Fields that a newer server adds are let pass.

Times are seconds since the epoch, UTC.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from orchestrator.records import Capabilities, Size, Spend

FINAL_STATES = frozenset({"succeeded", "failed", "cancelled"})


class Said(BaseModel):
    """Base: frozen; unknown fields are let pass."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Progress(Said):
    """How far a job is. `fraction`: of the clip that is being rendered, 0 … 1; None when none is."""

    step: int | None = None
    max_steps: int | None = None
    attempt: int | None = None
    key: str = ""
    fraction: float | None = None


class Bounds(Said):
    """From the best case to the worst."""

    least: float
    most: float


class Estimate(Said):
    """What the whole job may cost; `remaining_seconds` at most, at the pace so far."""

    clips: Bounds
    video_seconds: Bounds
    vlm_calls: Bounds
    usd: Bounds
    remaining_seconds: float | None = None


class Webhook(Said):
    """Where a job's news goes."""

    url: str = ""


class Job(Said):
    """A job as it stands."""

    id: str
    state: str
    reason: str | None = None
    outcome: str | None = None
    message: str = ""
    at: str | None = None
    waits_for: str | None = None  # a worker, where none lives that could go on with it
    prompt: str = ""
    preset: str = ""
    priority: str = "normal"
    generator: str = ""
    planner: str = ""
    verifier: str = ""
    strategy: str = ""
    seed: int = 0
    parent_id: str | None = None
    submitted_at: float = 0.0
    queue_position: int | None = None
    progress: Progress = Progress()
    spend: Spend = Spend()
    estimate: Estimate | None = None
    webhook: Webhook | None = None
    webhook_secret: str | None = Field(default=None, repr=False)  # told once, where the server made it
    links: Mapping[str, str] = Field(default_factory=dict)

    @property
    def ended(self) -> bool:
        """Whether nothing can follow."""
        return self.state in FINAL_STATES


class JobPage(Said):
    """Some jobs, newest first. `after` asks for the next page; None on the last."""

    data: tuple[Job, ...]
    after: str | None = None


class Event(Said):
    """Something that happened to a job.

    `kind`: record, failure or state, which have a `number` and are never told twice; progress, of a clip that is
    being rendered, with `fraction` in its value; waits, `for` a worker
    that does not live; deleted, after which nothing follows. `value`: its JSON.
    """

    kind: str
    number: int | None = None
    key: str = ""
    value: Mapping[str, Any] = Field(default_factory=dict)
    recorded_at: float | None = None

    @property
    def final(self) -> bool:
        """Whether nothing follows."""
        return self.kind == "deleted" or (self.kind == "state" and self.value.get("state") in FINAL_STATES)


class Preset(Said):
    """A named choice of the server's configuration."""

    name: str
    choices: Mapping[str, Any] = Field(default_factory=dict)


class Backend(Said):
    """What a submission can name. `detail` says why one cannot be used."""

    name: str
    type: str = ""
    usable: bool = True
    detail: str = ""
    capabilities: Capabilities | None = None


class World(Said):
    """A procedural world of tasks with exact answers."""

    name: str
    description: str = ""
    difficulties: tuple[str, ...] = ()


class Sample(Said):
    """A task of a world: a PNG, and what should happen in it."""

    picture: bytes
    prompt: str


class Artifact(Said):
    """A picture that was uploaded, for a submission to name."""

    id: str
    size: Size
    notes: tuple[str, ...] = ()
    expires_at: float | None = None


class Readiness(Said):
    """Whether jobs can be taken and done; `missing` names what is away, and why."""

    ready: bool
    missing: Mapping[str, str] = Field(default_factory=dict)


class Downloaded(Said):
    """A file that was fetched whole. `resumed_at`: bytes that were there from before."""

    path: Path
    num_bytes: int
    resumed_at: int = 0
