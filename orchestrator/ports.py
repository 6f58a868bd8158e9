"""The loop's ports: Protocols with as few methods as a role has. Knows no backend.

Seeds are handed in (`View.seed`, `Shot.seed`): the same seed gives the same answer where a backend allows it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeAlias, TypeVar, runtime_checkable

from orchestrator.errors import BackendFailed
from orchestrator.pacing import Rate, Turn
from orchestrator.records import (
    Answer,
    ArtifactKey,
    Assessment,
    Attempt,
    Canvas,
    Capabilities,
    Check,
    Choice,
    Clip,
    Footage,
    Plan,
    Record,
    Route,
    Shot,
    Size,
    Task,
    Verdict,
    Video,
    View,
)

Frames: TypeAlias = Any  # (T, H, W, 3) uint8 RGB; opaque to the loop
R = TypeVar("R", bound=Record)
Inputs: TypeAlias = Mapping[str, Any]  # JSON-able values and records; digested, never stored whole


class Planner(Protocol):
    """Says the next visual action."""

    def accepts(self, task: Task) -> None:
        """Raise TaskRejected, naming the remedy, if this planner can never read the task. At submission only."""
        ...

    def plan(self, task: Task, view: View) -> Answer[Plan]:
        """The next action only; at `view.step == view.max_steps` it must finish the task.

        Raises ReplyUnreadable, ReplyBlocked, BackendUnavailable.
        """
        ...


class Verifier(Protocol):
    """Judges a candidate."""

    def verify(
        self, task: Task, plan: Plan, prompt: str, candidate: Footage, notes: Sequence[str], view: View
    ) -> Answer[Verdict]:
        """Judge the whole candidate against the plan. `prompt` is what the generator was told last.

        `view.current_frame` is the frame that the step started from. Raises as Planner.plan.
        """
        ...


class Router(Protocol):
    """Decides about a step whose attempts were all rejected."""

    def route(self, task: Task, plan: Plan, attempts: Sequence[Attempt], view: View) -> Answer[Route]: ...


class Assessor(Protocol):
    """Says at the end whether the task is done."""

    def assess(self, task: Task, view: View) -> Answer[Assessment]:
        """`view.current_frame` is the last frame of the answer."""
        ...


class Selector(Protocol):
    """Picks one of several candidates for the same step."""

    def select(self, task: Task, plan: Plan, candidates: Sequence[Footage], view: View) -> Answer[Choice]: ...


class Generator(Protocol):
    """Renders a clip from a start frame and a prompt."""

    @property
    def capabilities(self) -> Capabilities: ...

    def render(
        self,
        shot: Shot,
        *,
        resume: str | None,
        checkpoint: Callable[[str], None],
        progress: Callable[[float], None],
        cancelled: Callable[[], bool],
    ) -> Frames:
        """Render `shot.num_frames` frames of size `shot.canvas`.

        `checkpoint(token)` as soon as a remote render has an id; `resume` is that token after a restart.
        `checkpoint("")` before another one is submitted in its place: the one that was named last is over.
        `progress(fraction)` in 0 … 1, often enough that `cancelled()` is asked at every denoising step.
        Raises BackendFailed, BackendUnavailable, JobCancelled.
        """
        ...


@runtime_checkable
class Checked(Protocol):
    """A backend that can say beforehand what it lacks here: a library, a key, a checkpoint."""

    def check(self) -> None:
        """Load nothing, ask nobody. Raises BackendMisconfigured."""
        ...


def check(backend: object) -> None:
    """Have it say what it lacks, where it can. Raises BackendMisconfigured."""
    if isinstance(backend, Checked):
        backend.check()


@runtime_checkable
class Prepared(Protocol):
    """A generator that can load what rendering needs beforehand: nobody plans, or waits, for one that cannot."""

    def prepare(self) -> None:
        """Raises BackendMisconfigured."""
        ...


def prepare(generator: Generator) -> None:
    """Have it load what it needs, where there is something to load. Raises BackendMisconfigured."""
    if isinstance(generator, Prepared):
        generator.prepare()


class Artifacts(Protocol):
    """Content-addressed files, written whole before a journal names them."""

    def put(self, data: bytes, suffix: str) -> ArtifactKey:
        """Store and return the key; the same content gives the same key. Raises JobWaiting(disk) when full."""
        ...

    def read(self, key: ArtifactKey) -> bytes: ...

    def path(self, key: ArtifactKey) -> Path:
        """A local file with this content (downloaded where the store is remote)."""
        ...


class Editor(Protocol):
    """Everything the loop asks of pictures and video."""

    def place(self, task: Task, canvas: Canvas) -> ArtifactKey:
        """The task's picture on the canvas, as PNG: frame 0 of the whole answer."""
        ...

    def store(self, frames: Frames, shot: Shot) -> Clip:
        """Write the mezzanine and the last frame; measure frame 0 against the start frame.

        Raises BackendFailed for frames that are no clip (too few, wrong type).
        """
        ...

    def frame(self, footage: Footage, index: int) -> ArtifactKey:
        """Frame `index` of the footage as PNG, bit for bit; negative counts from the end."""
        ...

    def check(self, candidate: Footage, clip: Clip, first_picture: ArtifactKey, *, psnr_min: float) -> Check:
        """Quick checks of a candidate that is asked to change something; drift against the first picture."""
        ...

    def deliver(self, footage: Footage, canvas: Canvas, size: Size, *, long_side_max: int) -> Video:
        """Encode the answer once, back at the input's own size. Every frame of the footage, none added."""
        ...


