"""What a simulated render will show, decided before a pixel is moved: how it goes, and exactly where it fails.

For the generator and for tests; planners and verifiers never see it.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from generators.profile import Profile
from orchestrator.records import FailureKind
from worlds.chain import SAME_PLACE, Chain, apart, chain, matched
from worlds.judging import nearest
from worlds.motion import interpolate, sample
from worlds.world import Action, Configuration, Position, Reading, State, World

MOVES: tuple[FailureKind, ...] = ("wrong_direction", "wrong_target", "wrong_action", "illegal_move")
TURN_BACK = 0.6  # of a unit: as far at least a piece goes back that turns round
OFF = 0.02  # of a unit: farther from the plan is off it


@dataclass(frozen=True)
class Script:
    """One clip to come, of `num_frames` frames.

    `path` is walked in the first `moving_frames` frames at constant speed, then all rests. `failure` is what goes
    wrong, `first_bad_frame` the first frame that is not as the prompt wanted; a clip that only stops early is
    `incomplete` and has none. `collapse_from`: the frame from which the scene melts. `drift_levels`: colour, by
    the last frame. `reimagined`: frame 0 is not the start frame.
    """

    num_frames: int
    moving_frames: int
    path: tuple[Mapping[str, Position], ...]
    failure: FailureKind | None = None
    first_bad_frame: int | None = None
    collapse_from: int | None = None
    drift_levels: float = 0.0
    reimagined: bool = False


def write_script(
    world: World,
    reading: Reading,
    actions: Sequence[Action],
    profile: Profile,
    *,
    seed: int,
    num_frames: int,
    corrected: bool = False,
    instructed: bool = True,
) -> Script:
    """Decide how a shot of these actions goes. The same arguments give the same script.

    `corrected`: the prompt carries a correction; `instructed`: it names the actions, it is no task prompt.
    """
    number = _number(world, reading.state, actions)
    rng = np.random.default_rng([seed, number])
    plan = chain(world, reading, actions)
    moving = max(2, min(num_frames, round(profile.arrives * num_frames)))
    looks = _looks(rng, profile)
    kind, way = _fate(rng, plan, profile, _rightness(number, profile, corrected, instructed))
    if not actions or kind is None:
        return Script(num_frames, moving, plan.path, **looks)
    if kind == "no_motion":
        return Script(num_frames, moving, plan.path[:1], kind, 1, **looks)
    if kind == "scene_collapse":
        melts = max(1, min(num_frames - 2, round(moving * (way / plan.length if plan.length else 0.0))))
        return Script(num_frames, moving, plan.path, kind, melts, melts, **looks)
    if kind in MOVES:
        path, kind = _astray(rng, world, plan, kind, way, profile.failures)
    else:
        path = _until(plan, max(way, _least(plan)))
    bad = first_bad(plan, path, moving, num_frames)
    return Script(
        num_frames, moving, path, kind if bad is not None or kind == "incomplete" else None, bad, **looks
    )


def first_bad(plan: Chain, path: Sequence[Configuration], moving_frames: int, num_frames: int) -> int | None:
    """The first frame in which the pieces are off the plan's path or go back on it."""
    best = 0.0
    for index, places in enumerate(sample(path, moving_frames)):
        off, way = nearest(plan.path, places, best - 1.0, plan.length)
        if off > OFF or way < best - OFF:
            return min(index, num_frames - 1)
        best = max(best, way)
    return None


def _looks(rng: np.random.Generator, profile: Profile) -> dict[str, Any]:
    drifts, reimagines = rng.random() < profile.colour_drift, rng.random() < profile.first_frame_drift
    return {"drift_levels": profile.colour_drift_levels if drifts else 0.0, "reimagined": bool(reimagines)}


def _rightness(number: int, profile: Profile, corrected: bool, instructed: bool) -> float:
    """The chance that the shot comes out right, overload aside: its own hardness, the same at every retry."""
    hard = number / 2**64 < profile.hard_share
    right = profile.right_if_hard if hard else profile.right_if_easy
    right *= profile.instruction_following if instructed else 1.0
    return right + profile.correction_gain * (1 - right) if corrected else right


