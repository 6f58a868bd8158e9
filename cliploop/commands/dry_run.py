"""`--dry-run`: what would run and what it would cost. Writes nothing."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from cliploop.asked import LocalJob
from cliploop.estimate import Estimate, Range, estimate
from cliploop.files import folder_fault, nearest_there
from cliploop.terminal import EXIT_COMPLETED, Terminal, counted, one_line
from orchestrator.errors import TaskRejected
from orchestrator.records import Policy


def show_estimate(job: LocalJob, folder: Path, notes: Sequence[str], terminal: Terminal) -> int:
    """Say it, for people and as JSON."""
    policy, cost = job.policy, estimate(job.policy)
    canvas = policy.canvas
    rows = [
        ("job", f"{job.id} in {one_line(str(folder))}"),
        ("task", one_line(job.task.prompt)),
        ("picture", f"{job.task.size}" + "".join(f"; {one_line(note)}" for note in notes)),
        ("canvas", f"{canvas.size} ({canvas.fit})"),
        ("generator", policy.generator),
        *_loop(policy),
        ("budget", _budget(job)),
        ("clips", _whole(cost.clips)),
        ("video", f"{cost.video_seconds.least:.1f} to {cost.video_seconds.most:.1f} s to render"),
        ("VLM calls", f"{_whole(cost.vlm_calls)} (unreadable replies are asked again, three asks each at most)"),
        ("dollars", f"{cost.usd.least:.2f} to {cost.usd.most:.2f} for rendering"),
    ]
    terminal.say("Dry run, nothing is written.")
    for name, text in rows:
        terminal.say(f"{name:10} {text}", hang=11)
    terminal.result(
        {
            "ok": True,
            "exit_code": EXIT_COMPLETED,
            "dry_run": True,
            "id": job.id,
            "folder": str(folder),
            "policy": policy.model_dump(mode="json"),
            "estimate": as_json(cost),
        }
    )
    return EXIT_COMPLETED


def refuse_folder(job: LocalJob, folder: Path, *, fresh: bool) -> None:
    """Raise TaskRejected or BackendMisconfigured for a folder that the run itself would refuse."""
    if os.path.isdir(folder):  # noqa: PTH112  (never raises)
        from cliploop.folder import JobFolder, refuse_as_a_run_would  # with SQL, which a new folder does not need

        refuse_as_a_run_would(JobFolder(folder), job.id, job.task, job.policy, fresh=fresh)
        return
    fault = folder_fault(folder)
    if (
        fault is None
        and (nearest := nearest_there(folder)) is not None
        and not os.access(nearest, os.W_OK | os.X_OK)
    ):
        fault = f"{nearest} cannot be written to"
    if fault is not None:
        raise TaskRejected(f"-o {one_line(str(folder))}: {fault}; choose another -o", reason="output")


def _loop(policy: Policy) -> list[tuple[str, str]]:
    """Who takes part in it, and how far it may go."""
    if policy.num_shots:
        many = policy.num_shots
        clips = f"{many} clips, of which one is chosen" if many > 1 else "one clip"
        return [
            ("strategy", f"{policy.strategy}: the raw task in {clips}, nothing planned or judged"),
            ("seed", f"{policy.seed}"),
            *([("selector", f"{policy.selector}, among the clips")] if many > 1 else []),
            ("assessor", f"{policy.assessor}, of the last frame"),
        ]
    return [
        ("planner", f"{policy.planner}, router {policy.router}, assessor {policy.assessor}"),
        ("verifier", policy.verifier),
        ("strategy", f"{policy.strategy}, gate {policy.gate}, seed {policy.seed}"),
        ("limits", _limits(policy)),
    ]


def _limits(policy: Policy) -> str:
    """The router may grant a step that was rejected all along a second round."""
    each = f"at most {counted(policy.max_attempts, 'attempt')} each, as many again if the router says so"
    return f"at most {counted(policy.max_steps, 'step')}, {each}"


def as_json(cost: Estimate) -> dict[str, dict[str, float]]:
    """`{"clips": {"min": 1, "max": 18}, …}`."""
    return {
        name: {"min": each.least, "max": each.most}
        for name, each in (
            ("clips", cost.clips),
            ("video_seconds", cost.video_seconds),
            ("vlm_calls", cost.vlm_calls),
            ("usd", cost.usd),
        )
    }


def _whole(each: Range) -> str:
    return f"{each.least:.0f} to {each.most:.0f}" if each.least != each.most else f"{each.least:.0f}"


def _budget(job: LocalJob) -> str:
    said = [f"{name} {value:g}" for name, value in job.policy.budget.model_dump().items() if value is not None]
    return ", ".join(said) or "unlimited"
