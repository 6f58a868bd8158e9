"""`cliploop submit`: a picture and a prompt, or a task of a world, handed to a server."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cliploop.client import Client
from cliploop.client.routes import Priority
from cliploop.commands.inputs import read_picture, read_prompt
from cliploop.commands.talking import Contact, talking
from cliploop.commands.watching import submitted
from orchestrator.errors import TaskRejected

PRIORITIES: tuple[Priority, ...] = ("high", "normal", "low")


@dataclass(frozen=True)
class SubmitRequest:
    """The options of `cliploop submit`, as given; None = not given."""

    image: str | None = None
    prompt: str | None = None
    world: str | None = None
    difficulty: str = "medium"
    preset: str | None = None
    generator: str | None = None
    planner: str | None = None
    verifier: str | None = None
    strategy: str | None = None
    gate: str | None = None
    seed: int | None = None
    max_steps: int | None = None
    max_attempts: int | None = None
    budget: str | None = None
    priority: str | None = None
    webhook: str | None = None
    watch: bool = False


def submit_command(request: SubmitRequest, contact: Contact) -> int:
    """Submit a job, and follow it if asked to."""
    return talking(contact.terminal, lambda: _submit(request, contact))


def priority_of(given: str | None) -> Priority | None:
    """Raises TaskRejected for what is none."""
    for known in PRIORITIES:
        if given == known:
            return known
    if given is None:
        return None
    raise TaskRejected(f"--priority {given}: must be one of {', '.join(PRIORITIES)}", reason="usage")


def _submit(request: SubmitRequest, contact: Contact) -> int:
    priority = priority_of(request.priority)
    _refuse_incomplete(request)
    with contact.client() as client:
        picture, prompt, name = _asked(request, client)
        job = client.submit(
            picture,
            prompt,
            preset=request.preset,
            generator=request.generator,
            planner=request.planner,
            verifier=request.verifier,
            strategy=request.strategy,
            gate=request.gate,
            max_steps=request.max_steps,
            max_attempts=request.max_attempts,
            seed=request.seed,
            budget=request.budget,
            priority=priority,
            webhook_url=request.webhook,
            name=name,
        )
    return submitted(job, contact, watch=request.watch)


def _refuse_incomplete(request: SubmitRequest) -> None:
    given = {"--image": request.image, "--prompt": request.prompt}
    if request.world is not None:
        if any(value is not None for value in given.values()):
            said = "--world makes its own picture and prompt; leave out --image and --prompt"
            raise TaskRejected(said, reason="usage")
        return
    missing = [name for name, value in given.items() if value is None]
    if missing:
        said = f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing"
        raise TaskRejected(f"{said}; add it, or try a procedural task with --world maze", reason="usage")


def _asked(request: SubmitRequest, client: Client) -> tuple[bytes, str, str]:
    if request.world is not None:
        sample = client.sample(request.world, difficulty=request.difficulty, seed=request.seed or 0)
        return sample.picture, sample.prompt, f"{request.world}.png"
    assert request.image is not None
    assert request.prompt is not None
    return read_picture(request.image), read_prompt(request.prompt), Path(request.image).name