def _number(world: World, state: State, actions: Sequence[Action]) -> int:
    """A number of 64 bits that stands for this state and these actions, the same in every process."""
    told = repr((world.name, _plain(state), [_plain(action) for action in actions]))
    return int.from_bytes(hashlib.sha256(told.encode()).digest()[:8], "big")


def _plain(value: Any) -> Any:
    """A state or an action in a form that prints alike in every process."""
    if dataclasses.is_dataclass(value):
        return [(f.name, _plain(getattr(value, f.name))) for f in dataclasses.fields(value)]
    if isinstance(value, frozenset | set):
        return sorted(map(repr, map(_plain, value)))  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    return value


def _fate(
    rng: np.random.Generator, plan: Chain, profile: Profile, rightness: float
) -> tuple[FailureKind | None, float]:
    """What goes wrong, and how far along the path all is right before it."""
    undone = next((i for i in range(1, len(plan.actions)) if rng.random() >= profile.overload), None)
    wrong = rng.random() >= rightness
    way = 0.0 if rng.random() < profile.fails_at_once else float(rng.random()) * plan.length
    limit = plan.length if undone is None else plan.ends[undone - 1]
    if wrong:
        return _drawn(rng, profile.failures), min(way, limit)
    if undone is not None:
        return _drawn(rng, profile.overload_failures), limit
    return None, plan.length


def _drawn(rng: np.random.Generator, weights: Mapping[FailureKind, float]) -> FailureKind:
    kinds, shares = list(weights), np.array(list(weights.values()), np.float64)
    return kinds[int(rng.choice(len(kinds), p=shares / shares.sum()))]


def _least(plan: Chain) -> float:
    """An incomplete clip does something: a third of its first action at least."""
    return plan.ends[0] / 3 if plan.ends else 0.0


def _until(plan: Chain, way: float) -> tuple[Mapping[str, Position], ...]:
    """The plan's path up to a length."""
    path, passed = [plan.path[0]], 0.0
    for before, after in zip(plan.path, plan.path[1:], strict=False):
        length = apart(before, after)
        if passed + length >= way - SAME_PLACE:
            path.append(interpolate([before, after], (way - passed) / length))
            break
        path.append(after)
        passed += length
    return tuple(path)


def _astray(
    rng: np.random.Generator,
    world: World,
    plan: Chain,
    kind: FailureKind,
    way: float,
    weights: Mapping[FailureKind, float],
) -> tuple[tuple[Mapping[str, Position], ...], FailureKind]:
    """The right way up to the action under way, then another one: of this kind, or of one that there is.

    In the middle of an action a wrong direction is to turn back.
    """
    index = plan.action_at(way) if plan.ends else 0
    begins = plan.ends[index - 1] if index else 0.0
    if kind == "wrong_direction" and way > begins + TURN_BACK:
        back = _until(plan, max(begins, way - 1.0))[-1]
        return (*_until(plan, way), back), kind
    start = _until(plan, begins) if begins else plan.path[:1]
    ways = [
        found
        for found in _alternatives(world, plan.states[index], plan.actions[index], start[-1])
        if any(nearest(plan.path, place, 0.0, plan.length)[0] > OFF for place in found[1])
    ]
    there: dict[FailureKind, float] = {
        found[0]: weights.get(found[0], 0.0) + 1e-6 for found in ways if found[0] in MOVES
    }
    if not there:
        return _until(plan, max(way, _least(plan))), "incomplete"
    kind = kind if kind in there else _drawn(rng, there)
    fitting = [found[1] for found in ways if found[0] == kind]
    other = fitting[int(rng.integers(len(fitting)))]
    return (*start, *other), kind


def _alternatives(
    world: World, state: State, action: Action, here: Configuration
) -> list[tuple[FailureKind, list[Configuration]]]:
    """The world's wrong ways, by our ids and with every piece in every waypoint."""
    ours = matched(world.configuration(state), here)
    found: list[tuple[FailureKind, list[Configuration]]] = []
    for kind, path in world.alternatives(state, action):
        places, full = dict(here), list[Configuration]()
        for waypoint in path:
            places = {**places, **{ours[piece]: at for piece, at in waypoint.items() if piece in ours}}
            full.append(places)
        found.append((kind, full))
    return found
