"""Judges a clip by its readings against a planned path: the first bad frame, what went wrong, how much is done.

Knows no world and no pixels: it speaks in configurations. A frame is good while the pieces are on the path, not
behind where they were, not leaping ahead, and nowhere forbidden.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator.records import FailureKind
from worlds.chain import Chain, apart, matched
from worlds.world import Configuration, Position, Reading, World

NEAR = 0.3  # of a unit: farther from the path is off it
FINE = 0.08  # readers err by less: where leaving the path began
MOVED = 0.15  # less is no motion, and less than this before an action's end is its end
LEAP = 1.25  # a piece that gets on farther between two frames, and 8 times faster than even, was not moved
WAYWARD = 0.5  # cosine: less is another direction


@dataclass(frozen=True)
class Judgement:
    """What the readings of a clip of n frames show.

    `last_good` is the index of the last good frame (0 if frame 1 is bad); `first_bad` the one after it, None if
    all are good. `actions_done` of the chain's actions are finished, `way` is how far along the path it came.
    `mover` is the piece that went wrong. `finished`: all done, at rest, in the last frame.
    """

    num_frames: int
    last_good: int
    first_bad: int | None
    failure: FailureKind | None
    actions_done: int
    way: float
    finished: bool
    mover: str = ""

    @property
    def good_fraction(self) -> float:
        """Index of the last good frame / number of frames; 1.0 if all are good."""
        return 1.0 if self.first_bad is None else self.last_good / self.num_frames


@dataclass(frozen=True)
class _Seen:
    """A readable frame: where the pieces are by the chain's ids, how far off the path, how far along it."""

    index: int
    places: Configuration
    off: float
    way: float


def judge(world: World, chain: Chain, readings: Sequence[Reading | None]) -> Judgement:
    """Judge a clip whose frame 0 is where the chain starts. `readings`: one per frame, None = not this scene."""
    track = _Track(world, chain, len(readings))
    doubtful: int | None = None
    for index, reading in enumerate(readings):
        places = track.places(reading)
        if places is None:
            doubtful = index if doubtful is None else doubtful
        elif track.follow(index, places):
            doubtful = None
        else:
            first = track.left_at(index) if doubtful is None else doubtful
            return _rejected(track, readings, first, index)
    if doubtful is not None:
        return _judgement(track, max(1, doubtful), "scene_collapse")
    return _unharmed(track, readings)


class _Track:
    """The path so far: how far along it the pieces are, frame by frame."""

    def __init__(self, world: World, chain: Chain, num_frames: int) -> None:
        self.world, self.chain, self.num_frames = world, chain, num_frames
        self.leap = max(LEAP, 8 * chain.length / max(1, num_frames - 1))
        self.seen: list[_Seen] = []
        self.best = 0.0  # the farthest way so far

    @property
    def moving(self) -> set[str]:
        """The pieces that the chain moves."""
        first = self.chain.path[0]
        return {p for w in self.chain.path[1:] for p in w if math.dist(w[p], first[p]) > MOVED}

    def places(self, reading: Reading | None) -> Configuration | None:
        """Where a frame has the pieces, by the chain's ids; None if it cannot be told."""
        if reading is None or reading.unreadable:
            return None
        before = self.seen[-1].places if self.seen else self.chain.path[0]
        ours = matched(reading.configuration, before)
        if len(ours) < len(before):
            return None
        return {ours[piece]: position for piece, position in reading.configuration.items() if piece in ours}

    def follow(self, index: int, places: Configuration) -> bool:
        """Whether the pieces are where the path may have them in this frame."""
        frames = index - self.seen[-1].index if self.seen else 1
        off, way = nearest(self.chain.path, places, self.best - NEAR, self.best + self.leap * frames)
        good = off <= NEAR and not self._forbidden(places)
        if good or off > NEAR:
            self.seen.append(_Seen(index, places, off, way))
        if good:
            self.best = max(self.best, way)
        return good

    def left_at(self, index: int) -> int:
        """The first bad frame, given one that is plainly bad: leaving began when it was off by a little."""
        turn = max((seen.way for seen in self.seen if seen.off <= FINE and seen.index < index), default=0.0)
        first = index
        for seen in reversed([s for s in self.seen if s.index < index]):
            if seen.off <= FINE and seen.way >= turn - FINE:
                break
            first = seen.index
        return max(1, first)

    def _forbidden(self, places: Configuration) -> bool:
        return self.world.forbidden(self.chain.states[self.chain.action_at(self.best)], places)


def nearest(
    path: Sequence[Mapping[str, Position]], places: Configuration, low: float, high: float
) -> tuple[float, float]:
    """(distance from the path, length along it) of the nearest point whose length is from low to high."""
    best, passed = (apart(path[0], places), 0.0), 0.0
    for before, after in itertools.pairwise(path):
        length = apart(before, after)
        if passed + length >= low and passed <= high:
            fraction = _projected(before, after, places)
            fraction = min(max(fraction, (low - passed) / length, 0.0), (high - passed) / length, 1.0)
            at = {p: _between(before[p], after[p], fraction) for p in before}
            found = (apart(at, places), passed + fraction * length)
            if found[0] < best[0] - 1e-9 or best[1] < low:
                best = found
        passed += length
    return best


