"""A player that runs straight over free cells to a goal: what maze and trapfield share."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np

from orchestrator.records import FailureKind
from worlds.grid import (
    DIRECTIONS,
    PLAYER,
    GridState,
    Legend,
    Run,
    at,
    configuration_of,
    corners,
    fewest_runs,
    line,
    named,
    overlaps,
    runs,
    trespasses,
    walk,
)
from worlds.grid_drawing import draw, draw_frames
from worlds.grid_kinds import picture_of
from worlds.grid_looks import style_of
from worlds.grid_prompts import Asked, read_prompt
from worlds.grid_reading import Roles, assign
from worlds.grid_scene import GridScene
from worlds.grid_words import Words, legend_of, targets
from worlds.motion import sample as sample_path
from worlds.world import Configuration, Difficulty, Frame, Frames, Look, Position, Scene

ARRIVED_CELLS = 0.02

Sampler = Callable[[np.random.Generator, Difficulty], GridState]
Wording = Callable[[Words, np.random.Generator], str]


class RunWorld:
    """Implements `worlds.world.World`. `mine(asked, roles)`: whether an understood picture is this world's."""

    def __init__(
        self, name: str, *, sampler: Sampler, wording: Wording, mine: Callable[[Asked, Roles], bool], traps: bool
    ) -> None:
        self.name = name
        self._sampler = sampler
        self._wording = wording
        self._mine = mine
        self._traps = traps

    def sample(self, rng: np.random.Generator, difficulty: Difficulty) -> GridState:
        """A solvable state that is not solved yet."""
        return self._sampler(rng, difficulty)

    def legal(self, state: GridState, action: Run) -> bool:
        return action.cell in runs(state.player, state.free)

    def step(self, state: GridState, action: Run) -> GridState:
        if not self.legal(state, action):
            raise ValueError(f"no straight free run from {named(state.player)} to {named(action.cell)}")
        return GridState(state.rows, state.cols, state.blocked, state.goals, action.cell)

    def done(self, state: GridState, actions: Sequence[Run]) -> bool:
        """Whether the player is where the last run ends."""
        return not actions or state.player == actions[-1].cell

    def goal(self, state: GridState) -> bool:
        return state.player in state.goals

    def oracle_plan(self, state: GridState) -> list[Run]:
        """The fewest runs, and among those the fewest cells."""
        ends = fewest_runs(state.player, state.goals, state.free)
        if ends is None:
            raise ValueError(f"the goal cannot be reached from {named(state.player)}")
        return [Run(*cell) for cell in ends]

    def configuration(self, state: GridState) -> Configuration:
        return configuration_of(state)

    def path(self, state: GridState, action: Run, start: Configuration | None = None) -> list[Configuration]:
        """From where the player is seen to the run's end, over free cells; empty if it is there already.

        Raises ValueError where no way leads there.
        """
        here = start.get(PLAYER, at(state.player)) if start else at(state.player)
        if max(abs(here[0] - action.row), abs(here[1] - action.col)) < ARRIVED_CELLS:
            return []
        way = walk(here, action.cell, state.free)
        if way is None:
            raise ValueError(f"no way from {named(state.player)} to {named(action.cell)}")
        return [{PLAYER: point} for point in way]

    def alternatives(self, state: GridState, action: Run) -> list[tuple[FailureKind, list[Configuration]]]:
        """Other directions, too far, and over what is forbidden."""
        cells = line(state.player, action.cell)
        if not cells:
            return []
        ahead = (cells[0][0] - state.player[0], cells[0][1] - state.player[1])
        wrong: list[tuple[FailureKind, list[Position]]] = []
        for step in DIRECTIONS.values():
            reach = [cell for cell in _ray(state, step, len(cells)) if state.free(cell)]
            if step != ahead and reach:
                wrong.append(("wrong_direction", [at(state.player), at(reach[-1])]))
            neighbour = (state.player[0] + step[0], state.player[1] + step[1])
            if neighbour in state.blocked:
                wrong.append(("illegal_move", [at(state.player), at(neighbour)]))
        beyond = (action.row + ahead[0], action.col + ahead[1])
        if state.free(beyond):
            wrong.append(("wrong_target", [at(state.player), at(beyond)]))
        elif beyond in state.blocked:
            wrong.append(("illegal_move", [at(state.player), at(beyond)]))
        for way in self._shortcuts(state):
            wrong.append(("illegal_move", way))
        return [(kind, [{PLAYER: point} for point in corners(way)]) for kind, way in wrong]

    def _shortcuts(self, state: GridState) -> list[list[Position]]:
        """Straight to the goal, whatever lies between."""
        ways: list[list[Position]] = []
        for goal in sorted(state.goals):
            steps = [
                (
                    state.player[0] + (goal[0] - state.player[0]) * share,
                    state.player[1] + (goal[1] - state.player[1]) * share,
                )
                for share in np.linspace(0, 1, 33).tolist()
            ]
            if any(overlaps(place, cell) for place in steps for cell in state.blocked):
                ways.append([at(state.player), at(goal)])
        return ways

    def forbidden(self, state: GridState, configuration: Configuration) -> bool:
        return trespasses(state, configuration)

    def render(self, state: GridState, look: Look, configuration: Configuration | None = None) -> Frame:
        return draw(state, look, configuration, traps=self._traps)

    def animate(self, state: GridState, action: Run, look: Look, num_frames: int) -> Frames:
        way = [configuration_of(state), {PLAYER: at(self.step(state, action).player)}]
        return draw_frames(state, look, sample_path(way, num_frames), traps=self._traps)

    def prompt(self, state: GridState, wording: int, look: Look | None = None) -> str:
        rng = np.random.default_rng([wording, 15485863])
        return self._wording(Words(style_of(look) if look is not None else None, rng), rng)

    def understand(self, frame: Frame, prompt: str) -> Scene | None:
        asked = read_prompt(prompt)
        if asked.pushes or asked.of("box"):
            return None
        picture = picture_of(frame)
        roles = assign(picture, asked, boxes=False) if picture is not None else None
        if roles is None or not self._mine(asked, roles):
            return None
        return self._scene(frame, asked, roles)

    def _scene(self, frame: Frame, asked: Asked, roles: Roles) -> Scene:
        wall = roles.walls[0] if roles.walls else None
        return GridScene(
            self, frame, roles, legend_of(asked, roles.player, roles.goal, roles.floors[0], wall, None)
        )

    def describe(self, actions: Sequence[Run], legend: Legend) -> str:
        way = f"{legend.player} slides along the {legend.floor}"
        sentences = [f"{way} to {named(run.cell)}." for run in actions]
        return " ".join(f"{'Then the' if index else 'The'} {told}" for index, told in enumerate(sentences))

    def parse(self, text: str) -> list[Run]:
        """Every "to row R, column C", in order."""
        return [Run(*cell) for cell in targets(text)]

    def target(self, state: GridState, actions: Sequence[Run], legend: Legend) -> str:
        end = actions[-1].cell if actions else state.player
        place = f", on the {legend.goal}" if end in state.goals else ""
        return f"The {legend.player} is at {named(end)}{place}."

    def answer(self, state: GridState) -> tuple[str, str]:
        """The ends of the runs, counted from 1: `"5,4; 5,6"`."""
        return "actions", "; ".join(f"{run.row + 1},{run.col + 1}" for run in self.oracle_plan(state))

    def score(self, state: GridState, given: str) -> float:
        """1.0 if the runs are legal one after the other and end on the goal."""
        pairs = re.findall(r"(\d+)\s*,\s*(\d+)", given)
        for row, col in pairs:
            run = Run(int(row) - 1, int(col) - 1)
            if not self.legal(state, run):
                return 0.0
            state = self.step(state, run)
        return 1.0 if pairs and self.goal(state) else 0.0


def _ray(state: GridState, step: tuple[int, int], count: int) -> list[tuple[int, int]]:
    """Up to `count` cells from the player on, as far as they are free."""
    cells: list[tuple[int, int]] = []
    cell = (state.player[0] + step[0], state.player[1] + step[1])
    while state.free(cell) and len(cells) < count:
        cells.append(cell)
        cell = (cell[0] + step[0], cell[1] + step[1])
    return cells
