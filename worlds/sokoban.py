"""Sokoban: a player walks over free cells and pushes boxes straight ahead until every goal holds one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from orchestrator.records import FailureKind
from worlds.chain import followed
from worlds.grid import (
    BOX,
    PLAYER,
    Cell,
    GridState,
    Legend,
    at,
    configuration_of,
    corners,
    line,
    named,
    reachable,
    trespasses,
    walk,
)
from worlds.grid_drawing import draw, draw_frames
from worlds.grid_kinds import picture_of
from worlds.grid_looks import style_of
from worlds.grid_midway import resting
from worlds.grid_prompts import Asked, read_prompt
from worlds.grid_reading import assign
from worlds.grid_scene import GridScene
from worlds.grid_words import PLACE, Words, legend_of
from worlds.motion import sample as sample_path
from worlds.sokoban_errors import wrong_ways
from worlds.sokoban_levels import sample_level
from worlds.sokoban_solver import solve
from worlds.sokoban_words import wording_of
from worlds.world import Configuration, Difficulty, Frame, Frames, Look, Position, Scene

ARRIVED_CELLS = 0.02
WALLS_MIN = 0.1  # share of all cells
SENTENCE = re.compile(
    rf"\bpush\w*[^.]*?\bat\s+\(?{PLACE}\)?\s*,?\s*(?:straight\s+)?(?:on)?to\s+\(?{PLACE}|\bto\s+\(?{PLACE}",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Walk:
    """The player walks over free cells to a cell, round corners too."""

    row: int
    col: int

    @property
    def cell(self) -> Cell:
        return self.row, self.col


@dataclass(frozen=True)
class Push:
    """The player, behind a box, pushes it straight from one cell to another."""

    row: int
    col: int
    to_row: int
    to_col: int

    @property
    def box(self) -> Cell:
        return self.row, self.col

    @property
    def to(self) -> Cell:
        return self.to_row, self.to_col

    @property
    def ahead(self) -> Cell:
        """Its direction, one cell long; (0, 0) if it is no straight push."""
        cells = line(self.box, self.to)
        return (cells[0][0] - self.row, cells[0][1] - self.col) if cells else (0, 0)


Act: TypeAlias = Walk | Push


class Sokoban:
    """Implements `worlds.world.World`."""

    name = "sokoban"

    def sample(self, rng: np.random.Generator, difficulty: Difficulty) -> GridState:
        """A solvable level whose shortest plan has as many actions as the difficulty says."""
        return sample_level(rng, difficulty)

    def legal(self, state: GridState, action: Act) -> bool:
        """A walk over free cells; a push of a box that the player stands behind, over free cells."""
        if isinstance(action, Walk):
            return action.cell != state.player and action.cell in reachable(state.player, state.free)
        box = _pushed(state, action)
        return box is not None and state.player == _behind(box, action) and _clear(state, box, action)

    def step(self, state: GridState, action: Act) -> GridState:
        if not self.legal(state, action):
            raise ValueError(f"{action} is not possible with the player at {named(state.player)}")
        if isinstance(action, Walk):
            return _with(state, action.cell, state.boxes)
        box = _pushed(state, action)
        boxes = (*(other for other in state.boxes if other != box), action.to)
        return _with(state, _behind(action.to, action), boxes)

    def done(self, state: GridState, actions: Sequence[Act]) -> bool:
        """Whether the player is where its last walk ends, and what was pushed where its last push left it."""
        pushed: set[Cell] = set()
        for action in actions:
            if isinstance(action, Push):
                pushed.discard(action.box)
                pushed.add(action.to)
        last = actions[-1] if actions else None
        if isinstance(last, Walk) and state.player != last.cell:
            return False
        left_behind = isinstance(last, Push) and _pushed(state, last) is not None
        return pushed <= set(state.boxes) and not left_behind

    def goal(self, state: GridState) -> bool:
        return state.goals <= set(state.boxes)

    def oracle_plan(self, state: GridState) -> list[Act]:
        """The fewest walks and pushes. ValueError if there is no plan, or the level is too large to tell."""
        moves = solve(state)
        if moves is None:
            raise ValueError("this sokoban level has no solution")
        actions: list[Act] = []
        player = state.player
        for move in moves:
            if move.behind != player:
                actions.append(Walk(*move.behind))
            push = Push(*move.box, *move.to)
            actions.append(push)
            player = _behind(move.to, push)
        return actions

    def configuration(self, state: GridState) -> Configuration:
        return configuration_of(state)

    def path(self, state: GridState, action: Act, start: Configuration | None = None) -> list[Configuration]:
        """From where the pieces are seen to the action's end; empty if they are there already.

        A player that is not behind its box yet walks there first. ValueError where no way leads there.
        """
        seen = {**configuration_of(state), **(start or {})}
        if isinstance(action, Walk):
            if _near(seen[PLAYER], action.cell):
                return []
            return [{PLAYER: point} for point in self._walk(state, seen[PLAYER], action.cell)]
        return self._push(state, action, seen)

    def _walk(self, state: GridState, here: Position, cell: Cell) -> list[Position]:
        way = walk(here, cell, state.free)
        if way is None:
            raise ValueError(f"no way from {named(state.player)} to {named(cell)}")
        return way

    def _push(self, state: GridState, action: Push, seen: dict[str, Position]) -> list[Configuration]:
        piece = _piece(state, action, seen)
        down, right = action.ahead
        if piece is None:
            raise ValueError(f"no box between {named(action.box)} and {named(action.to)}")
        box, end = seen[piece], _behind(action.to, action)
        if _near(box, action.to):
            return []
        cell = state.boxes[int(piece.split("#")[1]) - 1]
        if cell != action.to and not _clear(state, cell, action):  # at its end already, it only comes to rest
            raise ValueError(f"the way to {named(action.to)} is not free")
        behind = (box[0] - down, box[1] - right)
        player = seen[PLAYER]
        approach = [player]
        if abs(player[0] - behind[0]) + abs(player[1] - behind[1]) > 0.35:
            cell = (round(behind[0] - 0.49 * down), round(behind[1] - 0.49 * right))
            approach = [*self._walk(state, player, cell), behind]
        points: list[Configuration] = [{PLAYER: point, piece: box} for point in corners(approach)]
        if points[-1][PLAYER] != behind and len(approach) == 1:
            points.append({PLAYER: behind, piece: box})
        return [*points, {PLAYER: at(end), piece: at(action.to)}]

    def alternatives(self, state: GridState, action: Act) -> list[tuple[FailureKind, list[Configuration]]]:
        """Other ways, too far, the wrong thing, and through walls and boxes."""
        if isinstance(action, Walk):
            return wrong_ways(state, action.cell, None)
        return wrong_ways(state, action.to, action.box)

    def forbidden(self, state: GridState, configuration: Configuration) -> bool:
        return trespasses(state, configuration)

    def render(self, state: GridState, look: Look, configuration: Configuration | None = None) -> Frame:
        return draw(state, look, configuration)

    def animate(self, state: GridState, action: Act, look: Look, num_frames: int) -> Frames:
        if not self.legal(state, action):
            raise ValueError(f"{action} is not possible with the player at {named(state.player)}")
        way = [configuration_of(state), *self.path(state, action)]
        rest = configuration_of(state)
        configurations = [{**rest, **configuration} for configuration in sample_path(way, num_frames)]
        return draw_frames(state, look, configurations)

    def prompt(self, state: GridState, wording: int, look: Look | None = None) -> str:
        rng = np.random.default_rng([wording, 15485863])
        return wording_of(Words(style_of(look, boxes=True) if look is not None else None, rng), rng)

    def understand(self, frame: Frame, prompt: str) -> Scene | None:
        """Read a first picture, ours or foreign; one with a piece under way is read with it set into a cell."""
        asked = read_prompt(prompt)
        if not (asked.pushes or asked.of("box")):
            return None
        scene = self._scene(frame, asked)
        if scene is None and (rested := resting(frame, prompt)) is not None:
            scene = self._scene(rested, asked)
            scene = scene if scene is not None and scene.read(frame) is not None else None
        return scene

    def _scene(self, frame: Frame, asked: Asked) -> GridScene | None:
        picture = picture_of(frame)
        roles = assign(picture, asked, boxes=True) if picture is not None else None
        if roles is None or len(roles.state.blocked) < WALLS_MIN * roles.state.rows * roles.state.cols:
            return None
        wall = roles.walls[0] if roles.walls else None
        legend = legend_of(asked, roles.player, roles.goal, roles.floors[0], wall, roles.box)
        return GridScene(self, frame, roles, legend)

    def describe(self, actions: Sequence[Act], legend: Legend) -> str:
        sentences: list[str] = []
        for index, action in enumerate(actions):
            who = f"{'Then the' if index else 'The'} {legend.player}"
            if isinstance(action, Walk):
                way = f"along the {legend.floor}, without pushing the {legend.box},"
                sentences.append(f"{who} walks {way} to {named(action.cell)}.")
            else:
                what = f"the {legend.box} at {named(action.box)}"
                sentences.append(f"{who} pushes {what} to {named(action.to)}.")
        return " ".join(sentences)

    def parse(self, text: str) -> list[Act]:
        """Every "pushes … at row R, column C to row R, column C" and "to row R, column C", in order."""
        actions: list[Act] = []
        for match in SENTENCE.finditer(text):
            numbers = [int(group) - 1 for group in match.groups() if group is not None]
            if min(numbers) < 0:
                continue
            actions.append(Push(*numbers) if len(numbers) == 4 else Walk(*numbers))
        return actions

    def target(self, state: GridState, actions: Sequence[Act], legend: Legend) -> str:
        state = followed(self, state, actions)
        boxes = ", ".join(f"a {legend.box} at {named(cell)}" for cell in state.boxes)
        return f"The {legend.player} is at {named(state.player)}, {boxes}."

    def answer(self, state: GridState) -> tuple[str, str]:
        """`"walk 3,2; push 2,2 to 2,4"`, counted from 1."""
        return "actions", "; ".join(_brief(action) for action in self.oracle_plan(state))

    def score(self, state: GridState, given: str) -> float:
        """1.0 if the actions are legal one after the other and every goal holds a box."""
        parts = [part for part in given.split(";") if part.strip()]
        for part in parts:
            numbers = [int(number) - 1 for number in re.findall(r"\d+", part)]
            if len(numbers) not in (2, 4):
                return 0.0
            action = Push(*numbers) if len(numbers) == 4 else Walk(*numbers)
            if not self.legal(state, action):
                return 0.0
            state = self.step(state, action)
        return 1.0 if parts and self.goal(state) else 0.0


def _brief(action: Act) -> str:
    if isinstance(action, Walk):
        return f"walk {action.row + 1},{action.col + 1}"
    return f"push {action.row + 1},{action.col + 1} to {action.to_row + 1},{action.to_col + 1}"


def _with(state: GridState, player: Cell, boxes: tuple[Cell, ...]) -> GridState:
    return GridState(state.rows, state.cols, state.blocked, state.goals, player, boxes)


def _behind(box: Cell, push: Push) -> Cell:
    return box[0] - push.ahead[0], box[1] - push.ahead[1]


def _pushed(state: GridState, push: Push) -> Cell | None:
    """The box that a push means: at its start, or on its way where an earlier clip left it."""
    way = [push.box, *line(push.box, push.to)[:-1]]
    return next((cell for cell in way if cell in state.boxes), None)


def _clear(state: GridState, box: Cell, push: Push) -> bool:
    cells = line(box, push.to)
    return bool(cells) and all(state.free(cell) for cell in cells)


def _piece(state: GridState, push: Push, seen: dict[str, Position]) -> str | None:
    """The piece that a push moves: the box on its way, nearest to its start."""
    down, right = push.ahead
    length = abs(push.to_row - push.row) + abs(push.to_col - push.col)
    found: list[tuple[float, str]] = []
    for number in range(1, len(state.boxes) + 1):
        piece = f"{BOX}#{number}"
        place = seen[piece]
        along = (place[0] - push.row) * down + (place[1] - push.col) * right
        aside = abs((place[0] - push.row) * right) + abs((place[1] - push.col) * down)
        if aside < 0.3 and -0.3 < along < length + 0.3:
            found.append((along, piece))
    return min(found)[1] if found else None


def _near(place: Position, cell: Cell) -> bool:
    return max(abs(place[0] - cell[0]), abs(place[1] - cell[1])) < ARRIVED_CELLS


WORLD = Sokoban()