def _projected(before: Configuration, after: Configuration, places: Configuration) -> float:
    """The fraction of a segment that lies nearest, by the pieces that it moves."""
    forth = square = 0.0
    for piece, (y, x) in before.items():
        down, right = after[piece][0] - y, after[piece][1] - x
        if piece in places:
            forth += (places[piece][0] - y) * down + (places[piece][1] - x) * right
            square += down * down + right * right
    return forth / square if square else 0.0


def _between(before: Position, after: Position, fraction: float) -> Position:
    return before[0] + (after[0] - before[0]) * fraction, before[1] + (after[1] - before[1]) * fraction


def _unharmed(track: _Track, readings: Sequence[Reading | None]) -> Judgement:
    """All frames are good: done, under way, or nothing happened."""
    last, chain = readings[-1] if readings else None, track.chain
    finished = (
        last is not None
        and not last.moving
        and last.state == chain.states[-1]
        and track.best >= chain.length - MOVED
    )
    still = track.best < MOVED and chain.length >= MOVED
    failure: FailureKind | None = "no_motion" if still else None if finished else "incomplete"
    return Judgement(
        num_frames=track.num_frames,
        last_good=0 if still else track.num_frames - 1,
        first_bad=1 if still else None,
        failure=failure,
        actions_done=sum(end <= track.best + MOVED for end in chain.ends) if not finished else len(chain.actions),
        way=track.best,
        finished=finished,
    )


def _rejected(track: _Track, readings: Sequence[Reading | None], first: int, plain: int) -> Judgement:
    """Leaving the path is judged by all that follows: by the wrong ways the world knows, else by geometry."""
    after = [track.places(reading) for reading in readings[plain:]]
    seen = [places for places in after if places is not None]
    good = [s for s in track.seen if s.index < first]
    origin, way = (good[-1].places, good[-1].way) if good else (track.chain.path[0], 0.0)
    state = track.chain.states[track.chain.action_at(way)]
    mover = max(origin, key=lambda piece: max(math.dist(origin[piece], p[piece]) for p in seen))
    kind: FailureKind
    if len(seen) * 2 < len(after):
        kind = "scene_collapse"
    elif any(track.world.forbidden(state, places) for places in seen):
        kind = "illegal_move"
    elif mover not in track.moving:
        kind = "wrong_action"
    else:
        kind = _known_way(track, way, seen) or _by_direction(track, mover, origin, way, seen)
    return _judgement(track, first, kind, mover)


def _known_way(track: _Track, way: float, seen: Sequence[Configuration]) -> FailureKind | None:
    """The kind of the alternative action whose path passes where the pieces are seen at last."""
    chain = track.chain
    index = chain.action_at(way)
    rest = track.world.configuration(chain.states[index])
    ours = matched(rest, chain.path[0] if index == 0 else along(chain, chain.ends[index - 1]))
    for kind, path in track.world.alternatives(chain.states[index], chain.actions[index]):
        named = [{ours.get(p, p): position for p, position in waypoint.items()} for waypoint in path]
        full = [{**{ours.get(p, p): q for p, q in rest.items()}, **waypoint} for waypoint in named]
        found = [nearest(full, places, 0.0, math.inf) for places in seen]
        if all(off <= NEAR for off, _ in found) and found[-1][1] >= found[0][1] - FINE:
            return kind
    return None


def _by_direction(
    track: _Track, mover: str, origin: Configuration, way: float, seen: Sequence[Configuration]
) -> FailureKind:
    """Another direction than the path's is a wrong direction; the same one, too far or aside, a wrong target."""
    chain = track.chain
    ahead = along(chain, min(chain.length, way + 0.5))
    behind = along(chain, max(0.0, way - 0.5))
    wanted = (ahead[mover][0] - behind[mover][0], ahead[mover][1] - behind[mover][1])
    gone = max((p[mover] for p in seen), key=lambda place: math.dist(place, origin[mover]))
    went = (gone[0] - origin[mover][0], gone[1] - origin[mover][1])
    size = math.hypot(*wanted) * math.hypot(*went)
    cosine = (wanted[0] * went[0] + wanted[1] * went[1]) / size if size > 1e-9 else 0.0
    ends = (abs(way - end) <= NEAR for end in chain.ends)
    if cosine < WAYWARD and not (any(ends) and cosine > -WAYWARD and way > NEAR):
        return "wrong_direction"
    return "wrong_target"


def along(chain: Chain, way: float) -> Mapping[str, Position]:
    """Where the pieces are at a length of the path."""
    passed = 0.0
    for before, after in itertools.pairwise(chain.path):
        length = apart(before, after)
        if way <= passed + length:
            return {p: _between(before[p], after[p], (way - passed) / length) for p in before}
        passed += length
    return chain.path[-1]


def _judgement(track: _Track, first: int, kind: FailureKind, mover: str = "") -> Judgement:
    good = [seen.way for seen in track.seen if seen.index < first and seen.off <= NEAR]
    way = max(good, default=0.0)
    return Judgement(
        num_frames=track.num_frames,
        last_good=first - 1,
        first_bad=first,
        failure=kind,
        actions_done=sum(end <= way + MOVED for end in track.chain.ends),
        way=way,
        finished=False,
        mover=mover,
    )
