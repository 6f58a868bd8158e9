"""From where pieces are seen to the state that they rest in or left. Knows no pixels."""

from __future__ import annotations

from worlds.grid import BOX, PLAYER, Cell, GridState, at, between, configuration_of
from worlds.world import Position, Reading

RESTING_CELLS = 0.08  # this near to a cell, a piece counts as arrived


def settled(
    reference: GridState,
    player: Position | None,
    boxes: tuple[Position, ...],
    missing: tuple[str, ...],
    confidence: float,
) -> Reading:
    """A reading of seen places. What was not seen is where the reference had it, with low confidence."""
    seen = player if player is not None else at(reference.player)
    crates = _with_missing(reference, boxes)
    forward = _push_direction(seen, crates)
    cells = [_left_cell(reference, place, forward if _under_way(place) else None, set()) for place in crates]
    taken = set(cells)
    here = _left_cell(reference, seen, forward, taken)
    state = GridState(reference.rows, reference.cols, reference.blocked, reference.goals, here, tuple(cells))
    order = sorted(range(len(crates)), key=lambda index: cells[index])
    configuration = {PLAYER: seen} | {f"{BOX}#{n}": crates[index] for n, index in enumerate(order, start=1)}
    rest = configuration_of(state)
    moving = {
        piece: min(1.0, max(abs(place[0] - rest[piece][0]), abs(place[1] - rest[piece][1])))
        for piece, place in configuration.items()
        if _under_way(place)
    }
    return Reading(state, configuration, moving, confidence if not missing else min(0.3, confidence), missing)


def _with_missing(reference: GridState, boxes: tuple[Position, ...]) -> list[Position]:
    """The boxes seen, and for each that was not, a place of the reference where none was seen."""
    crates = list(boxes)[: len(reference.boxes)]
    for cell in reference.boxes:
        if len(crates) == len(reference.boxes):
            break
        if all(max(abs(cell[0] - y), abs(cell[1] - x)) > 0.5 for y, x in crates):
            crates.append(at(cell))
    for cell in reference.boxes[len(crates) :]:
        crates.append(at(cell))
    return crates


def _under_way(place: Position) -> bool:
    return max(abs(place[0] - round(place[0])), abs(place[1] - round(place[1]))) > RESTING_CELLS


def _push_direction(player: Position, boxes: list[Position]) -> tuple[int, int] | None:
    """Which way a moving player pushes a moving box, if it does."""
    if not _under_way(player):
        return None
    for box in boxes:
        rows, cols = box[0] - player[0], box[1] - player[1]
        if not _under_way(box):
            continue
        if abs(rows) < 0.3 and 0.7 < abs(cols) < 1.4:
            return 0, 1 if cols > 0 else -1
        if abs(cols) < 0.3 and 0.7 < abs(rows) < 1.4:
            return 1 if rows > 0 else -1, 0
    return None


def _left_cell(reference: GridState, place: Position, forward: tuple[int, int] | None, taken: set[Cell]) -> Cell:
    """The cell that a piece stands in or left: behind it in a push, else the nearest that is free."""
    cells = between(place)
    if forward is not None and len(cells) > 1:
        return min(cells, key=lambda cell: cell[0] * forward[0] + cell[1] * forward[1])
    free = [
        cell for cell in cells if reference.inside(cell) and cell not in reference.blocked and cell not in taken
    ]
    near = (round(place[0]), round(place[1]))
    if not _under_way(place) and near in free:
        return near
    inside = [cell for cell in cells if reference.inside(cell)]
    return free[0] if free else inside[0] if inside else reference.player
