"""The tower of Hanoi in words: task prompts, the goal peg of a prompt, sentences about moves."""

from __future__ import annotations

import re

from worlds.hanoi_rules import PEGS, Move, Towers

SIDES = ("left", "middle", "right")
WORDINGS = (
    "Tower of Hanoi with {count} discs on three pegs A, B and C, from left to right. Bring all discs to peg "
    "{goal}. Disc 1 is the smallest. Move one disc at a time, only the topmost of a peg, and never lay a larger "
    "disc on a smaller one. Use {moves}. The camera stays fixed.",
    "Solve this Tower of Hanoi: every disc must end on peg {goal} (the {side} one). Disc 1 is the smallest. A "
    "disc is lifted off its peg, carried across and lowered; larger discs never rest on smaller ones. The fewest "
    "moves are {number}.",
    "The picture shows three pegs, called A, B, C, and {count} discs; disc 1 is the smallest. Stack them all on "
    "the {side} peg in {moves}, one disc after another, a smaller disc always above a larger one. Static view, "
    "no cuts.",
)
ACTION = re.compile(
    r"(?:^|(?<=[.!?\n]))\s*(?:then\s+)?disc\s+(\d{1,2})(?:\s+\((?:disc\s+1\s+is\s+)?the\s+smallest\))?"
    r"\s+moves\s+from\s+peg\s+([ABC])\s+to\s+peg\s+([ABC])\.",
    re.IGNORECASE,
)
_PEG = r"(?:peg|rod|pole|tower|post|needle|stick)"
_TO = r"(?:to|onto|on|at|in)\s+(?:the\s+)?"
_LETTER = re.compile(rf"\b{_TO}(?:(?:target|goal|destination)\s+)?{_PEG}\s+([ABC123])\b", re.I)
_SIDE = re.compile(rf"\b{_TO}(left|middle|central|centre|center|right)(?:[\s-]*(?:most|hand))?\s+{_PEG}", re.I)
_SOURCE = re.compile(r"\b(?:currently|now|starts?|starting|initial(?:ly)?|begins?|from)\b", re.I)


def task(state: Towers, count: int, wording: int) -> str:
    """The task prompt in one of several wordings."""
    number = "1 move" if count == 1 else f"{count} moves"
    return WORDINGS[wording % len(WORDINGS)].format(
        count=state.count, goal=PEGS[state.goal], side=SIDES[state.goal], moves=number, number=count
    )


def goal_of(prompt: str) -> int:
    """The peg (0, 1, 2) on which the prompt wants the discs; C where it names none."""
    found = 2
    for sentence in re.split(r"(?<=[.;!?])\s|\n", ACTION.sub("", prompt)):
        if letter := _LETTER.search(sentence):
            found = "ABC123".index(letter[1].upper()) % 3
        elif (side := _SIDE.search(sentence)) and not _SOURCE.search(sentence[: side.start()]):
            found = {"l": 0, "m": 1, "c": 1, "r": 2}[side[1][0].lower()]
        else:
            continue
        break
    return found


def states_task(prompt: str) -> bool:
    """Whether the prompt asks for towers to be moved."""
    return bool(re.search(rf"hanoi|{_PEG}s?\b", prompt, re.I) and re.search(r"dis[ck]s?|rings?", prompt, re.I))


def sentence(move: Move, first: bool) -> str:
    """One move; the first one says how discs are counted."""
    begin = "Disc" if first else "Then disc"
    counted = "" if not first else " (the smallest)" if move.disc == 1 else " (disc 1 is the smallest)"
    return f"{begin} {move.disc}{counted} moves from peg {PEGS[move.source]} to peg {PEGS[move.target]}."


def moves_in(text: str) -> list[Move]:
    """The moves that a text asks for, in order."""
    found = [
        (int(disc), PEGS.index(one.upper()), PEGS.index(other.upper()))
        for disc, one, other in ACTION.findall(text)
    ]
    return [Move(disc, source, target) for disc, source, target in found if disc > 0]
