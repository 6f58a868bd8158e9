"""The tower of Hanoi: discs on three pegs; an action carries one disc to another peg.

Rules: `hanoi_rules`; pictures: `hanoi_drawing`, `hanoi_reading`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

import numpy as np

from orchestrator.records import FailureKind
from worlds import hanoi_drawing, hanoi_reading, hanoi_words
from worlds.chain import followed
from worlds.hanoi_rules import (
    PEGS,
    Move,
    Towers,
    half_width,
    lift,
    moved,
    moves,
    number,
    piece,
    place,
    shortest,
)
from worlds.motion import sample as sample_path
from worlds.polyline import rest_of, without_repeats
from worlds.world import Configuration, Difficulty, Frame, Frames, Look, Position, Scene

# discs, least and most moves by difficulty
SIZES: dict[Difficulty, tuple[tuple[int, ...], int, int]] = {
    "easy": ((2, 3), 1, 3),
    "medium": ((3,), 4, 7),
    "hard": ((4,), 8, 15),
}
NEAR = 0.3  # units: a disc this near to a way is on it
TOUCHING = 0.15  # units: reading errors that are forgiven


class Hanoi:
    """Implements `worlds.world.World`."""

    name = "hanoi"

    def sample(self, rng: np.random.Generator, difficulty: Difficulty) -> Towers:
        """Discs laid legally at random, as many moves from the goal as the difficulty says."""
        counts, least, most = SIZES[difficulty]
        count = counts[int(rng.integers(len(counts)))]
        while True:
            where = [int(peg) for peg in rng.integers(0, 3, count)]
            stacks = [tuple(disc for disc in range(count, 0, -1) if where[disc - 1] == peg) for peg in range(3)]
            towers = Towers((stacks[0], stacks[1], stacks[2]), int(rng.integers(3)))
            if least <= len(shortest(towers)) <= most:
                return towers

    def legal(self, state: Towers, action: Move) -> bool:
        """A topmost disc onto an empty peg or a larger disc; also a repeated move, already done."""
        if not 0 <= action.target <= 2 or not 1 <= action.disc <= state.count:
            return False
        peg = state.peg_of(action.disc)
        return peg == action.target or Move(action.disc, peg, action.target) in moves(state)

    def step(self, state: Towers, action: Move) -> Towers:
        """The towers after a move; ValueError if it is not legal."""
        if not self.legal(state, action):
            raise ValueError(f"disc {action.disc} cannot go to peg {PEGS[action.target]}")
        return state if state.peg_of(action.disc) == action.target else moved(state, action.disc, action.target)

    def done(self, state: Towers, actions: Sequence[Move]) -> bool:
        """Whether every disc is on the peg of its last move."""
        pegs = {disc: peg for peg, stack in enumerate(state.pegs) for disc in stack}
        last = {action.disc: action.target for action in actions}
        return all(pegs.get(disc) == target for disc, target in last.items())

    def goal(self, state: Towers) -> bool:
        """Whether all discs are on the goal peg, in order."""
        return state.pegs[state.goal] == tuple(range(state.count, 0, -1))

    def oracle_plan(self, state: Towers) -> list[Move]:
        """A shortest plan; ValueError where none exists."""
        return list(shortest(state))

    def configuration(self, state: Towers) -> Configuration:
        """(−level, PEG_UNITS × peg) per disc."""
        cells = {
            disc: place(peg, level) for peg, stack in enumerate(state.pegs) for level, disc in enumerate(stack)
        }
        return {piece(disc): cells[disc] for disc in sorted(cells)}

    def path(self, state: Towers, action: Move, start: Configuration | None = None) -> list[Configuration]:
        """Up, across, down. A disc seen on this way goes on from there; else it is lifted first."""
        name = piece(action.disc)
        rest = self.configuration(state)[name]
        seen = (start or {}).get(name, rest)
        points = _way(rest, self._target(state, action), state.count)
        left = rest_of(points, seen, NEAR) or _way(seen, self._target(state, action), state.count)
        settling = {
            other: (where, home)
            for other, home in self.configuration(state).items()
            if other != name and (where := (start or {}).get(other, home)) != home
        }
        if not settling:
            return [{name: point} for point in left]
        before = {other: where for other, (where, _) in settling.items()}
        after = {other: home for other, (_, home) in settling.items()}
        return [{name: left[0], **before}, *({name: point, **after} for point in [left[0], *left[1:]])]

    def _target(self, state: Towers, action: Move) -> Position:
        stack = [disc for disc in state.pegs[action.target] if disc != action.disc]
        on_it = action.disc in state.pegs[action.target]
        return self.configuration(state)[piece(action.disc)] if on_it else place(action.target, len(stack))

    def alternatives(self, state: Towers, action: Move) -> list[tuple[FailureKind, list[Configuration]]]:
        """Another disc moves; this one goes to another peg, or a disc is laid on a smaller one."""
        found: list[tuple[FailureKind, list[Configuration]]] = []
        legal = moves(state)
        source = state.peg_of(action.disc)
        for move in legal:
            if move.disc != action.disc:
                found.append(("wrong_action", self.path(state, move)))
            elif move.target != action.target:
                turned = (move.target - source) * (action.target - source) < 0
                found.append(("wrong_direction" if turned else "wrong_target", self.path(state, move)))
        tops = [stack[-1] for stack in state.pegs if stack]
        beneath = [stack[-2] for stack in state.pegs if len(stack) > 1]
        for discs in (tops, beneath):  # onto a smaller disc; where none is, out from under one
            if not any(kind == "illegal_move" for kind, _ in found):
                for disc, target in itertools.product(sorted(discs), range(3)):
                    move = Move(disc, state.peg_of(disc), target)
                    if target != move.source and move not in legal:
                        found.append(("illegal_move", self.path(state, move)))
        return found

    def forbidden(self, state: Towers, configuration: Configuration) -> bool:
        """Whether a disc lies on a smaller one, or two are at one place; half-way counts."""
        here = {**self.configuration(state), **configuration}
        for one, (y, x) in here.items():
            for other, (down, right) in here.items():
                if number(one) <= number(other):
                    continue
                aside = abs(x - right)
                reach = half_width(number(one), state.count) + half_width(number(other), state.count)
                through = aside < reach - TOUCHING and abs(y - down) < 1 - TOUCHING
                upon = aside < TOUCHING and 0 < down - y <= 1 + TOUCHING
                if through or upon:
                    return True
        return False

    def render(self, state: Towers, look: Look, configuration: Configuration | None = None) -> Frame:
        """(H, W, 3); the longer side is `look.side_px`."""
        return hanoi_drawing.draw(state.count, {**self.configuration(state), **(configuration or {})}, look)

    def animate(self, state: Towers, action: Move, look: Look, num_frames: int) -> Frames:
        """The disc moves at constant speed."""
        path = self.path(state, action)
        return np.stack([self.render(state, look, at) for at in sample_path(path, num_frames)])

    def prompt(self, state: Towers, wording: int, look: Look | None = None) -> str:
        """The task in one of several wordings."""
        return hanoi_words.task(state, len(shortest(state)), wording)

    def understand(self, frame: Frame, prompt: str) -> Scene | None:
        """Read a picture of towers; a disc may be in the air."""
        return hanoi_reading.understand(self, frame, prompt)

    def describe(self, actions: Sequence[Move], legend: object) -> str:
        """One sentence per move."""
        return " ".join(hanoi_words.sentence(move, index == 0) for index, move in enumerate(actions))

    def parse(self, text: str) -> list[Move]:
        """The moves that sentences of `describe` ask for; anything else is read over."""
        return hanoi_words.moves_in(text)

    def target(self, state: Towers, actions: Sequence[Move], legend: object) -> str:
        """Which discs each peg holds afterwards."""
        state = followed(self, state, actions)
        stacks = [
            f"peg {PEGS[peg]} holds {_listed(stack)}" if stack else f"peg {PEGS[peg]} is empty"
            for peg, stack in enumerate(state.pegs)
        ]
        return f"{stacks[0][0].upper()}{stacks[0][1:]}, {stacks[1]} and {stacks[2]}."

    def answer(self, state: Towers) -> tuple[str, str]:
        """The fewest moves."""
        return "integer", str(len(shortest(state)))

    def score(self, state: Towers, given: str) -> float:
        """1.0 for the right number."""
        return float(re.fullmatch(r"\s*\d+\s*", given) is not None and int(given) == len(shortest(state)))


def _way(start: Position, target: Position, count: int) -> list[Position]:
    """Up, across, down; nothing where the disc is there already, straight down where it hangs above."""
    if abs(start[1] - target[1]) < 1e-6:
        return without_repeats([start, target])
    high = min(lift(count), start[0])
    return without_repeats([start, (high, start[1]), (high, target[1]), target])


def _listed(stack: Sequence[int]) -> str:
    words = [str(disc) for disc in stack]
    joined = words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]
    return f"disc {joined}" if len(words) == 1 else f"discs {joined} from bottom to top"


WORLD = Hanoi()
