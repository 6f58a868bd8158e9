"""The calls of the API, each as a flow: what is sent, and what its answer is read as. All raise ClientError."""

from __future__ import annotations

import base64
import binascii
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from cliploop.client.answers import Artifact, Backend, Job, JobPage, Preset, Readiness, Sample, World
from cliploop.client.asking import answered, document, read_as, record
from cliploop.client.errors import NotThere, NotUnderstood, WrongMoment
from cliploop.client.paths import job_path, segment
from cliploop.client.wire import Emit, Flow, Patience, Request
from orchestrator.records import Budget, FailureKind, Progress, Trajectory

Priority = Literal["high", "normal", "low"]
DELETE_SILENCE_SECONDS = 60.0  # the server waits until the job's work has stopped
TRAJECTORY_BYTES = 64 << 20
STOPPED = ("cancelling", "cancelled")


def submit(
    patience: Patience,
    picture: Path | str | bytes | Artifact,
    prompt: str,
    *,
    preset: str | None = None,
    generator: str | None = None,
    planner: str | None = None,
    verifier: str | None = None,
    strategy: str | None = None,
    gate: str | None = None,
    max_steps: int | None = None,
    max_attempts: int | None = None,
    seed: int | None = None,
    budget: Budget | str | None = None,
    priority: Priority | None = None,
    webhook_url: str | None = None,
    webhook_secret: str | None = None,
    idempotency_key: str | None = None,
    name: str | None = None,
) -> Flow[Job]:
    """Submit a job. `picture`: a file, its content, or an upload; `name`: for messages. None = not said.

    It always carries an idempotency key, one of its own where none is given: sent again because an answer was
    lost, it is no second job. Raises OSError for a file that cannot be read.
    """
    values: Mapping[str, Any] = {
        "prompt": prompt, "preset": preset, "generator": generator, "planner": planner, "verifier": verifier,
        "strategy": strategy, "gate": gate, "max_steps": max_steps, "max_attempts": max_attempts, "seed": seed,
        "budget": _as_text(budget), "priority": priority,
    }  # fmt: skip
    said = {field: value for field, value in values.items() if value is not None}
    hook = {
        field: value for field, value in (("url", webhook_url), ("secret", webhook_secret)) if value is not None
    }
    request = Request("POST", "/v1/jobs", headers=_once(idempotency_key))
    if isinstance(picture, Artifact):
        told = {"webhook": hook} if hook else {}
        request = replace(request, json={**said, **told, "picture": picture.id})
    else:
        form = said | {f"webhook_{field}": value for field, value in hook.items()}
        texts = {field: str(value) for field, value in form.items()}
        request = replace(request, form=texts, file=("picture", *_content(picture, name)))
    return read_as(Job, (yield from answered(patience, request)))


def upload(patience: Patience, picture: Path | str | bytes) -> Flow[Artifact]:
    """Store a picture that waits for its job. Raises OSError for a file that cannot be read."""
    request = Request("POST", "/v1/artifacts", file=("file", *_content(picture)))
    return read_as(Artifact, (yield from answered(patience, request)))


def get(patience: Patience, job_id: str) -> Flow[Job]:
    """A job as it stands. Raises NotThere."""
    return read_as(Job, (yield from answered(patience, Request("GET", job_path(job_id)))))


def page(
    patience: Patience, *, states: Sequence[str] = (), limit: int = 20, after: str | None = None
) -> Flow[JobPage]:
    """Some jobs, newest first; `after` is that of the page before."""
    query: dict[str, str | int | list[str]] = {"limit": limit}
    if states:
        query["state"] = list(states)
    if after is not None:
        query["after"] = after
    return read_as(JobPage, (yield from answered(patience, Request("GET", "/v1/jobs", query=query))))


def every(patience: Patience, *, states: Sequence[str] = (), page_size: int = 100) -> Flow[None]:
    """All jobs, newest first, page by page."""
    after: str | None = None
    while True:
        found = yield from page(patience, states=states, limit=page_size, after=after)
        for job in found.data:
            yield Emit(job)
        after = found.after
        if after is None:
            return


def cancel(patience: Patience, job_id: str) -> Flow[Job]:
    """Ask it to stop; its state then. Raises WrongMoment where it has ended."""
    request = Request("POST", f"{job_path(job_id)}/cancel")
    try:
        return read_as(Job, (yield from answered(patience, request)))
    except WrongMoment:
        job = yield from get(patience, job_id)
        if job.state in STOPPED:  # asked for before, or by the request whose answer was lost
            return job
        raise


def delete(patience: Patience, job_id: str) -> Flow[None]:
    """Stop it and remove it with its files. Raises NotThere, WrongMoment while it is still stopping."""
    request = Request("DELETE", job_path(job_id), silence_seconds=DELETE_SILENCE_SECONDS)
    try:
        yield from answered(patience, request)
    except NotThere as error:
        if not error.repeated:  # else the request whose answer was lost has removed it
            raise


def retry(
    patience: Patience,
    job_id: str,
    *,
    max_steps: int | None = None,
    max_attempts: int | None = None,
    seed: int | None = None,
    budget: Budget | None = None,
    priority: Priority | None = None,
    idempotency_key: str | None = None,
) -> Flow[Job]:
    """A new job that goes on after this one's last accepted step. Raises NotThere, WrongMoment."""
    changes = _changes(max_steps, max_attempts, seed, budget, priority)
    request = Request("POST", f"{job_path(job_id)}/retry", headers=_once(idempotency_key), json=changes)
    return read_as(Job, (yield from answered(patience, request)))


