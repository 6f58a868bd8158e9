"""Actions in a row from where the pieces are seen: one path for all of them, and where on it each action ends.

Pieces that look alike (ids with `#`) are numbered anew by every state, so they are told apart here by position.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from worlds.regions import assign
from worlds.world import Action, Configuration, Position, Reading, State, World

SAME_PLACE = 1e-6


@dataclass(frozen=True)
class Chain:
    """What a row of actions does.

    `states`: before the first and after each action. `path`: every piece in every waypoint, by the start
    reading's ids. `ends`: length of the path at which each action ends, in the world's units.
    """

    actions: tuple[Action, ...]
    states: tuple[State, ...]
    path: tuple[Mapping[str, Position], ...]
    ends: tuple[float, ...]

    @property
    def length(self) -> float:
        return self.ends[-1] if self.ends else 0.0

    def action_at(self, way: float) -> int:
        """Index of the action under way at this length of the path."""
        return next((i for i, end in enumerate(self.ends) if way < end - SAME_PLACE), len(self.ends) - 1)


def chain(world: World, reading: Reading, actions: Sequence[Action]) -> Chain:
    """Put actions in a row. Raises ValueError if one of them is not legal."""
    here: dict[str, Position] = dict(reading.configuration)
    state, path, ends, length = reading.state, [here], list[float](), 0.0
    states: list[State] = [state]
    for index, action in enumerate(actions):
        after = outcome(world, state, action)
        if after is None:
            raise ValueError(f"action {index + 1} of {len(actions)} is not legal: {action}")
        ours = matched(world.configuration(state), here)
        start = {piece: here[ours[piece]] for piece in ours} if index == 0 else None
        for waypoint in world.path(state, action, start):
            there = {**here, **{ours[piece]: position for piece, position in waypoint.items() if piece in ours}}
            if (step := apart(here, there)) > SAME_PLACE:
                length += step
                path.append(there)
                here = there
        state = after
        states.append(state)
        ends.append(length)
    return Chain(tuple(actions), tuple(states), tuple(path), tuple(ends))


def outcome(world: World, state: State, action: Action) -> State | None:
    """The state after an action; the same state if the action is done already; None if it is not legal."""
    if world.legal(state, action):
        return world.step(state, action)
    try:
        way = world.path(state, action)
    except ValueError:
        return None
    return state if all(apart(way[0], waypoint) <= SAME_PLACE for waypoint in way) else None


def followed(world: World, state: State, actions: Sequence[Action]) -> State:
    """The state after the actions; one that is done already (its piece still comes to rest) changes nothing.

    Raises ValueError if one of them is not legal.
    """
    for action in actions:
        after = outcome(world, state, action)
        if after is None:
            raise ValueError(f"{action} is not legal here")
        state = after
    return state


def remaining(world: World, reading: Reading, actions: Sequence[Action]) -> list[Action]:
    """Which of the actions are still to be done: a clip may go on from a kept prefix that did the first of them.

    The longest beginning of the row whose effects all stand, and whose rest is legal, is done; else the row
    counts from its beginning, up to the first illegal action. A piece that is under way to where the last action
    takes it still has to get there.
    """
    state = reading.state
    for index in range(len(actions), 0, -1):
        rest = list(actions[index:])
        if world.done(state, actions[:index]) and legal_count(world, state, rest) == len(rest):
            return rest or ([actions[-1]] if reading.moving else [])
    return list(actions[: legal_count(world, state, actions)])


def legal_count(world: World, state: State, actions: Sequence[Action]) -> int:
    """How many of the actions are legal in a row."""
    for count, action in enumerate(actions):
        state = outcome(world, state, action)
        if state is None:
            return count
    return len(actions)


def matched(names: Configuration, places: Configuration) -> dict[str, str]:
    """Each name of one configuration -> the id in the other; alike pieces by the least total distance."""
    pairs = {name: name for name in names if "#" not in name and name in places}
    families: dict[str, list[str]] = defaultdict(list)
    for name in names:
        if "#" in name:
            families[name.partition("#")[0]].append(name)
    for family, members in families.items():
        others = [name for name in places if name.partition("#")[0] == family and "#" in name]
        if not others:
            continue
        distances = [[math.dist(names[one], places[other]) for other in others] for one in members]
        pairs |= {members[row]: others[col] for row, col in assign(np.array(distances, np.float64))}
    return pairs


def apart(one: Configuration, other: Configuration) -> float:
    """The distance of the piece that is farthest from where the other configuration has it."""
    return max((math.dist(one[piece], other[piece]) for piece in one if piece in other), default=0.0)
