"""`cliploop worlds`: name them, write their tasks to files, check that rules, pictures and plans agree."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import numpy as np

from cliploop.commands.boundary import guarded
from cliploop.commands.samples import named_sample, named_world
from cliploop.terminal import EXIT_COMPLETED, EXIT_FAILED, Terminal, one_line
from media.pictures import encode_png
from orchestrator.errors import TaskRejected
from worlds.catalog import DESCRIPTIONS, WORLDS
from worlds.sampling import Sample
from worlds.world import Difficulty


def list_command(terminal: Terminal) -> int:
    """Every world in a line; with `--json` an example of its task too."""

    def body() -> int:
        for name in WORLDS:
            terminal.say(f"{name:16} {DESCRIPTIONS[name]}", hang=17)
        if not terminal.json:
            return EXIT_COMPLETED
        listed = [
            {"name": name, "description": DESCRIPTIONS[name], "example": named_sample(name, "easy", 0).prompt}
            for name in WORLDS
        ]
        terminal.result({"ok": True, "exit_code": 0, "worlds": listed})
        return EXIT_COMPLETED

    return guarded(terminal, body)


def sample_command(name: str, difficulty: str, seed: int, count: int, output: Path, terminal: Terminal) -> int:
    """Write `<output>/<name>-<difficulty>-<seed>/first_frame.png` and `prompt.txt`."""

    def body() -> int:
        if count < 1:
            raise TaskRejected(f"--count {count}: give 1 or more", reason="usage")
        written = [_write(output, name, difficulty, seed + number) for number in range(count)]
        for folder in written:
            terminal.say(f"{one_line(str(folder))}/first_frame.png, prompt.txt")
        terminal.result({"ok": True, "exit_code": 0, "folders": [str(folder) for folder in written]})
        return EXIT_COMPLETED

    return guarded(terminal, body)


def _write(output: Path, name: str, difficulty: str, seed: int) -> Path:
    task = named_sample(name, difficulty, seed)
    folder = output / f"{name}-{difficulty}-{seed}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "first_frame.png").write_bytes(encode_png(task.frame))
        (folder / "prompt.txt").write_text(task.prompt + "\n", encoding="utf-8")
    except OSError as error:
        message = f"-o {output}: cannot write ({error.strerror}); choose another folder"
        raise TaskRejected(message, reason="output") from None
    return folder


def verify_command(name: str | None, seeds: int, terminal: Terminal) -> int:
    """Check worlds; exit 1 if one disagrees with itself."""

    def body() -> int:
        if seeds < 1:
            raise TaskRejected(f"--seeds {seeds}: give 1 or more", reason="usage")
        names = [named_world(name).name] if name else list(WORLDS)
        faults: list[str] = []
        for each in names:
            found = list(_faults(each, seeds))
            tasks = seeds * len(get_args(Difficulty))
            terminal.say(f"{each:16} {tasks} tasks: " + (f"{len(found)} faults" if found else "ok"))
            for fault in found:
                terminal.say(f"  {one_line(fault)}")
            faults += found
        code = EXIT_FAILED if faults else EXIT_COMPLETED
        terminal.result({"ok": not faults, "exit_code": code, "worlds": names, "faults": faults})
        return code

    return guarded(terminal, body)


def _faults(name: str, seeds: int) -> Iterator[str]:
    for difficulty in get_args(Difficulty):
        for seed in range(seeds):
            where = f"{name} {difficulty} {seed}"
            task = named_sample(name, difficulty, seed)
            yield from (f"{where}: {fault}" for fault in _task_faults(task, named_sample(name, difficulty, seed)))


def _task_faults(task: Sample, again: Sample) -> Iterator[str]:
    """What of spec's invariants can be checked on one task."""
    world = task.world
    if not (np.array_equal(task.frame, again.frame) and task.prompt == again.prompt):
        yield "the same seed gave another task"
    scene = world.understand(task.frame, task.prompt)
    if scene is None:
        yield "its own picture is not understood"
        return
    if scene.start.state != task.state:
        yield "the picture is read as another state"
    state = task.state
    actions = world.oracle_plan(state)
    if world.parse(world.describe(actions, scene.legend)) != actions:
        yield "a described plan is parsed as another one"
    for action in actions:
        if not world.legal(state, action):
            yield f"the oracle's plan holds an illegal action: {action}"
            return
        state = world.step(state, action)
    if not world.goal(state):
        yield "the oracle's plan misses the goal"
    if world.score(task.state, world.answer(task.state)[1]) != 1.0:
        yield "the right answer does not score 1"