def fork(
    patience: Patience,
    job_id: str,
    from_step: int,
    *,
    instruction: str | None = None,
    max_steps: int | None = None,
    max_attempts: int | None = None,
    seed: int | None = None,
    budget: Budget | None = None,
    priority: Priority | None = None,
    idempotency_key: str | None = None,
) -> Flow[Job]:
    """A new job with this one's steps before `from_step`, and that step anew, by the `instruction` if given."""
    changes = _changes(max_steps, max_attempts, seed, budget, priority)
    changes["step"] = from_step
    if instruction is not None:
        changes["instruction"] = instruction
    request = Request("POST", f"{job_path(job_id)}/fork", headers=_once(idempotency_key), json=changes)
    return read_as(Job, (yield from answered(patience, request)))


def review(
    patience: Patience,
    job_id: str,
    decision: Literal["resume", "accept", "reject"],
    *,
    progress: Progress | None = None,
    failure: FailureKind | None = None,
    reason: str = "",
    suggestion: str = "",
    good_fraction: float | None = None,
) -> Flow[Job]:
    """Let a waiting job go on: `resume` has it try again, the others are the verdict that it waits for.

    Raises WrongMoment where it does not wait, or not for that. An answer that is lost is not asked for again.
    """
    said = {"decision": decision, "progress": progress, "failure": failure, "good_fraction": good_fraction}
    verdict = {name: value for name, value in said.items() if value is not None}
    verdict |= {"reason": reason, "suggestion": suggestion}
    asked = {"action": "resume"} if decision == "resume" else {"verdict": verdict}
    request = Request("POST", f"{job_path(job_id)}/review", json=asked, repeatable=False)
    return read_as(Job, (yield from answered(patience, request)))


def trajectory(patience: Patience, job_id: str) -> Flow[Trajectory]:
    """Every plan, attempt and verdict so far. Raises NotUnderstood for a job of another version."""
    request = Request("GET", f"{job_path(job_id)}/trajectory", most_bytes=TRAJECTORY_BYTES)
    return read_as(Trajectory, (yield from answered(patience, request)))


def presets(patience: Patience) -> Flow[list[Preset]]:
    """What `preset` can name."""
    return [record(Preset, each, 200) for each in (yield from _listed(patience, "presets"))]


def generators(patience: Patience) -> Flow[list[Backend]]:
    """What `generator` can name."""
    return [record(Backend, each, 200) for each in (yield from _listed(patience, "generators"))]


def planners(patience: Patience) -> Flow[list[Backend]]:
    """What `planner` can name."""
    return [record(Backend, each, 200) for each in (yield from _listed(patience, "planners"))]


def verifiers(patience: Patience) -> Flow[list[Backend]]:
    """What `verifier` can name."""
    return [record(Backend, each, 200) for each in (yield from _listed(patience, "verifiers"))]


def worlds(patience: Patience) -> Flow[list[World]]:
    """What `sample` can name."""
    return [record(World, each, 200) for each in (yield from _listed(patience, "worlds"))]


def sample(
    patience: Patience, world: str, *, difficulty: str = "medium", seed: int = 0, side_px: int = 512
) -> Flow[Sample]:
    """A task of a world, ready to be submitted. Raises NotThere."""
    asked = {"difficulty": difficulty, "seed": seed, "side_px": side_px}
    request = Request("POST", f"/v1/worlds/{segment(world, 'world')}/sample", json=asked)
    said = document((yield from answered(patience, request)))
    try:
        png = base64.b64decode(said["picture"].partition(";base64,")[2], validate=True)
        return Sample(picture=png, prompt=said["prompt"])
    except (KeyError, TypeError, AttributeError, binascii.Error):
        raise NotUnderstood("the answer is no task of a world", status=200, code="other_version") from None


def health(patience: Patience) -> Flow[bool]:
    """True where the API answers. Raises ServerUnreachable."""
    yield from answered(patience, Request("GET", "/healthz"))
    return True


def ready(patience: Patience) -> Flow[Readiness]:
    """Whether jobs can be taken and done, and what is missing."""
    request = Request("GET", "/readyz", good=frozenset({200, 503}))
    return read_as(Readiness, (yield from answered(patience, request)))


def _listed(patience: Patience, what: str) -> Flow[list[Any]]:
    answer = yield from answered(patience, Request("GET", f"/v1/{what}"))
    try:
        return list(document(answer)["data"])
    except (KeyError, TypeError):
        raise NotUnderstood(
            f"the answer is no list of {what}", status=answer.status, code="other_version"
        ) from None


def _once(idempotency_key: str | None) -> dict[str, str]:
    return {"Idempotency-Key": idempotency_key or uuid.uuid4().hex}


def _changes(
    max_steps: int | None,
    max_attempts: int | None,
    seed: int | None,
    budget: Budget | None,
    priority: Priority | None,
) -> dict[str, Any]:
    said = {
        "max_steps": max_steps,
        "max_attempts": max_attempts,
        "seed": seed,
        "budget": budget.model_dump(exclude_none=True) if budget is not None else None,
        "priority": priority,
    }
    return {name: value for name, value in said.items() if value is not None}


def _content(picture: Path | str | bytes, name: str | None = None) -> tuple[str, bytes]:
    if isinstance(picture, bytes):
        return name or "picture", picture
    path = Path(picture)
    return name or path.name, path.read_bytes()


def _as_text(budget: Budget | str | None) -> str | None:
    if budget is None or isinstance(budget, str):
        return budget
    said = budget.model_dump(exclude_none=True)
    return ",".join(f"{name}={value!r}" for name, value in said.items()) or None
