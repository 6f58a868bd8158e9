"""The oracle's words about a clip: reasons for a reader, suggestions for the next prompt.

A suggestion never reads as an action, or the generator would do it.
"""

from __future__ import annotations

from orchestrator.records import FailureKind
from planners.knowing import Known
from worlds.advice import move_named, piece_name, rule_of
from worlds.chain import Chain
from worlds.judging import Judgement, along

SUGGESTIONS: dict[FailureKind, str] = {
    "wrong_direction": "{move} First of all it must go {direction}, and it must not turn round.",
    "wrong_target": "{move} It must stop exactly there and go no further.",
    "wrong_action": "{move} Only the named piece may move; every other piece stays where it is.",
    "illegal_move": "{move} {rule}",
    "scene_collapse": "{move} The picture must stay sharp and unchanged but for the moving piece.",
    "no_motion": "{move} The motion must be clearly visible.",
    "incomplete": "{move} The motion must be carried through to its end without a pause.",
    "identity_drift": "Colours and shapes must stay as they are.",
    "first_frame": "The video must begin with exactly the given picture.",
}
SAID: dict[FailureKind, str] = {
    "wrong_direction": "{mover} goes the wrong way",
    "wrong_target": "{mover} ends in the wrong place",
    "wrong_action": "{mover} moves unasked",
    "illegal_move": "{mover} goes where it must not be",
    "scene_collapse": "the scene falls apart",
    "no_motion": "nothing moves",
}


def suggestion_of(known: Known, way: Chain, failure: FailureKind, judged: Judgement) -> str:
    """What the next prompt should add: the move that is due, by its piece, and what to mind; empty if nothing."""
    index = min(judged.actions_done, len(way.actions) - 1)
    action, done = way.actions[index], way.ends[index - 1] if index else 0.0
    words = SUGGESTIONS.get(failure, "{move}").format(
        move=move_named(way.states[index], action, known.scene.legend),
        rule=rule_of(action),
        direction=_direction(way, max(judged.way, done)),
    )
    return "" if known.world.parse(words) else words.strip()


def fault_of(known: Known, way: Chain, failure: FailureKind, judged: Judgement) -> str:
    """Why a clip is rejected: the fault and its first frame, then what was done before it."""
    mover = piece_name(judged.mover, known.scene.legend) if judged.mover else "a piece"
    fault = SAID.get(failure, "something is wrong").format(mover=mover)
    if failure == "no_motion" or judged.first_bad is None:
        return f"{fault}; {_done(way, judged.actions_done)}"
    return f"{fault} from frame {judged.first_bad}; before that {_done(way, judged.actions_done)}"


def unfinished_of(way: Chain, judged: Judgement) -> str:
    """Why a right clip is rejected that had to finish."""
    return f"unfinished, and the last step must finish; right so far, {_done(way, judged.actions_done)}"


def praise_of(way: Chain, judged: Judgement, *, finished: bool) -> str:
    """Why a clip is accepted: as planned, by another free way, or as far as it goes."""
    if judged.finished:
        return f"as planned; {_done(way, judged.actions_done)}"
    if finished:
        return f"by another free way; {_done(way, len(way.actions))}"
    return f"right so far, {_done(way, judged.actions_done)}; the rest is still to come"


def _done(way: Chain, count: int) -> str:
    return f"{count} of {len(way.actions)} action{'' if len(way.actions) == 1 else 's'} done"


def _direction(way: Chain, at: float) -> str:
    """In words, where the path leads from a length on: the direction of its longest moving piece."""
    before, after = along(way, at), along(way, min(way.length, at + 0.5))
    gaps = {piece: (after[piece][0] - y, after[piece][1] - x) for piece, (y, x) in before.items()}
    down, right = max(gaps.values(), key=lambda gap: gap[0] ** 2 + gap[1] ** 2, default=(0.0, 0.0))
    if abs(down) > abs(right):
        return "down" if down > 0 else "up"
    return "right" if right > 0 else "left"
