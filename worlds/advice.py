"""How a piece and a move are named in advice about a clip, in words that no world's `parse` reads as an action.

A sentence of advice stands in a prompt after the action itself, and must not be done twice. It avoids the words
of roles ("trap", "wall", "never the red one") and "to peg C", from which worlds read what a prompt asks for.
"""

from __future__ import annotations

from typing import assert_never

from worlds import circles_rules, grid, hanoi_rules, sliding_rules
from worlds.circles_words import ORDINALS
from worlds.sokoban import Push, Walk
from worlds.world import Action, State

Known = grid.Run | Walk | Push | sliding_rules.Slide | hanoi_rules.Move | circles_rules.CircleMove


def piece_name(piece: str, legend: object) -> str:
    """A piece in words: `"disc-1"` -> `"disc 1"`, `"box#2"` -> `"the blue square"`."""
    family, _, number = piece.replace("#", "-").partition("-")
    match legend:
        case grid.Legend():
            return f"the {legend.box if family == grid.BOX else legend.player}"
        case circles_rules.Legend() if number:
            return _circle(int(number), legend)
        case sliding_rules.Legend():
            return f"{legend.tile} {number}"
        case _:
            return f"{family} {number}".strip()


def move_named(state: State, action: Action, legend: object) -> str:
    """One sentence: which piece moves, from where to where; empty for an action of no built-in world."""
    if not isinstance(action, Known):
        return ""
    told = _move(state, action, legend)
    return f"{told[0].upper()}{told[1:]}."


def _move(state: State, action: Known, legend: object) -> str:
    match action:
        case grid.Run() | Walk():
            here, there = grid.named(state.player), grid.named(action.cell)
            return f"{piece_name(grid.PLAYER, legend)} goes from {here} and stops in {there}"
        case Push():
            box, here, there = piece_name(grid.BOX, legend), grid.named(action.box), grid.named(action.to)
            return f"{piece_name(grid.PLAYER, legend)} moves {box} straight from {here} until it is in {there}"
        case sliding_rules.Slide():
            tile = piece_name(sliding_rules.piece(action.tile), legend)
            here, there = grid.named(state.cell(action.tile)), grid.named((action.row, action.col))
            return f"{tile} goes {action.direction} from {here} and fills {there}"
        case hanoi_rules.Move():
            source, target = (hanoi_rules.PEGS[peg] for peg in (state.peg_of(action.disc), action.target))
            others = "no other disc moves"
            return f"disc {action.disc} is lifted off peg {source} and lowered over peg {target}; {others}"
        case circles_rules.Place():
            circle = piece_name(circles_rules.piece(action.rank), legend)
            return f"{circle} goes from where it lies and takes position {action.slot} of the row"
        case circles_rules.Aside():
            circle = piece_name(circles_rules.piece(action.rank), legend)
            place = f"{action.along} % of the width and {action.down} % of the height"
            return f"{circle} goes from where it lies and makes room: it waits at {place}"
        case _:
            assert_never(action)


def rule_of(action: Action) -> str:
    """One sentence: what no move of this kind may do; empty for an action of no built-in world."""
    match action:
        case grid.Run() | Walk():
            return "It must stay on free ground all the way."
        case Push():
            return "Both must stay on free ground all the way."
        case sliding_rules.Slide():
            return "It must go straight into the gap and over no other."
        case hanoi_rules.Move():
            return "A disc must rest on the base or on a larger disc."
        case circles_rules.Place() | circles_rules.Aside():
            return "It must stay inside the picture and rest upon no other."
        case _:
            return ""


def _circle(rank: int, legend: circles_rules.Legend) -> str:
    colour = f"{legend.colours[rank - 1]} " if rank <= len(legend.colours) else ""
    return f"the {colour}circle ({ORDINALS[rank - 1]})"
