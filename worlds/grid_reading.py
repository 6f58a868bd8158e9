"""Which kind of cell plays which role in a grid picture: all kinds and all words of the prompt assigned at once.

The cheapest assignment wins: how well colours and shapes fit the prompt's words, and what the words leave open,
structure decides (the player stands on floor, the goal can be reached). Too dear, or two that are as cheap and
differ: not understood, never a guess.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from worlds.grid import Cell, GridState, Lattice, fewest_runs, reachable
from worlds.grid_kinds import Kind, Picture
from worlds.grid_prompts import Asked, Phrase, Role
from worlds.legend import RGB, contrast, distance

UNNAMED = 0.12  # cost of a role that the prompt gives no words for
PIECE_COST_MAX = 0.22
PLACE_COST_MAX = 0.16  # mean over all cells
UNEXPLAINED_COST = 0.22  # a kind that is neither floor nor wall
UNEXPLAINED_MAX = 0.01  # share of cells
MARGIN = 0.02  # a second assignment this near makes the picture ambiguous
UNSOLVABLE = 0.4
OTHER_SHAPE = 0.07
UNLIKE_FLOOR = 0.06
NO_GOAL = 0.3
KINDS_MAX = 24
SHARP_PITCH_PX = 12  # in smaller cells a shape alone does not tell a player from a goal
LIKE_MAX = 3  # cells of a frayed kind
LIKE_CONTRAST = 0.07


@dataclass(frozen=True)
class Roles:
    """An understood picture: where everything is, and which kind plays what."""

    lattice: Lattice
    state: GridState
    player: Kind
    goal: Kind | None
    box: Kind | None
    floors: tuple[Kind, ...]
    walls: tuple[Kind, ...]
    cost: float


def assign(picture: Picture, asked: Asked, *, boxes: bool) -> Roles | None:
    """The cheapest assignment of a picture's kinds to roles, or None.

    A prompt that names no goal (one action of many) may have a picture that shows none: a piece covers it.
    """
    kinds = picture.kinds
    if not asked.about_grid or len(kinds) < 3 or len(kinds) > KINDS_MAX:
        return None
    goals = [kind for kind in kinds if boxes or len(kind.cells) == 1]
    found = [
        roles
        for player in kinds
        if len(player.cells) == 1
        for goal in (goals if asked.of("goal") else [*goals, None])
        if goal is not player
        for box in (kinds if boxes else (None,))
        if box is None or (box is not player and box is not goal)
        for roles in [_roles(picture, asked, player, goal, box)]
        if roles is not None
    ]
    found.sort(key=lambda roles: roles.cost)
    if not found:
        return None
    best = found[0]
    rivals = [roles for roles in found[1:] if roles.state != best.state]
    if rivals and rivals[0].cost - best.cost < MARGIN:
        return None
    return best


def _roles(picture: Picture, asked: Asked, player: Kind, goal: Kind | None, box: Kind | None) -> Roles | None:
    """What this choice of pieces makes of the picture, and how well it fits; None if it does not."""
    sharp = picture.lattice.pitch >= SHARP_PITCH_PX
    pieces = [_piece_cost(player, asked.of("player"), "player", sharp)]
    pieces += [_piece_cost(goal, asked.of("goal"), "goal", sharp)] if goal else []
    pieces += [_piece_cost(box, asked.of("box"), "box", sharp)] if box else []
    if max(pieces) > PIECE_COST_MAX:
        return None
    goals, crates = set(goal.cells if goal else ()), set(box.cells if box else ())
    others = [kind for kind in picture.kinds if kind is not player and kind is not goal and kind is not box]
    covered = [kind for kind in others if box and goal and _stands_on(kind, box, goal)]
    goals |= {cell for kind in covered for cell in kind.cells}
    crates |= {cell for kind in covered for cell in kind.cells}
    if box:
        for kind in [kind for kind in others if kind not in covered]:
            like = _like(kind, goal, box)
            covered += [kind] if like else []
            goals |= set(kind.cells if like is goal and goal else ())
            crates |= set(kind.cells if like is box else ())
    floors, walls, places, odd = _places([kind for kind in others if kind not in covered], asked, player)
    count = picture.lattice.rows * picture.lattice.cols
    places /= count
    if not floors or places > PLACE_COST_MAX or odd > UNEXPLAINED_MAX * count:
        return None
    if goal and box and _seen_around(player, goal, floors):
        goals |= set(player.cells)
    blocked = frozenset(cell for kind in walls for cell in kind.cells)
    size = (picture.lattice.rows, picture.lattice.cols)
    state = GridState(*size, blocked, frozenset(goals), player.cells[0], tuple(crates))
    cost = sum(pieces) + 3 * places + 0.5 * _stands(player, floors)
    cost += 0.25 * _stands(goal, floors) if goal else NO_GOAL
    cost += 0.0 if not goal or solvable(state) else UNSOLVABLE
    if box:
        cost += min(0.3, 0.05 * abs(len(crates) - len(goals))) + (0.0 if walls else 0.1)
    return Roles(picture.lattice, state, player, goal, box, tuple(floors), tuple(walls), cost)


def _like(kind: Kind, goal: Kind | None, box: Kind) -> Kind | None:
    """The goal or the box, if a kind is a frayed one of them."""
    if len(kind.cells) > LIKE_MAX:
        return None
    gaps = {other: contrast(kind.colour, other.colour) for other in (goal, box) if other}
    nearest = min(gaps, key=lambda other: gaps[other])
    on_floor = kind.piece is not None or nearest.full
    return nearest if on_floor and gaps[nearest] < LIKE_CONTRAST else None


def _places(kinds: Sequence[Kind], asked: Asked, player: Kind) -> tuple[list[Kind], list[Kind], float, int]:
    """(floors, walls, cost summed over cells, cells that are neither) of the kinds that are no pieces."""
    floors: list[Kind] = []
    walls: list[Kind] = []
    total, odd = 0.0, 0
    crossed = any(kind.shape == "cross" for kind in kinds)
    nearest = min((_floor_cost(kind, asked, player) for kind in kinds), default=0.0)
    for kind in kinds:
        free, shut = _floor_cost(kind, asked, player), _wall_cost(kind, asked, player, nearest, crossed)
        (floors if free <= shut else walls).append(kind)
        total += min(free, shut) * len(kind.cells)
        odd += len(kind.cells) if min(free, shut) > UNEXPLAINED_COST else 0
    return floors, walls, total, odd


def _seen_around(player: Kind, goal: Kind, floors: Sequence[Kind]) -> bool:
    """Whether the player stands on a goal that shows around it."""
    if player.full or _stands(player, floors) < 0.08:
        return False
    return contrast(player.tile, goal.colour) < 0.04 < contrast(player.tile, player.colour)


def solvable(state: GridState) -> bool:
    """Whether the goal can be reached; with boxes, a quick look only: enough boxes, and each can be got at."""
    if not state.boxes:
        return fewest_runs(state.player, state.goals, state.free) is not None
    if len(state.boxes) < len(state.goals) or not state.goals:
        return False

    def open_floor(cell: Cell) -> bool:
        return state.inside(cell) and cell not in state.blocked

    around = reachable(state.player, open_floor)
    return all(cell in around for cell in (*state.boxes, *state.goals))


def _piece_cost(kind: Kind, phrases: Sequence[Phrase], role: Role, sharp: bool) -> float:
    """How badly a kind fits the words for a piece or a goal."""
    square = any(phrase.shape == "square" for phrase in phrases)
    prior = 0.05 if role == "player" and kind.full and not square else 0.0
    if not phrases:
        return UNNAMED + prior + (_unnamed(kind, role) if sharp else 0.0)
    return prior + min(_phrase_cost(kind.colour, kind.shape if kind.piece else "square", p) for p in phrases)


def _unnamed(kind: Kind, role: Role) -> float:
    """What a shape says where the words say nothing: players are round, boxes square, goals tiles or stars."""
    shape = kind.shape if kind.piece is not None and not kind.full else "square"
    likely = {"player": ("circle", "diamond", "triangle"), "box": ("square",)}.get(
        role, ("square", "star", "ring")
    )
    return 0.0 if shape in likely else 0.03


def _phrase_cost(colour: RGB, shape: str, phrase: Phrase) -> float:
    cost = UNNAMED if phrase.colour is None else distance(colour, phrase.colour)
    if phrase.shape is None or phrase.shape == shape:
        return cost
    return cost + (OTHER_SHAPE if phrase.colour is not None else 2 * OTHER_SHAPE)


def _floor_cost(kind: Kind, asked: Asked, player: Kind) -> float:
    """How badly a kind passes for floor; what lies on it speaks against it."""
    marked = 0.1 if kind.piece is not None else 0.0
    under = min(0.3, contrast(kind.tile, player.tile)) if not player.full else UNNAMED
    if not asked.of("floor"):
        return marked + under
    return marked + _place_cost(kind, asked.of("floor")) + (0.2 if asked.of("wall") else 0.5) * under


def _wall_cost(kind: Kind, asked: Asked, player: Kind, floor_cost: float, crossed: bool) -> float:
    """How badly a kind passes for wall; without words for walls, it is what is less like floor than the floor."""
    if not asked.of("wall"):
        return min(UNNAMED, floor_cost + UNLIKE_FLOOR)
    alike = not player.full and contrast(kind.tile, player.tile) < 0.02 and kind.piece is None
    return _place_cost(kind, asked.of("wall"), crossed) + (0.1 if alike else 0.0)


def _place_cost(kind: Kind, phrases: Iterable[Phrase], crossed: bool = False) -> float:
    costs: list[float] = []
    for phrase in phrases:
        colours = [kind.tile] + [colour for colour in (kind.piece, kind.second) if colour is not None]
        cost = UNNAMED if phrase.colour is None else min(distance(colour, phrase.colour) for colour in colours)
        if phrase.shape == "cross" and kind.shape != "cross" and crossed:
            cost += OTHER_SHAPE
        costs.append(cost)
    return min(costs)


def _stands(kind: Kind, floors: Sequence[Kind]) -> float:
    """How unlike floor the tile under a piece is."""
    if kind.full:
        return 0.0
    return min(0.2, min(contrast(kind.tile, floor.tile) for floor in floors))


def _stands_on(kind: Kind, box: Kind, goal: Kind) -> bool:
    """Whether a kind is a box on a goal: the box's colour with the goal's around or upon it."""
    if kind.piece is None or contrast(kind.colour, box.colour) > 0.06:
        return False
    others = [kind.tile] + ([kind.second] if kind.second is not None else [])
    return any(contrast(other, goal.colour) < 0.06 for other in others)
