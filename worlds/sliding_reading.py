"""Reads a first picture of a sliding puzzle from its pixels: the lattice of its tiles, then its numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from worlds import channels, digits, regions
from worlds.sliding_layout import lay_out
from worlds.sliding_rules import RESTING, Board, ordered, piece
from worlds.sliding_scene import SlidingScene
from worlds.sliding_solver import solvable
from worlds.sliding_words import goal_corner, legend_of
from worlds.tiling import Face, Tiling, tilings
from worlds.world import Configuration, Frame, Reading

if TYPE_CHECKING:
    from worlds.sliding_puzzle import SlidingPuzzle

SURE = 0.35  # confidence from which a picture counts as a sliding puzzle
Cell = tuple[int, int]
Place = tuple[float, float]


@dataclass(frozen=True)
class Numbered:
    """A tiling whose faces have been read: number -> place and face."""

    tiling: Tiling
    places: dict[int, Place]
    faces: dict[int, Face]
    scores: dict[int, digits.Floats]  # log scores of the numbers 1 … n for the tile read as this number
    confidence: float


def understand(world: SlidingPuzzle, frame: Frame, prompt: str) -> SlidingScene | None:
    """The scene of a first picture, or None if it shows no sliding puzzle. `frame`: (H, W, 3) uint8."""
    if min(frame.shape[:2]) < 32:
        return None
    best: Numbered | None = None
    for tiling in tilings(frame):
        numbered = _number(frame, tiling)
        if numbered is not None and (best is None or numbered.confidence > best.confidence):
            best = numbered
        if best is not None and best.confidence > 0.9:
            break
    if best is None or best.confidence < SURE:
        return None
    return _scene(world, frame, prompt, best)


def _number(frame: Frame, tiling: Tiling) -> Numbered | None:
    """Read every face at once: each number 1 … n stands on exactly one tile."""
    places: list[Place] = [(float(row), float(col)) for row, col in tiling.faces]
    faces = [_refined(frame, face) for face in tiling.faces.values()]
    if tiling.stray is not None:
        places.append(tiling.stray[0])
        faces.append(_refined(frame, tiling.stray[1]))
    count = tiling.rows * tiling.cols - 1
    inks = [digits.ink_of(_inside(frame, face)) for face in faces]
    marked = [index for index, ink in enumerate(inks) if ink is not None]
    if not count <= len(marked) <= count + 1:
        return None
    scores = np.stack(
        [digits.number_scores(ink, count)[1:] for ink in inks if ink is not None]
    )  # (tile, number - 1)
    kept = _without_the_blank(scores) if len(marked) > count else list(range(count))
    scores, marked = scores[kept], [marked[index] for index in kept]
    numbers = [col + 1 for _, col in regions.assign(-scores)]
    return Numbered(
        tiling,
        {number: places[index] for number, index in zip(numbers, marked, strict=True)},
        {number: faces[index] for number, index in zip(numbers, marked, strict=True)},
        {number: scores[row] for row, number in enumerate(numbers)},
        _confidence(scores, numbers),
    )


def _without_the_blank(scores: digits.Floats) -> list[int]:
    """One marked face too many: all but the one without which the numbers fit best."""
    everyone = list(range(len(scores)))
    choices = [[index for index in everyone if index != left] for left in everyone]
    fits = [
        sum(float(scores[kept][pair]) for pair in regions.assign(-scores[kept])) - 1e-3 * left
        for left, kept in enumerate(choices)
    ]
    return choices[int(np.argmax(fits))]


def _confidence(scores: digits.Floats, numbers: list[int]) -> float:
    """Share of the tiles that would have been read so alone, weakened by what the assignment had to give up."""
    chosen = np.array([float(scores[row, number - 1]) for row, number in enumerate(numbers)])
    best = np.array([float(line.max()) for line in scores])
    alone = float(np.mean(chosen >= best - 1e-6))
    given_up = float(np.mean(best - chosen))
    doubt = float(np.mean(np.clip(-best, 0, 12)))
    return float(np.clip(0.5 + 0.5 * alone - 0.12 * given_up - 0.1 * doubt, 0, 1))


def _repaired(numbered: Numbered, swap_costs_most: float = 8.0) -> dict[int, int]:
    """For a board that cannot be solved: the exchange of two numbers that the ink speaks against least."""
    costs = {
        (one, other): float(
            numbered.scores[one][one - 1]
            + numbered.scores[other][other - 1]
            - numbered.scores[one][other - 1]
            - numbered.scores[other][one - 1]
        )
        for one in numbered.places
        for other in numbered.places
        if one < other
    }
    (one, other), cost = min(costs.items(), key=lambda pair: pair[1])
    return {one: other, other: one} if cost < swap_costs_most else {}


def _inside(frame: Frame, face: Face) -> Frame:
    """The face without its rim, where compression leaves marks."""
    rim = 0.04 * min(face.height, face.width)
    top, left = max(0, round(face.top + rim)), max(0, round(face.left + rim))
    return frame[top : round(face.bottom - rim), left : round(face.right - rim)]


def _refined(frame: Frame, face: Face) -> Face:
    """The face's box at full resolution: the rows and columns around it that mostly have its colour."""
    slack = max(2, round(0.03 * max(face.height, face.width)))
    top, left = max(0, round(face.top) - slack), max(0, round(face.left) - slack)
    crop = frame[top : round(face.bottom) + slack, left : round(face.right) + slack]
    same = ~channels.differs(crop, channels.median(_inside(frame, face)), 13.5)
    rows, cols = np.flatnonzero(same.mean(axis=1) > 0.45), np.flatnonzero(same.mean(axis=0) > 0.45)
    if rows.size < 5 or cols.size < 5:
        return face
    found = Face(top + int(rows[0]), left + int(cols[0]), top + int(rows[-1]) + 1, left + int(cols[-1]) + 1)
    similar = abs(found.height - face.height) <= 2 * slack and abs(found.width - face.width) <= 2 * slack
    return found if similar else face


