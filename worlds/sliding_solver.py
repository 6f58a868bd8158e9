"""Shortest solutions of sliding puzzles: iterative-deepening A* (Korf, 1985) with Manhattan distance and linear
conflict (Hansson, Mayer and Yung, 1992). Knows tuples of numbers, no pictures."""

from __future__ import annotations

from functools import lru_cache

NODES_MAX = 1_500_000  # a few seconds; 4x4 boards within 25 moves need a hundredth


def solvable(tiles: tuple[int, ...], goal: tuple[int, ...], cols: int) -> bool:
    """Whether slides lead from one board to the other: permutation parity against the blank's way."""
    if sorted(tiles) != sorted(goal):
        return False
    place = {number: index for index, number in enumerate(goal)}
    order = [place[number] for number in tiles]
    seen = [False] * len(order)
    odd = False
    for first in range(len(order)):
        index, length = first, 0
        while not seen[index]:
            seen[index] = True
            index = order[index]
            length += 1
        odd ^= length > 0 and length % 2 == 0
    here, there = tiles.index(0), goal.index(0)
    way = abs(here // cols - there // cols) + abs(here % cols - there % cols)
    return odd == (way % 2 == 1)


@lru_cache(maxsize=512)
def solve(tiles: tuple[int, ...], goal: tuple[int, ...], cols: int) -> tuple[int, ...]:
    """The numbers to slide, in order, as few as possible. Row-major boards, 0 is the blank.

    Raises ValueError where no solution exists, or none was found within NODES_MAX positions.
    """
    if not solvable(tiles, goal, cols):
        raise ValueError("this sliding puzzle has no solution: its tiles are an odd permutation")
    search = _Search(goal, cols)
    bound = search.estimate(tiles)
    while True:
        moves: list[int] = []
        left = search.deepen(list(tiles), tiles.index(0), -1, 0, bound, moves)
        if left < 0:
            return tuple(moves)
        bound = left


class _Search:
    """One goal's tables and the count of visited positions."""

    def __init__(self, goal: tuple[int, ...], cols: int) -> None:
        self.cols, self.rows = cols, len(goal) // cols
        self.goal = goal
        self.home = {number: divmod(index, cols) for index, number in enumerate(goal)}
        size = len(goal)
        self.distance = [
            [abs(i // cols - self.home[n][0]) + abs(i % cols - self.home[n][1]) if n else 0 for i in range(size)]
            for n in range(size)
        ]
        self.neighbours = [
            [
                i + step
                for step, fits in (
                    (-cols, i >= cols),
                    (cols, i + cols < size),
                    (-1, i % cols > 0),
                    (1, i % cols < cols - 1),
                )
                if fits
            ]
            for i in range(size)
        ]
        self.nodes = 0

    def estimate(self, tiles: tuple[int, ...] | list[int]) -> int:
        """Manhattan distance plus two moves for every tile that must leave its goal line; never too much."""
        total = sum(self.distance[number][index] for index, number in enumerate(tiles))
        for row in range(self.rows):
            line = [
                self.home[n][1]
                for n in tiles[row * self.cols : (row + 1) * self.cols]
                if n and self.home[n][0] == row
            ]
            total += 2 * _conflicts(line)
        for col in range(self.cols):
            line = [self.home[n][0] for n in tiles[col :: self.cols] if n and self.home[n][1] == col]
            total += 2 * _conflicts(line)
        return total

    def deepen(self, tiles: list[int], blank: int, came: int, depth: int, bound: int, moves: list[int]) -> int:
        """-1 when solved (moves filled), else the least estimate above the bound."""
        guess = depth + self.estimate(tiles)
        if guess > bound:
            return guess
        if tiles[blank] == 0 and tuple(tiles) == self.goal:
            return -1
        self.nodes += 1
        if self.nodes > NODES_MAX:
            raise ValueError(
                f"no solution of this sliding puzzle within {NODES_MAX} positions; it needs {bound}+ moves"
            )
        least = 1 << 30
        for other in self.neighbours[blank]:
            if other == came:
                continue
            number = tiles[other]
            tiles[blank], tiles[other] = number, 0
            moves.append(number)
            found = self.deepen(tiles, other, blank, depth + 1, bound, moves)
            if found < 0:
                return found
            moves.pop()
            tiles[other], tiles[blank] = number, 0
            least = min(least, found)
        return least


def _conflicts(line: list[int]) -> int:
    """How many tiles must leave a line so that the rest stand in order: all but the longest rising run."""
    if len(line) < 2:
        return 0
    best = [1] * len(line)
    for index, value in enumerate(line):
        for before in range(index):
            if line[before] < value:
                best[index] = max(best[index], best[before] + 1)
    return len(line) - max(best)
