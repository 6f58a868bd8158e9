"""The oracle's words about a clip: reasons for a reader, suggestions for the next prompt.

A suggestion never reads as an action, or the generator would do it.
"""

from __future__ import annotations

from orchestrator.records import FailureKind
from planners.knowing import Known
from worlds.chain import Chain
from worlds.judging import Judgement, along

SUGGESTIONS: dict[FailureKind, str] = {
    "wrong_direction": "First of all it must go {direction}, and it must not turn round.",
    "wrong_target": "It must stop exactly where it is told and go no further.",
    "wrong_action": "Only the named piece may move; every other piece stays where it is.",
    "illegal_move": "It must stay on free ground all the way and never cross what is forbidden or another piece.",
    "scene_collapse": "The picture must stay sharp and unchanged but for the moving piece.",
    "no_motion": "The motion must be clearly visible.",
    "incomplete": "The motion must be carried through to its end without a pause.",
    "identity_drift": "Colours and shapes must stay as they are.",
    "first_frame": "The video must begin with exactly the given picture.",
}
SAID: dict[FailureKind, str] = {
    "wrong_direction": "it goes the wrong way",
    "wrong_target": "it ends in the wrong place",
    "wrong_action": "another piece moves",
    "illegal_move": "a piece goes where none may be",
    "scene_collapse": "the scene falls apart",
    "no_motion": "nothing moves",
    "incomplete": "it stops before the end",
}


def suggestion_of(known: Known, way: Chain, failure: FailureKind, judged: Judgement) -> str:
    """What the next prompt should add; empty where there is nothing to say."""
    text = SUGGESTIONS.get(failure, "")
    words = text.format(direction=_direction(way, judged.way))
    return "" if known.world.parse(words) else words


def reason_of(known: Known, way: Chain, failure: FailureKind | None, judged: Judgement) -> str:
    """Why the verdict is what it is."""
    done = f"{judged.actions_done} of {len(way.actions)} actions done"
    if failure is None:
        return f"{done}; all as planned" if judged.finished else f"{done}; right so far, not finished"
    where = f" from frame {judged.first_bad}" if judged.first_bad else ""
    return f"{done}; {SAID.get(failure, 'something is wrong')}{where}"


def _direction(way: Chain, at: float) -> str:
    """In words, where the path leads from a length on: the direction of its longest moving piece."""
    before, after = along(way, at), along(way, min(way.length, at + 0.5))
    gaps = {piece: (after[piece][0] - y, after[piece][1] - x) for piece, (y, x) in before.items()}
    down, right = max(gaps.values(), key=lambda gap: gap[0] ** 2 + gap[1] ** 2, default=(0.0, 0.0))
    if abs(down) > abs(right):
        return "down" if down > 0 else "up"
    return "right" if right > 0 else "left"