@dataclass(frozen=True)
class Call(Generic[R]):
    """One entry of `Journal.once_all`."""

    key: str
    inputs: Inputs
    kind: type[R]
    effect: Callable[[], R]


class Journal(Protocol):
    """One job's memory: an effect recorded here never runs again."""

    def once(self, key: str, inputs: Inputs, kind: type[R], effect: Callable[[], R]) -> R:
        """The recorded value of `key`, or run the effect and record what it returns.

        BackendFailed is recorded and raised again on replay; every other error leaves no entry. Raises
        JobWaiting(changed) if the entry's digest of inputs no longer fits, Suspended if it cannot run here.
        """
        ...

    def once_all(self, calls: Sequence[Call[R]]) -> list[R | BackendFailed]:
        """Several at once; results in order, BackendFailed as a value.

        What can run here runs; then Suspended names all of those that are missing and cannot, at once.
        """
        ...

    def peek(self, key: str, kind: type[R]) -> R | None:
        """The recorded value, or None; raises BackendFailed for a recorded failure; never runs anything."""
        ...

    def renewals(self, key: str) -> int:
        """How often the job waited at `key` and was taken up again: each renews that key's allowance."""
        ...


class Clock(Protocol):
    """Time is handed in."""

    def now(self) -> float:
        """Seconds, monotonic."""
        ...

    def sleep(self, seconds: float) -> None: ...


class RateLimiter(Protocol):
    """Shares out what a VLM's vendor allows in a minute among all who ask the VLM of that name."""

    def book(self, name: str, rate: Rate, tokens: int, longest_seconds: float) -> Turn:
        """The next free turn for one request of about so many tokens; not booked if it is later than that."""
        ...

    def correct(self, name: str, id: str, tokens: int) -> None:
        """What a booked request did use."""
        ...


@dataclass(frozen=True)
class Ports:
    """What the loop is given; `cliploop.compose` fills it."""

    planner: Planner
    verifier: Verifier
    router: Router
    assessor: Assessor
    generator: Generator
    editor: Editor
    clock: Clock
    selector: Selector | None = None
    progress: Callable[[str, float], None] = lambda _key, _fraction: None
    cancelled: Callable[[], bool] = lambda: False