def _scene(world: SlidingPuzzle, frame: Frame, prompt: str, numbered: Numbered) -> SlidingScene | None:
    board = _board(world, prompt, numbered)
    if board.tiles.count(0) != 1:
        return None
    confidence = numbered.confidence
    if not _in_reach(board):
        confidence *= 0.7
        swap = _repaired(numbered)
        numbered = replace(
            numbered,
            places={swap.get(number, number): place for number, place in numbered.places.items()},
            faces={swap.get(number, number): face for number, face in numbered.faces.items()},
        )
        board = _board(world, prompt, numbered)
    numbered = replace(numbered, places=_under_way(numbered))
    layout = lay_out(frame, numbered.tiling, numbered.places, numbered.faces)
    places = dict(numbered.places)
    moving = [number for number, place in places.items() if _whole(place) is None]
    for number in moving:
        places[number] = _on_track(places[number], layout.place_of(numbered.faces[number]))
    configuration: Configuration = {piece(number): place for number, place in sorted(places.items())}
    ways = {piece(number): _fraction(places[number], board.cell(number)) for number in moving}
    ways = {name: way for name, way in ways.items() if way > RESTING}
    start = Reading(board, configuration, ways, confidence)
    return SlidingScene(world, legend_of(prompt), start, frame, layout)


def _board(world: SlidingPuzzle, prompt: str, numbered: Numbered) -> Board:
    """Every tile in the cell that it rests in or has left; a goal that the prompt leaves open is one in reach."""
    tiling = numbered.tiling
    cells = {_left_cell(world, prompt, number, place): number for number, place in numbered.places.items()}
    tiles = tuple(cells.get((row, col), 0) for row in range(tiling.rows) for col in range(tiling.cols))
    named = goal_corner(prompt)
    board = Board(tiling.rows, tiling.cols, tiles, named or "bottom-right")
    turned = replace(board, corner="top-left")
    doubtful = _repaired(numbered, swap_costs_most=4.0) and not world.parse(prompt)
    if named is None and tiles.count(0) == 1 and not _in_reach(board) and _in_reach(turned) and not doubtful:
        return turned
    return board


def _in_reach(board: Board) -> bool:
    return solvable(board.tiles, ordered(board.rows, board.cols, board.corner), board.cols)


def _whole(place: Place) -> Cell | None:
    cell = (round(place[0]), round(place[1]))
    return cell if max(abs(place[0] - cell[0]), abs(place[1] - cell[1])) < 1e-9 else None


def _on_track(rough: Place, exact: Place) -> Place:
    """A tile under way: its exact place along the axis that it moves on, whole on the other."""
    if abs(rough[0] - round(rough[0])) > abs(rough[1] - round(rough[1])):
        return exact[0], float(round(rough[1]))
    return float(round(rough[0])), exact[1]


def _under_way(numbered: Numbered) -> dict[int, Place]:
    """Places where the tile that has begun to slide into the blank is seen a little on its way, by its face."""
    tiling, places, faces = numbered.tiling, dict(numbered.places), numbered.faces
    cells = {place: number for number, place in places.items()}
    everywhere = [(float(row), float(col)) for row in range(tiling.rows) for col in range(tiling.cols)]
    blanks = [cell for cell in everywhere if cell not in cells]
    if len(blanks) != 1:
        return places
    strayed: dict[int, Place] = {}
    for down, right in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        place = (blanks[0][0] - down, blanks[0][1] - right)
        number = cells.get(place)
        if number is None:
            continue
        others = [
            faces[n]
            for n, p in places.items()
            if n != number and (p[0] if down else p[1]) == (place[0] if down else place[1])
        ]
        if not others:
            continue
        own, pitch = (faces[number].top, tiling.pitch[0]) if down else (faces[number].left, tiling.pitch[1])
        rest = float(np.median([face.top if down else face.left for face in others]))
        way = (own - rest) / pitch
        spread = float(np.ptp([face.top if down else face.left for face in others]))
        if abs(own - rest) > (1 if spread else 0.5) and way * (down + right) > 0:
            strayed[number] = (place[0] + way, place[1]) if down else (place[0], place[1] + way)
    return {**places, **strayed} if len(strayed) == 1 else places


def _fraction(place: Place, left: Cell) -> float:
    return min(1.0, max(abs(place[0] - left[0]), abs(place[1] - left[1])))


def _left_cell(world: SlidingPuzzle, prompt: str, number: int, place: Place) -> Cell:
    """The cell that a tile rests in or has left; the prompt's own slide says where a tile under way goes."""
    whole = _whole(place)
    if whole is not None:
        return whole
    if max(abs(place[0] - round(place[0])), abs(place[1] - round(place[1]))) <= RESTING:
        return round(place[0]), round(place[1])
    low = (int(np.floor(place[0])), int(np.floor(place[1])))
    high = (int(np.ceil(place[0])), int(np.ceil(place[1])))
    for action in world.parse(prompt):
        if action.tile == number and (action.row, action.col) in (low, high):
            return low if (action.row, action.col) == high else high
    return low if max(place[0] - low[0], place[1] - low[1]) <= 0.5 else high
