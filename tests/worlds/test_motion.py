"""Positions along a path, and the pixel mover on a scene drawn by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from worlds.motion import completed, interpolate, length, move, paste, sample
from worlds.world import Configuration, Frame, Position, Reading, Sprite, World

CELL = 8


class Field:
    """A flat field of 8 px cells with square pieces of 6 px: the smallest scene there is."""

    legend: Any = None

    def __init__(self, reading: Reading) -> None:
        self.start = reading

    @property
    def world(self) -> World:
        raise AssertionError("the mover asks for no rules")

    def read(self, frame: Frame) -> Reading | None:
        return self.start

    def sprites(self, frame: Frame, reading: Reading, pieces: Sequence[str]) -> Mapping[str, Sprite]:
        found: dict[str, Sprite] = {}
        for piece in pieces:
            top, left = self.pixel(reading.configuration[piece])
            pixels = frame[top + 1 : top + 7, left + 1 : left + 7].copy()
            found[piece] = Sprite(pixels, np.ones((6, 6), bool), top + 1, left + 1)
        return found

    def without(self, frame: Frame, reading: Reading, pieces: Sequence[str]) -> Frame:
        frame = frame.copy()
        for piece in pieces:
            top, left = self.pixel(reading.configuration[piece])
            frame[top + 1 : top + 7, left + 1 : left + 7] = 200
        return frame

    def pixel(self, position: Position) -> tuple[int, int]:
        return round(position[0] * CELL), round(position[1] * CELL)


def scene_of(**pieces: Position) -> tuple[Field, Frame]:
    rng = np.random.default_rng(3)
    frame = rng.integers(190, 210, (5 * CELL, 6 * CELL, 3), dtype=np.uint8)
    reading = Reading(state=None, configuration=pieces)
    field = Field(reading)
    for piece in pieces.values():
        top, left = field.pixel(piece)
        frame[top + 1 : top + 7, left + 1 : left + 7] = rng.integers(0, 90, (6, 6, 3), dtype=np.uint8)
    return field, frame


def go(field: Field, frame: Frame, path: Sequence[Configuration], num_frames: int = 9) -> np.ndarray:
    return move(field, frame, field.start, path, num_frames)


def test_a_path_is_walked_at_constant_speed_over_all_its_segments() -> None:
    path = [{"a": (0.0, 0.0)}, {"a": (0.0, 3.0)}, {"a": (1.0, 3.0)}]
    assert length(path) == 4.0
    assert interpolate(path, 0.5) == {"a": (0.0, 2.0)}
    assert interpolate(path, 0.75) == {"a": (0.0, 3.0)}
    assert interpolate(path, 1.0) == {"a": (1.0, 3.0)}
    assert interpolate(path, -1.0) == {"a": (0.0, 0.0)}
    assert sample(path, 5)[-1] == {"a": (1.0, 3.0)}
    assert sample(path, 1) == [{"a": (0.0, 0.0)}]


def test_joined_paths_keep_a_piece_where_it_was_until_it_moves() -> None:
    path = completed([{"player": (0.0, 0.0)}, {"player": (0.0, 1.0), "box": (0.0, 2.0)}, {"box": (0.0, 3.0)}])
    assert path[0]["box"] == (0.0, 2.0)
    assert path[2] == {"player": (0.0, 1.0), "box": (0.0, 3.0)}


def test_an_empty_path_has_no_place() -> None:
    with pytest.raises(ValueError, match="at least one waypoint"):
        interpolate([], 0.5)
    assert length([]) == 0.0


def test_frame_0_is_the_start_frame_and_nothing_outside_the_sweep_changes() -> None:
    field, frame = scene_of(player=(1.0, 1.0))
    frames = go(field, frame, [{"player": (1.0, 1.0)}, {"player": (1.0, 4.0)}])
    assert np.array_equal(frames[0], frame)
    swept = np.zeros(frame.shape[:2], bool)
    swept[CELL : 2 * CELL, CELL : 5 * CELL] = True
    assert (frames[:, ~swept] == frame[~swept]).all()
    assert np.array_equal(frames[-1][9:15, 33:39], frame[9:15, 9:15])
    assert (frames[-1][9:15, 9:15] == 200).all()


def test_forty_chained_moves_leave_the_piece_as_it_was() -> None:
    field, frame = scene_of(player=(1.0, 1.0))
    piece = frame[9:15, 9:15].copy()
    rng = np.random.default_rng(5)
    place: Position = (1.0, 1.0)
    for _ in range(40):
        goal: Position = (float(rng.integers(0, 5)), float(rng.integers(0, 6)))
        field.start = Reading(state=None, configuration={"player": place})
        frame = go(field, frame, [{"player": place}, {"player": (place[0], goal[1])}, {"player": goal}])[-1]
        place = goal
    top, left = field.pixel(place)
    assert np.array_equal(frame[top + 1 : top + 7, left + 1 : left + 7], piece)


def test_a_push_carries_both_pieces_and_the_box_stays_on_its_own_pixels() -> None:
    field, frame = scene_of(player=(2.0, 0.0), box=(2.0, 1.0))
    path = [{"player": (2.0, 0.0), "box": (2.0, 1.0)}, {"player": (2.0, 3.0), "box": (2.0, 4.0)}]
    frames = go(field, frame, path, 7)
    assert np.array_equal(frames[-1][17:23, 33:39], frame[17:23, 9:15])
    assert np.array_equal(frames[-1][17:23, 25:31], frame[17:23, 1:7])
    assert np.array_equal(frames[3][17:23, 13:19], frame[17:23, 1:7])


def test_a_piece_that_leaves_the_picture_is_clipped() -> None:
    field, frame = scene_of(player=(0.0, 0.0))
    frames = go(field, frame, [{"player": (0.0, 0.0)}, {"player": (-0.5, -0.5)}], 2)
    assert np.array_equal(frames[-1][:3, :3], frame[4:7, 4:7])
    paste(frames[-1], Sprite(frame[:2, :2], np.ones((2, 2), bool), 0, 0), (-99, 4))


def test_a_path_that_goes_nowhere_repeats_the_frame() -> None:
    field, frame = scene_of(player=(1.0, 1.0))
    for path in ([], [{"player": (1.0, 1.0)}], [{"player": (1.0, 1.0)}, {"player": (1.0, 1.0)}]):
        assert (go(field, frame, path) == frame).all()
    there_and_back = [{"player": (1.0, 1.0)}, {"player": (1.0, 2.0)}, {"player": (1.0, 1.0)}]
    assert np.array_equal(go(field, frame, there_and_back)[-1], frame)
