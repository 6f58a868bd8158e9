"""Sorting circles in words: task prompts, what a foreign prompt asks for, sentences about moves."""

from __future__ import annotations

import re
from collections.abc import Sequence

from worlds import circles_order
from worlds.circles_rules import Aside, CircleMove, Circles, Legend, Order, Place

ORDINALS = ("largest", "2nd largest", "3rd largest", *(f"{n}th largest" for n in range(4, 21)))
WORDINGS = (
    "The picture shows {count} circles of different sizes{colours}. Move them, one at a time, into one "
    "horizontal row in the middle of the picture, sorted by size from {order} from left to right, with equal "
    "gaps and the row centred. Sizes and colours stay as they are.",
    "Arrange the {count} circles{colours} by circumference, from {order}, left to right. They end on a common "
    "horizontal line, the whole row centred in the image. Only positions change; the camera is fixed.",
    "Sort these circles{colours} by diameter: a single row at mid-height, left to right from {order}. Each "
    "circle slides on its own; no circle changes its size or colour. Static view.",
    "Line up all {count} circles{colours} on the horizontal centre line in order of size ({order}, reading from "
    "left to right), evenly spaced and centred. Move one circle after another.",
)
ACTION = re.compile(
    r"(?:^|(?<=[.!?\n]))\s*(?:then\s+)?the\s+(?:[a-z ]+\s)?circle\s+"
    r"\((?:(?P<rank>\d{1,2})(?:nd|rd|th)\s+)?largest\)\s+moves\s+"
    r"(?:to\s+position\s+(?P<slot>\d{1,2})|aside,\s+out)\s+of\s+the\s+row\s+from\s+(?P<order>\w+\s+to\s+\w+)"
    r"(?(slot)|,\s+to\s+(?P<along>\d{1,2})\s*%\s+of\s+the\s+width\s+and\s+(?P<down>\d{1,2})\s*%\s+of\s+the"
    r"\s+height)\.",
    re.IGNORECASE,
)
ORDERS: dict[Order, str] = {"descending": "largest to smallest", "ascending": "smallest to largest"}
_TASK = re.compile(r"circ|dis[ck]s?\b|balls?\b|dots?\b", re.I)
_SORT = re.compile(r"sort|arrang|order|line up|rank|align", re.I)


def task(state: Circles, wording: int, colours: tuple[str, ...]) -> str:
    """The task prompt; colours, largest circle first, are named by every second wording."""
    named = colours if (wording // len(WORDINGS)) % 2 and colours else ()
    words = f" ({', '.join(sorted(set(named)))})" if named else ""
    return WORDINGS[wording % len(WORDINGS)].format(
        count=len(state.radii), colours=words, order=ORDERS[state.order]
    )


def order_of(prompt: str) -> Order | None:
    """The row's order from left to right, as a move's sentence has it or else as the task's words do."""
    named: set[Order] = {order for order in _orders_of_moves(prompt)}
    if named:
        return next(iter(named)) if len(named) == 1 else None
    return circles_order.order_of(prompt)


def _orders_of_moves(text: str) -> list[Order]:
    orders: dict[str, Order] = {words: order for order, words in ORDERS.items()}
    found = [" ".join(match["order"].lower().split()) for match in ACTION.finditer(text)]
    return [orders[words] for words in found if words in orders]


def states_task(prompt: str) -> bool:
    """Whether the prompt asks for circles to be sorted."""
    return bool(_TASK.search(prompt) and _SORT.search(prompt))


def sentence(action: CircleMove, legend: Legend, first: bool) -> str:
    """One move."""
    colour = f"{legend.colours[action.rank - 1]} " if action.rank <= len(legend.colours) else ""
    mover = f"{'The' if first else 'Then the'} {colour}circle ({ORDINALS[action.rank - 1]}) moves"
    row = f"of the row from {ORDERS[legend.order]}"
    if isinstance(action, Place):
        return f"{mover} to position {action.slot} {row}."
    return f"{mover} aside, out {row}, to {action.along} % of the width and {action.down} % of the height."


def outcome(actions: Sequence[CircleMove]) -> str:
    """Where the circles stand after these moves."""
    placed = {action.rank: action.slot for action in actions if isinstance(action, Place)}
    aside = [action for action in actions if isinstance(action, Aside) and action.rank not in placed]
    parts = [
        f"the {ORDINALS[rank - 1]} circle stands at position {slot}"
        for rank, slot in sorted(placed.items(), key=lambda pair: pair[1])
    ]
    told = [_listed(parts) + " of the row at mid-height"] if parts else []
    told += [
        f"the {ORDINALS[move.rank - 1]} circle waits aside at {move.along} % of the width and "
        f"{move.down} % of the height"
        for move in aside
    ]
    listed = _listed(told)
    return listed[0].upper() + listed[1:] + "; every other circle has not moved."


def _listed(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]


def actions_in(text: str) -> list[CircleMove]:
    """The moves that a text asks for, in order."""
    found: list[CircleMove] = []
    for match in ACTION.finditer(text):
        rank = int(match["rank"] or 1)
        if rank > 0 and match["slot"] is None:
            found.append(Aside(rank, int(match["along"]), int(match["down"])))
        elif rank > 0 and int(match["slot"]) > 0:
            found.append(Place(rank, int(match["slot"])))
    return found
