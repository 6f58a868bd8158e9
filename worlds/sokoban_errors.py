"""Wrong ways to do a walk or a push, as a generator errs: each a path for the judge to catch."""

from __future__ import annotations

from orchestrator.records import FailureKind
from worlds.grid import BOX, DIRECTIONS, PLAYER, Cell, GridState, at, line, overlaps, route
from worlds.world import Configuration, Position

Wrong = list[tuple[FailureKind, list[Configuration]]]


def wrong_ways(state: GridState, to: Cell, box: Cell | None) -> Wrong:
    """Alternatives to a walk to a cell, or to a push of the box at `box` to `to`."""
    if box is None:
        return [*_other_walks(state, to), *_through(state, at(to)), *_into_neighbours(state)]
    through: Wrong = [(kind, path) for kind, path in _into_neighbours(state) if kind == "illegal_move"]
    return [*_other_pushes(state, box, to), *through, *_steps_away(state, box)]


def _walk_path(way: list[Cell]) -> list[Configuration]:
    return [{PLAYER: at(cell)} for cell in way]


def _other_walks(state: GridState, to: Cell) -> Wrong:
    """Walks to a neighbour of the target, and the other way."""
    wrong: Wrong = []
    straight = route(state.player, to, state.free) or []
    for down, right in DIRECTIONS.values():
        beside = (to[0] + down, to[1] + right)
        way = route(state.player, beside, state.free) if state.free(beside) and beside != state.player else None
        if way is not None and len(way) > 1:
            wrong.append(("wrong_target", _walk_path(way)))
        step = (state.player[0] + down, state.player[1] + right)
        if state.free(step) and step not in straight:
            further = (step[0] + down, step[1] + right)
            wrong.append(
                ("wrong_direction", _walk_path([state.player, further if state.free(further) else step]))
            )
    return wrong


def _steps_away(state: GridState, box: Cell) -> Wrong:
    """The player walks off instead of pushing."""
    wrong: Wrong = []
    for down, right in DIRECTIONS.values():
        step = (state.player[0] + down, state.player[1] + right)
        if state.free(step) and step != box:
            wrong.append(("wrong_direction", _walk_path([state.player, step])))
    return wrong


def _through(state: GridState, to: Position) -> Wrong:
    """Straight to the target, whatever lies between."""
    here = at(state.player)
    for index in range(33):
        share = index / 32
        place = (here[0] + (to[0] - here[0]) * share, here[1] + (to[1] - here[1]) * share)
        if any(overlaps(place, cell) for cell in (*state.blocked, *state.boxes)):
            return [("illegal_move", [{PLAYER: here}, {PLAYER: to}])]
    return []


def _into_neighbours(state: GridState) -> Wrong:
    """Into a wall or onto a box beside the player; a box pushed instead of a walk."""
    wrong: Wrong = []
    for down, right in DIRECTIONS.values():
        step = (state.player[0] + down, state.player[1] + right)
        if state.inside(step) and not state.free(step):
            wrong.append(("illegal_move", _walk_path([state.player, step])))
        beyond = (step[0] + down, step[1] + right)
        if step in state.boxes and state.free(beyond):
            piece = f"{BOX}#{state.boxes.index(step) + 1}"
            start = {PLAYER: at(state.player), piece: at(step)}
            wrong.append(("wrong_action", [start, {PLAYER: at(step), piece: at(beyond)}]))
    return wrong


def _other_pushes(state: GridState, box: Cell, to: Cell) -> Wrong:
    """Too far, into what is in the way, and the box moving by itself."""
    cells = line(box, to)
    if box not in state.boxes or not cells:
        return []
    piece = f"{BOX}#{state.boxes.index(box) + 1}"
    ahead = (cells[0][0] - box[0], cells[0][1] - box[1])
    behind, before = (box[0] - ahead[0], box[1] - ahead[1]), (to[0] - ahead[0], to[1] - ahead[1])
    beyond = (to[0] + ahead[0], to[1] + ahead[1])
    start: Configuration = {PLAYER: at(behind), piece: at(box)}
    there: Configuration = {PLAYER: at(before), piece: at(to)}
    wrong: Wrong = [("wrong_action", [{piece: at(box)}, {piece: at(to)}])]
    if state.inside(beyond):
        path: list[Configuration] = [start, {PLAYER: at(to), piece: at(beyond)}]
        wrong.append(("wrong_target" if state.free(beyond) else "illegal_move", path))
    for down, right in DIRECTIONS.values():
        cell = (to[0] + down, to[1] + right)
        if (down, right) != ahead and state.inside(cell) and cell not in cells and cell != box:
            bend: list[Configuration] = [start, there, {PLAYER: at(before), piece: at(cell)}]
            wrong.append(("wrong_target" if state.free(cell) else "illegal_move", bend))
    return wrong
