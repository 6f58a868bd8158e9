"""The backends of one worker process: built once, kept warm, and called under limits.

It knows when a call is given up and what the loop is told then; not what the backends do.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

from cliploop.site import Site
from media.frames import FrameReader
from orchestrator.errors import BackendFailed, BackendUnavailable
from orchestrator.ports import Frames, Generator, Ports, prepare
from orchestrator.records import (
    Answer,
    Assessment,
    Attempt,
    Capabilities,
    Choice,
    Footage,
    Plan,
    Policy,
    Route,
    Shot,
    Task,
    Verdict,
    View,
)
from workers.limits import Limits, TookTooLong, free_memory, is_out_of_memory, within

PORTS_KEPT = 2  # each may keep the frames of a few clips
GENERATORS_KEPT = 1  # a second model may not fit beside the first
TRIES_WITHOUT_MEMORY = 2
OWN_LIMIT_MARGIN_SECONDS = 30.0  # for what a model does beside waiting: encoding, its turn at a rate limit

T = TypeVar("T")


class Runner(Protocol):
    """Where a render is done: here, or in the main thread of this process."""

    def __call__(self, call: Callable[[], T]) -> T: ...


def here(call: Callable[[], T]) -> T:
    """In the thread that asks."""
    return call()


class Backends:
    """What policies name, built when first asked for."""

    def __init__(self, site: Site, limits: Limits, runner: Runner = here) -> None:
        self._site, self._limits, self._runner = site, limits, runner
        self._lock = threading.Lock()
        self._ports: OrderedDict[tuple[str, ...], Ports] = OrderedDict()
        self._generators: OrderedDict[str, Generator] = OrderedDict()

    def ports(
        self, policy: Policy, progress: Callable[[str, float], None], cancelled: Callable[[], bool]
    ) -> Ports:
        """As Site.ports, warm. Raises BackendMisconfigured, JobWaiting(changed)."""
        models = (policy.planner, policy.verifier, policy.router, policy.assessor, policy.selector or "")
        names = (*models, policy.generator, policy.backends_digest)  # a prompt's file may change meanwhile
        name = policy.generator
        with self._lock:
            ports = _recall(self._ports, names, PORTS_KEPT, lambda: self._built(policy))
            generator = _recall(self._generators, name, GENERATORS_KEPT, lambda: self._generator(name))
        return replace(ports, generator=generator, progress=progress, cancelled=cancelled)

    def _built(self, policy: Policy) -> Ports:
        ports = self._site.ports(policy, lambda _key, _fraction: None, lambda: False)
        models: dict[int, Any] = {}

        def timed(model: Any) -> Any:
            return models.setdefault(id(model), TimedModel(model, self._limits))

        return replace(
            ports,
            planner=timed(ports.planner),
            verifier=timed(ports.verifier),
            router=timed(ports.router),
            assessor=timed(ports.assessor),
            selector=None if ports.selector is None else timed(ports.selector),
        )

    def _generator(self, name: str) -> Generator:
        reader = FrameReader(self._site.artifacts)
        guarded = GuardedGenerator(self._site.composition.generator(name, reader), self._limits, self._runner)
        return RoomyGenerator(guarded, self._site.require_room)

    def warm(self, name: str) -> None:
        """Load the generator of that name before its first clip. Raises BackendMisconfigured."""
        with self._lock:
            prepare(_recall(self._generators, name, GENERATORS_KEPT, lambda: self._generator(name)))


def _recall(kept: OrderedDict[Any, T], key: object, most: int, build: Callable[[], T]) -> T:
    """The one that is kept, or a new one in the place of the oldest."""
    if key not in kept:
        while len(kept) >= most:
            kept.popitem(last=False)
            free_memory()
        kept[key] = build()
    kept.move_to_end(key)
    return kept[key]


@dataclass(frozen=True)
class GuardedGenerator:
    """A generator under a time limit, that may run out of memory. Implements orchestrator.ports.Generator."""

    inner: Generator
    limits: Limits
    runner: Runner = here

    @property
    def capabilities(self) -> Capabilities:
        return self.inner.capabilities

    def prepare(self) -> None:
        prepare(self.inner)

    def render(
        self,
        shot: Shot,
        *,
        resume: str | None,
        checkpoint: Callable[[str], None],
        progress: Callable[[float], None],
        cancelled: Callable[[], bool],
    ) -> Frames:
        """As the generator. Too slow, or out of memory twice, is BackendFailed with what to do."""
        tokens = [resume]

        def note(token: str) -> None:
            tokens.append(token)
            checkpoint(token)

        def once() -> Frames:  # a second time it takes up what the first one submitted elsewhere
            return self.inner.render(
                shot, resume=tokens[-1] or None, checkpoint=note, progress=progress, cancelled=cancelled
            )

        return self.runner(lambda: self._guarded(once))

    def _guarded(self, render: Callable[[], Frames]) -> Frames:
        said = ""
        for _ in range(TRIES_WITHOUT_MEMORY):
            try:
                return within(self.limits.clip_seconds, self.limits.grace_seconds, render)
            except TookTooLong:
                raise BackendFailed(
                    f"the render was stopped after {self.limits.clip_seconds:g} s: ask for fewer frames or"
                    " denoising steps, or raise the worker's --clip-seconds"
                ) from None
            except Exception as error:
                if not is_out_of_memory(error):
                    raise
                said = str(error)[:200] or type(error).__name__
            free_memory()  # outside the except block, where the error still holds the frames
        raise BackendFailed(
            f"out of memory, {TRIES_WITHOUT_MEMORY} times ({said}): use a smaller picture or fewer frames, or set"
            " the generator's offload and dtype to use less"
        )


@dataclass(frozen=True)
class RoomyGenerator:
    """A generator that begins nothing while the disk is low. `require_room` raises JobWaiting(disk)."""

    inner: Generator
    require_room: Callable[[], None]

    @property
    def capabilities(self) -> Capabilities:
        return self.inner.capabilities

    def prepare(self) -> None:
        prepare(self.inner)

    def render(
        self,
        shot: Shot,
        *,
        resume: str | None,
        checkpoint: Callable[[str], None],
        progress: Callable[[float], None],
        cancelled: Callable[[], bool],
    ) -> Frames:
        """As the generator. A render that goes on elsewhere is fetched all the same: it is paid for."""
        if resume is None:
            self.require_room()
        return self.inner.render(
            shot, resume=resume, checkpoint=checkpoint, progress=progress, cancelled=cancelled
        )


@dataclass(frozen=True)
class SpentGenerator:
    """Stands in for a generator whose worker ended again and again at this clip: the attempt is lost."""

    inner: Generator
    starts: int

    @property
    def capabilities(self) -> Capabilities:
        return self.inner.capabilities

    def render(
        self,
        shot: Shot,
        *,
        resume: str | None,
        checkpoint: Callable[[str], None],
        progress: Callable[[float], None],
        cancelled: Callable[[], bool],
    ) -> Frames:
        """Raises BackendFailed."""
        raise BackendFailed(
            f"this clip was begun {self.starts} times and never finished: its worker ended each time, see its log"
        )


@dataclass(frozen=True)
class TimedModel:
    """A model under a time limit, in every role. Too slow is BackendUnavailable: it may answer later.

    One that says how long it waits by itself (`ask_seconds`) is stopped only some time after that.
    """

    inner: Any
    limits: Limits

    def accepts(self, task: Task) -> None:
        self.inner.accepts(task)

    def plan(self, task: Task, view: View) -> Answer[Plan]:
        return self._asked(lambda: self.inner.plan(task, view))

    def verify(
        self, task: Task, plan: Plan, prompt: str, candidate: Footage, notes: Sequence[str], view: View
    ) -> Answer[Verdict]:
        return self._asked(lambda: self.inner.verify(task, plan, prompt, candidate, notes, view))

    def route(self, task: Task, plan: Plan, attempts: Sequence[Attempt], view: View) -> Answer[Route]:
        return self._asked(lambda: self.inner.route(task, plan, attempts, view))

    def assess(self, task: Task, view: View) -> Answer[Assessment]:
        return self._asked(lambda: self.inner.assess(task, view))

    def select(self, task: Task, plan: Plan, candidates: Sequence[Footage], view: View) -> Answer[Choice]:
        return self._asked(lambda: self.inner.select(task, plan, candidates, view))

    def _asked(self, call: Callable[[], T]) -> T:
        own: float = getattr(self.inner, "ask_seconds", 0.0)
        seconds = max(self.limits.vlm_seconds, own + OWN_LIMIT_MARGIN_SECONDS if own else 0.0)
        try:
            return within(seconds, self.limits.grace_seconds, call)
        except TookTooLong:
            raise BackendUnavailable(f"no answer within {seconds:g} s") from None
