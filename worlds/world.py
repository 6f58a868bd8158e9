"""What a world is: rules, renderer of every intermediate state, reader from pixels, oracle plan.

A *configuration* gives every movable piece a continuous position, so that a moving piece has one too:
`{"player": (row, col)}` in cells for grid worlds, `{"disc-2": (x, y)}` in a world's own units elsewhere.
A resting state is the configuration whose positions are whole; an action is a polyline between two of them.
Movers, judges and readers all speak in configurations, so they are written once for all worlds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from orchestrator.records import FailureKind

Frame: TypeAlias = npt.NDArray[np.uint8]  # (H, W, 3) uint8 RGB
Frames: TypeAlias = npt.NDArray[np.uint8]  # (T, H, W, 3) uint8 RGB
Mask: TypeAlias = npt.NDArray[np.bool_]  # (H, W)
Position: TypeAlias = tuple[float, float]  # (row, col) or (y, x), in the world's units
Configuration: TypeAlias = Mapping[str, Position]  # piece id -> position
Difficulty = Literal["easy", "medium", "hard"]

State: TypeAlias = Any  # each world's own frozen, comparable dataclass
Action: TypeAlias = Any  # each world's own frozen, comparable dataclass


@dataclass(frozen=True)
class Look:
    """How a state is drawn; never changes state, plan or answer. Drawn from its own seed stream."""

    seed: int = 0
    side_px: int = 256  # the longer side of the picture


@dataclass(frozen=True)
class Reading:
    """What a reader saw in one frame.

    `state` is the resting state (a moving piece stands in the cell that it left). `configuration` has every
    piece where it is seen. `moving` maps a piece that is under way to its fraction of the way, 0 … 1.
    `unreadable` names what could not be read; then `state` may be the last one known and `confidence` is low.
    """

    state: State
    configuration: Configuration
    moving: Mapping[str, float] = field(default_factory=dict[str, float])
    confidence: float = 1.0  # 0 … 1
    unreadable: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sprite:
    """A piece cut out of a frame: its own pixels, moved without being resampled.

    `pixels`: (h, w, 3) uint8; `mask`: (h, w), True where the piece is; `top`, `left`: where it stands, px.
    """

    pixels: Frame
    mask: Mask
    top: int
    left: int


class Scene(Protocol):
    """One picture of a world, understood: made once from the reference, then read frame by frame.

    It holds what does not change: pitch, layout, covered goals, colours, legend.
    """

    @property
    def world(self) -> World: ...

    @property
    def legend(self) -> Any:
        """Words for the pieces and places of this picture, from its prompt, for `World.describe`."""
        ...

    @property
    def start(self) -> Reading:
        """The reference's own reading."""
        ...

    def read(self, frame: Frame) -> Reading | None:
        """Read a frame of the same size; None if it no longer shows this scene (collapse).

        Target: at most 5 ms at 512 px.
        """
        ...

    def sprites(self, frame: Frame, reading: Reading, pieces: Sequence[str]) -> Mapping[str, Sprite]:
        """Cut these pieces out of the frame."""
        ...

    def without(self, frame: Frame, reading: Reading, pieces: Sequence[str]) -> Frame:
        """The frame with these pieces gone: what they uncover painted as floor, all else bit for bit."""
        ...

    def pixel(self, position: Position) -> tuple[int, int]:
        """Where a piece's sprite stands (top, left offset relative to position (0, 0)), rounded to pixels.

        A sprite cut at configuration p moves to q by `pixel(q) − pixel(p)`.
        """
        ...


class World(Protocol):
    """One file, one world. All methods are pure."""

    name: str

    def sample(self, rng: np.random.Generator, difficulty: Difficulty) -> State: ...

    def legal(self, state: State, action: Action) -> bool: ...

    def step(self, state: State, action: Action) -> State:
        """The state after a legal action; ValueError if it is not legal."""
        ...

    def done(self, state: State, actions: Sequence[Action]) -> bool:
        """Whether a row of actions looks done in a state: each piece is where the last of them put it."""
        ...

    def goal(self, state: State) -> bool: ...

    def oracle_plan(self, state: State) -> list[Action]:
        """A shortest list of actions to the goal; empty at the goal; ValueError where none exists."""
        ...

    def configuration(self, state: State) -> Configuration:
        """Where every piece rests."""
        ...

    def path(self, state: State, action: Action, start: Configuration | None = None) -> list[Configuration]:
        """Waypoints of the pieces that the action moves, straight lines between them, first to last.

        `start` is where the pieces are seen now, if one is under way: then the path begins there, and the
        same end is reached (actions name absolute targets). Only moved pieces appear.
        """
        ...

    def alternatives(self, state: State, action: Action) -> list[tuple[FailureKind, list[Configuration]]]:
        """Wrong ways to do the action, as a generator errs: wrong direction, wrong target, wrong action,
        illegal move (through a wall, onto a trap, a disc on a smaller one). Each a path like `path`."""
        ...

    def forbidden(self, state: State, configuration: Configuration) -> bool:
        """Whether some piece is where it must never be (wall, trap, on another piece), half-way counts."""
        ...

    def render(self, state: State, look: Look, configuration: Configuration | None = None) -> Frame:
        """Draw the state; with a configuration, the pieces where that says."""
        ...

    def animate(self, state: State, action: Action, look: Look, num_frames: int) -> Frames:
        """(num_frames, H, W, 3): the first frame is `render(state)`, the last `render(step(state, action))`."""
        ...

    def prompt(self, state: State, wording: int, look: Look | None = None) -> str:
        """The task in words; `wording` is a seed that changes the words, never the meaning.

        With the look that the picture was drawn in, the words name its colours and shapes.
        """
        ...

    def understand(self, frame: Frame, prompt: str) -> Scene | None:
        """Read a first picture, ours or foreign, with its task prompt; None = not this world."""
        ...

    def describe(self, actions: Sequence[Action], legend: Any) -> str:
        """Sentences with absolute targets; `parse` is its inverse for every k ≥ 1."""
        ...

    def parse(self, text: str) -> list[Action]:
        """The actions that a text asks for, in order; empty = not understood."""
        ...

    def target(self, state: State, actions: Sequence[Action], legend: Any) -> str:
        """One sentence: what the picture shows after these actions."""
        ...

    def answer(self, state: State) -> tuple[str, str]:
        """Typed answer of the task: (type, value as text); type in integer, number, string, option,
        actions, state."""
        ...

    def score(self, state: State, given: str) -> float:
        """1.0 for a right answer to the state's task, 0.0 for a distractor."""
        ...
