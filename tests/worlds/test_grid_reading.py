"""Grid pictures that this project did not draw, read from pixels and prompt alone."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.worlds.foreign_grids import foreign
from tests.worlds.video import decoded
from worlds import catalog
from worlds.grid import GridState
from worlds.motion import move
from worlds.world import Frame

DATA = Path(__file__).parents[1] / "data"
VRBENCH = sorted(path.parent for path in DATA.glob("vrbench/*/*/prompt.txt"))
OTHERS = sorted(
    path
    for path in (*DATA.glob("vbvr/*/*/first_frame.png"), *DATA.glob("images/*"))
    if path.suffix in (".png", ".jpg", ".gif")
    and path.stem not in ("bomb_20000x20000", "zero_bytes", "text_named", "truncated")
)
GRID_WORLDS = ("maze", "trapfield", "sokoban")
SYMBOLS = {"maze": (1, 3, 2), "trapfield": (1, 3, 2), "sokoban": (1, 3, 5)}


def picture(path: Path) -> Frame:
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB"), np.uint8).copy()


def truth(folder: Path) -> GridState:
    answer = json.loads((folder / "state.json").read_text())
    grid = np.array(answer["grid"]["data"])
    wall, goal, player = SYMBOLS[folder.parent.name]

    def cells(symbol: int) -> list[tuple[int, int]]:
        return [(int(row), int(col)) for row, col in zip(*np.nonzero(grid == symbol), strict=True)]

    boxes = [(box["grid_pos"]["row"], box["grid_pos"]["col"]) for box in answer["entities"]["boxes"]]
    rows, cols = grid.shape
    return GridState(rows, cols, frozenset(cells(wall)), frozenset(cells(goal)), cells(player)[0], tuple(boxes))


def test_the_cases_are_there() -> None:
    assert len(VRBENCH) >= 5
    assert len(OTHERS) >= 15


@pytest.mark.parametrize("folder", VRBENCH, ids=lambda folder: f"{folder.parent.name}-{folder.name}")
def test_a_foreign_first_picture_is_understood(folder: Path) -> None:
    prompt = (folder / "prompt.txt").read_text()
    frame = picture(folder / "first_frame.png")
    scene = catalog.load(folder.parent.name).understand(frame, prompt)
    assert scene is not None
    assert scene.start.state == truth(folder)
    for name in GRID_WORLDS:
        if name != folder.parent.name:
            assert catalog.load(name).understand(frame, prompt) is None


@pytest.mark.parametrize("folder", VRBENCH, ids=lambda folder: f"{folder.parent.name}-{folder.name}")
def test_every_frame_of_a_foreign_video_is_read_and_the_last_is_the_goal(folder: Path) -> None:
    world = catalog.load(folder.parent.name)
    scene = world.understand(picture(folder / "first_frame.png"), (folder / "prompt.txt").read_text())
    assert scene is not None
    frames = decoded(folder / "ground_truth.mp4")
    readings = [scene.read(frame) for frame in frames]
    assert all(reading is not None and not reading.unreadable for reading in readings)
    assert not any(world.forbidden(scene.start.state, r.configuration) for r in readings if r is not None)
    last = readings[-1]
    assert last is not None
    assert world.goal(last.state)
    assert not last.moving
    places = np.array([list(r.configuration["player"]) for r in readings if r is not None])
    assert np.abs(np.diff(places, axis=0)).max() < 0.5


@pytest.mark.parametrize("folder", VRBENCH, ids=lambda folder: f"{folder.parent.name}-{folder.name}")
def test_the_plan_can_be_carried_out_on_the_foreign_pixels(folder: Path) -> None:
    world = catalog.load(folder.parent.name)
    frame = picture(folder / "first_frame.png")
    scene = world.understand(frame, (folder / "prompt.txt").read_text())
    assert scene is not None
    state = scene.start.state
    for action in world.oracle_plan(state):
        reading = scene.read(frame)
        assert reading is not None
        frames = move(scene, frame, reading, world.path(reading.state, action, reading.configuration), 9)
        assert np.array_equal(frames[0], frame)
        state, frame = world.step(state, action), frames[-1]
        after = scene.read(frame)
        assert after is not None
        assert after.state == state
        assert not after.unreadable
    assert world.goal(state)


@pytest.mark.parametrize("folder", VRBENCH, ids=lambda folder: f"{folder.parent.name}-{folder.name}")
def test_a_generator_that_sees_only_one_action_reads_the_same_board(folder: Path) -> None:
    world = catalog.load(folder.parent.name)
    frame = picture(folder / "first_frame.png")
    scene = world.understand(frame, (folder / "prompt.txt").read_text())
    assert scene is not None
    for action in world.oracle_plan(scene.start.state):
        told = world.understand(frame, world.describe([action], scene.legend))
        assert told is not None
        assert told.start.state == scene.start.state


@pytest.mark.parametrize("world", GRID_WORLDS)
def test_pictures_in_other_palettes_sizes_and_words_are_understood(world: str) -> None:
    seeds, wrong, none = range(24), list[str](), list[str]()
    for seed in seeds:
        case = foreign(world, seed)
        scene = catalog.load(world).understand(case.frame, case.prompt)
        if scene is None:
            none.append(f"{seed}: {case.note}")
        elif scene.start.state != case.state:
            wrong.append(f"{seed}: {case.note}")
    assert not wrong
    assert not none


@pytest.mark.parametrize("path", OTHERS, ids=lambda path: f"{path.parent.parent.name[:5]}-{path.stem}")
def test_pictures_of_something_else_are_no_grid_world(path: Path) -> None:
    own = path.parent / "prompt.txt"
    prompts = ["", (VRBENCH[0] / "prompt.txt").read_text(), *([own.read_text()] if own.exists() else [])]
    for name in GRID_WORLDS:
        for prompt in prompts:
            assert catalog.load(name).understand(picture(path), prompt) is None


@pytest.mark.parametrize("kind", ["noise", "blank", "gradient", "chart", "chequers", "tiny"])
def test_what_is_no_board_is_none(kind: str) -> None:
    rng = np.random.default_rng(1)
    frame = np.full((240, 320, 3), 255, np.uint8)
    if kind == "noise":
        frame = rng.integers(0, 256, frame.shape, dtype=np.uint8)
    elif kind == "gradient":
        frame[:] = np.linspace(0, 255, 320).astype(np.uint8)[:, np.newaxis]
    elif kind == "chart":
        for bar, height in enumerate((120, 200, 90, 220)):
            frame[230 - height : 230, 30 + 70 * bar : 75 + 70 * bar] = rng.integers(0, 255, 3)
    elif kind == "chequers":
        frame[:] = (100 + 120 * ((np.indices((240, 320)) // 40).sum(axis=0) % 2))[..., np.newaxis]
    elif kind == "tiny":
        frame = frame[:5, :7]
    for folder in VRBENCH:
        for name in GRID_WORLDS:
            assert catalog.load(name).understand(frame, (folder / "prompt.txt").read_text()) is None
