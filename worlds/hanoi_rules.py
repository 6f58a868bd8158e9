"""The rules of the tower of Hanoi: discs on three pegs, never a larger one on a smaller. Knows no pictures.

A disc's position is (y, x): y = −level, 0 on the base; x = PEG_UNITS × peg.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import lru_cache

from worlds.world import Position

PEG_UNITS = 4.0  # units from peg to peg; a unit is about a disc's thickness
PEGS = "ABC"
Stack = tuple[int, ...]


@dataclass(frozen=True)
class Towers:
    """Discs on each peg, the lowest first; disc 1 is the smallest. All belong on peg `goal` (0, 1, 2)."""

    pegs: tuple[Stack, Stack, Stack]
    goal: int

    @property
    def count(self) -> int:
        """How many discs there are."""
        return sum(len(stack) for stack in self.pegs)

    def peg_of(self, disc: int) -> int:
        """The peg of a disc; ValueError if there is no such disc."""
        for peg, stack in enumerate(self.pegs):
            if disc in stack:
                return peg
        raise ValueError(f"there is no disc {disc}")


@dataclass(frozen=True)
class Move:
    """A disc goes from one peg to another (0, 1, 2). The target decides."""

    disc: int
    source: int
    target: int


def piece(disc: int) -> str:
    """The piece id of a disc."""
    return f"disc-{disc}"


def number(name: str) -> int:
    """The disc of a piece id."""
    return int(name.split("-")[1])


def half_width(disc: int, count: int) -> float:
    """Half a disc's width in units."""
    return 0.85 + 1.0 * (disc - 1) / max(1, count - 1)


def lift(count: int) -> float:
    """The height, as y, at which discs pass over the pegs."""
    return -(count + 1.0)


def place(peg: int, level: int) -> Position:
    """Where a disc rests."""
    return -float(level), PEG_UNITS * peg


def moves(towers: Towers) -> list[Move]:
    """Every legal move."""
    tops = [stack[-1] if stack else None for stack in towers.pegs]
    found: list[Move] = []
    for source, disc in enumerate(tops):
        for target, under in enumerate(tops):
            if disc is not None and source != target and (under is None or under > disc):
                found.append(Move(disc, source, target))
    return found


def moved(towers: Towers, disc: int, target: int) -> Towers:
    """The towers with the disc on top of another peg; the rule of sizes is not checked."""
    pegs = [tuple(d for d in stack if d != disc) for stack in towers.pegs]
    pegs[target] = (*pegs[target], disc)
    return Towers((pegs[0], pegs[1], pegs[2]), towers.goal)


@lru_cache(maxsize=512)
def shortest(towers: Towers) -> tuple[Move, ...]:
    """A shortest plan, by breadth; ValueError if a larger disc lies on a smaller one and cannot be freed."""
    count = towers.count
    came: dict[Towers, tuple[Towers, Move] | None] = {towers: None}
    queue = deque([towers])
    while queue:
        here = queue.popleft()
        if here.pegs[here.goal] == tuple(range(count, 0, -1)):
            plan: list[Move] = []
            step = came[here]
            while step is not None:
                plan.append(step[1])
                step = came[step[0]]
            return tuple(reversed(plan))
        for move in moves(here):
            there = moved(here, move.disc, move.target)
            if there not in came:
                came[there] = (here, move)
                queue.append(there)
    raise ValueError("these towers cannot be brought to their peg")
