"""Pictures that this project did not draw, solved from pixels and prompt with a perfect generator."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import av
import numpy as np
import numpy.typing as npt
import pytest

from cliploop.cli import invoke
from media.frames import FrameReader
from media.uploads import normalise
from orchestrator.footage import join, still
from orchestrator.records import Footage, Trajectory
from storage.artifacts import LocalArtifacts
from tests.cliploop.commandline import DATA
from worlds.catalog import understand
from worlds.world import Frame, Reading, Scene

GRIDS = sorted((DATA / "vrbench").glob("*/*"))
PUZZLES = sorted((DATA / "vbvr").glob("O-47*/*"))
CASES = [*GRIDS, *(pytest.param(puzzle, marks=pytest.mark.slow) for puzzle in PUZZLES)]
WALL = 1  # in the published grids: walls and traps
READ_EVERY = 4
SLACK_PX = 2  # a piece's rim fades into the floor


@dataclass(frozen=True)
class Solved:
    """A case after its run: the trajectory, and what its mezzanine frames show, looked at one by one.

    `readings`: of the first frame, every READ_EVERY-th and the last; `changed`: (H, W), where any frame differs
    from the first picture.
    """

    case: Path
    trajectory: Trajectory
    first: Frame
    num_frames: int
    changed: npt.NDArray[np.bool_]
    scene: Scene
    readings: list[Reading]
    video: Path


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name.split('_')[0]}-{case.name}")
def test_a_picture_drawn_elsewhere_is_solved(case: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if case not in GRIDS:  # 1024 px and eleven steps: clips of a second are enough to see them
        monkeypatch.setenv("CLIPLOOP_FIRST_STEP_SECONDS", "1")
        monkeypatch.setenv("CLIPLOOP_STEP_SECONDS", "1")
    solved = solve(case, tmp_path / "job")
    completed_without_best_effort(solved)
    the_last_frame_is_the_goal(solved)
    every_intermediate_move_is_legal(solved)
    pixels_outside_the_swept_cells_are_unchanged(solved)
    the_deliverable_has_the_pictures_size_and_every_frame(solved)
    if case in GRIDS:
        by_the_published_grid_pieces_stay_on_the_floor_from_start_to_goal(solved)


def solve(case: Path, folder: Path) -> Solved:
    image, prompt = str(case / "first_frame.png"), str(case / "prompt.txt")
    words = ["run", "--image", image, "--prompt", prompt, "-o", str(folder)]
    assert invoke([*words, "--generator", "simulated-perfect", "--max-steps", "40"]) == 0
    trajectory = Trajectory.model_validate_json((folder / "trajectory.json").read_text())
    reader = FrameReader(LocalArtifacts(folder / ".cliploop" / "artifacts"))
    first, footage = reader.picture(trajectory.first_frame), answer(trajectory)
    scene = understand(first, (case / "prompt.txt").read_text())
    assert scene is not None
    changed = np.zeros(first.shape[:2], dtype=np.bool_)
    readings: list[Reading] = []
    for number, frame in enumerate(reader.iterate(footage)):
        changed |= (frame != first).any(axis=2)
        if number % READ_EVERY == 0 or number == footage.num_frames - 1:
            reading = scene.read(frame)
            assert reading is not None, f"frame {number} cannot be read"
            readings.append(reading)
    return Solved(case, trajectory, first, footage.num_frames, changed, scene, readings, folder / "video.mp4")


def answer(trajectory: Trajectory) -> Footage:
    """The stitched footage, rebuilt from the trajectory alone."""
    footage = still(trajectory.first_frame, trajectory.policy.fps)
    for step in trajectory.steps:
        if step.footage.segments:
            footage = join(footage, step.footage)
    return footage


def completed_without_best_effort(solved: Solved) -> None:
    outcome = solved.trajectory.outcome
    assert outcome is not None
    assert outcome.kind == "completed"
    assert not outcome.best_effort
    assert all(step.status == "accepted" for step in solved.trajectory.steps)


def the_last_frame_is_the_goal(solved: Solved) -> None:
    world, last = solved.scene.world, solved.readings[-1]
    assert not last.moving
    assert not last.unreadable
    assert world.goal(last.state)
    assert not world.goal(solved.scene.start.state)


def every_intermediate_move_is_legal(solved: Solved) -> None:
    world, state = solved.scene.world, solved.scene.start.state
    for step in solved.trajectory.steps:
        for action in world.parse(step.plan.instruction):
            assert world.legal(state, action), f"{action} in step {step.index}"
            state = world.step(state, action)
    assert solved.readings[-1].state == state
    for number, reading in enumerate(solved.readings):
        assert not world.forbidden(reading.state, reading.configuration), f"frame {number}"


def pixels_outside_the_swept_cells_are_unchanged(solved: Solved) -> None:
    """Swept: the cells that the pieces which move are seen in, and pass between two readings."""
    swept = np.zeros_like(solved.changed)
    first = solved.readings[0]
    moved = {
        piece
        for reading in solved.readings
        for piece, place in reading.configuration.items()
        if place != first.configuration[piece]
    }
    sprites = solved.scene.sprites(solved.first, first, sorted(moved))
    for before, after in pairwise(solved.readings):
        for piece in moved:
            for share in np.linspace(0, 1, READ_EVERY + 1):
                place = tuple(
                    (1 - share) * then + share * now
                    for then, now in zip(before.configuration[piece], after.configuration[piece], strict=True)
                )
                _mark(swept, solved.scene, sprites[piece], first.configuration[piece], place)
    assert solved.changed.any()
    assert not (solved.changed & ~swept).any()


def _mark(swept: npt.NDArray[np.bool_], scene: Scene, sprite: Any, start: Any, place: Any) -> None:
    top, left = (now - then for now, then in zip(scene.pixel(place), scene.pixel(start), strict=True))
    height, width = sprite.mask.shape
    rows = slice(max(0, sprite.top + top - SLACK_PX), sprite.top + top + height + SLACK_PX)
    columns = slice(max(0, sprite.left + left - SLACK_PX), sprite.left + left + width + SLACK_PX)
    swept[rows, columns] = True


def by_the_published_grid_pieces_stay_on_the_floor_from_start_to_goal(solved: Solved) -> None:
    """Judged without our reader: the grid is the benchmark's own, which the product never opens."""
    truth = json.loads((solved.case / "state.json").read_text())
    cell, grid = truth["render"]["cell_size"], truth["grid"]["data"]
    touched = {(int(row) // cell, int(column) // cell) for row, column in np.argwhere(solved.changed)}
    assert not touched & {(r, c) for r, line in enumerate(grid) for c, kind in enumerate(line) if kind == WALL}
    for place in (truth["entities"]["player"]["grid_pos"], truth["entities"]["goal"]["grid_pos"]):
        assert (place["row"], place["col"]) in touched


def the_deliverable_has_the_pictures_size_and_every_frame(solved: Solved) -> None:
    size = normalise((solved.case / "first_frame.png").read_bytes()).size
    with av.open(str(solved.video), "r") as container:
        stream = container.streams.video[0]
        shapes = {(frame.width, frame.height) for frame in container.decode(stream)}
        assert stream.codec_context.pix_fmt == "yuv420p"
    assert shapes == {(size.width + size.width % 2, size.height + size.height % 2)}
    with av.open(str(solved.video), "r") as container:
        decoded = sum(1 for _ in container.decode(video=0))
    clips = [step.attempts[-1].clip for step in solved.trajectory.steps]
    rendered = sum(clip.num_frames for clip in clips if clip is not None)
    assert decoded == solved.num_frames == 1 + rendered - len(clips)
