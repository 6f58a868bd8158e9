"""The order that a prompt asks for, in many words."""

from __future__ import annotations

import pytest

from worlds.circles_order import order_of as words_order
from worlds.circles_rules import Circles, Order, Place
from worlds.circles_words import ORDERS, order_of
from worlds.sort_circles import WORLD
from worlds.world import Look

GROWING = [
    "Sort the circles by size so that the smallest ends up on the left.",
    "Sort the circles by size, ascending (left to right).",
    "Sort the circles into order with sizes increasing rightwards.",
    "Sort the four discs by size in a horizontal row, from the smallest on the left to the biggest on the right.",
    "Put the circles in a row by size: smallest on the left, biggest on the right.",
    "Put the circles in a row by size so that the biggest is at the right.",
    "Sort the circles by size in ascending order.",
    "Sort the circles left to right from smallest to largest.",
    "Arrange the balls with the tiniest at the far left and the biggest at the far right.",
    "Line up the dots by size with the largest at the right end and the smallest at the left end.",
    "Order the circles by size, smallest first.",
    "Order the circles in a row, beginning with the tiniest and ending with the biggest.",
    "Sort the circles in descending order of radius, right to left.",
    "Sort the circles from right to left, from largest to smallest.",
    "Sort the circles in a row whose sizes grow from left to right.",
    "Arrange the discs so that each is bigger than the one on its left.",
    "Sort the discs by size. Left: smallest. Right: largest.",
    "Sort the discs by size; the leftmost is the smallest and the rightmost the biggest.",
    "Sort the discs: small, medium, large, from the left.",
    "Sort the discs small → large.",
    "Sort the discs from the smallest disc up to the largest one.",
    "Sort the discs so that they get bigger and bigger towards the right.",
    "Sort the discs with the smallest at the start of the row and the largest at the end.",
    "Starting from the right, sort the discs from the largest to the smallest.",
    "Sort the discs from smallest to largest, not from largest to smallest.",
    "Larger circles go to the right, smaller ones to the left. Sort them.",
    "Sort the circles by size in a row; start with the smallest on the left.",
    "Sort the circles by size in a row; the row starts with the biggest on the right.",
    "Sort the circles by size, growing.",
    "The largest circle should be on the right-hand side and the smallest on the left-hand side. Sort.",
    "From left to right, sort the circles so the smallest comes first and the largest comes last.",
    "From left to right the circles get larger. Sort them.",
    "Move the largest circle first. The row goes from the smallest to the largest.",
    "Arrange the circles by size from left (small) to right (large).",
    "Arrange from small on the left side to big on the right side the circles.",
    "Sort the circles: the smaller the circle, the further left it belongs.",
    "Sort the circles: the bigger a circle, the further to the right it stands.",
    "Sort the circles in order of size, the smallest being the leftmost.",
    "Sort the circles from the largest on the right to the smallest on the left.",
]
SHRINKING = [
    "The circles start anywhere; sort them: they end in a row from largest to smallest.",
    "Sort the circles without overlap, largest first.",
    "Sort the circles by size so that the biggest circle ends up at the far left end of the row.",
    "Place the largest circle at the left, then the next largest, and so on, with the smallest at the right.",
    "Put the biggest circle on the left, the second biggest next to it, and the smallest on the "
    "right. Nothing else is left.",
    "Place the largest at the start.",
    "Sort the circles so that every circle has a smaller neighbour on its right.",
    "Sort the circles by size in a row, left to right from largest to smallest.",
    "Sort the circles by size, largest on the left.",
    "Order the circles by size, the biggest first and the smallest last.",
    "Order the circles in a row by size, starting with the largest.",
    "Order the circles by decreasing diameter.",
    "Order the circles by increasing size from right to left.",
    "Sort the circles in a row that shrinks towards the right.",
    "Sort the circles in a row in which sizes increase to the left.",
    "Arrange the discs so that each is smaller than the one before it.",
    "Arrange the discs so that each one is larger than the next.",
    "Arrange the discs in a row: on the left the biggest, on the right the smallest.",
    "Sort the discs from big to small.",
    "Sort the discs so that they get smaller from left to right.",
    "Sort the discs from right to left, smallest first.",
    "Sort the discs from largest (left) to smallest (right).",
    "Sort the circles. Place the biggest one at the left edge of the row.",
    "Arrange the discs in a row, biggest to the left.",
    "Sort the circles largest-to-smallest.",
    "Sort the circles by their size into a row with the largest leftmost.",
    "The scene shows 6 circles of different sizes and colors arranged randomly.\n"
    "Keep every circle unchanged in size and color. Only rearrange their positions.\n"
    "Align all circles on a single horizontal line. Center the entire row of circles in the image.\n"
    "Sort them from left to right by circumference, from largest to smallest.",
    "Arrange the circles by size from left (largest) to right (smallest).",
    "Sort the circles by size with the big ones on the left and the little ones on the right.",
    "Rank the circles by size from the right: smallest, then bigger ones.",
    "Rearrange the circles into a line ordered by area, biggest at the start.",
    "Line the circles up in a row from the right to the left in order of growing size.",
]
NO_ORDER = [
    "Sort the circles, never from small to large.",
    "The red circle is the largest. Sort the circles by size.",
    "Sort the circles by size.",
    "Sort the circles by size, left to right.",
    "Sort the circles with the smallest on the left and the largest on the left.",
    "Sort the circles in ascending order, largest on the left.",
    "Sort the circles in a column, smallest at the top.",
    "Sort the circles from top to bottom, smallest to largest.",
    "Sort the circles from smallest to largest. Sort them in descending order.",
]
CASES: list[tuple[str, Order | None]] = [
    *((prompt, "ascending") for prompt in GROWING),
    *((prompt, "descending") for prompt in SHRINKING),
    *((prompt, None) for prompt in NO_ORDER),
]


@pytest.mark.parametrize(("prompt", "order"), CASES)
def test_the_order_is_the_one_that_the_words_ask_for(prompt: str, order: Order | None) -> None:
    assert words_order(prompt) == order


@pytest.mark.parametrize("order", ["ascending", "descending"])
def test_every_wording_and_move_of_our_own_says_its_order(order: Order) -> None:
    state = Circles((1024, 1024), (80, 60, 40), ((200, 200), (200, 800), (800, 800)), order)
    look = Look(0, 256)
    for wording in range(16):
        scene = WORLD.understand(WORLD.render(state, look), WORLD.prompt(state, wording, look))
        assert scene is not None
        assert scene.start.state == state
        moves = WORLD.describe([Place(2, 2), Place(1, 1)], scene.legend)
        assert order_of(moves) == order
        assert order_of(moves + " It must not go to the left, the largest is on the right.") == order
        assert ORDERS[order] in moves


@pytest.mark.parametrize("prompt", NO_ORDER)
def test_a_picture_without_an_order_in_its_prompt_is_not_understood(prompt: str) -> None:
    state = Circles((1024, 1024), (80, 40), ((200, 200), (800, 800)))
    assert WORLD.understand(WORLD.render(state, Look(0, 256)), prompt) is None
