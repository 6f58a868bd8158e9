"""Which end of the row the largest circle belongs to, read from the words of a task prompt. Knows no picture.

Sentences say it in three ways: a size at an end ("the smallest on the left"), from one size to another ("small to
large"), and how sizes change ("in growing order"). The last two follow the way that the row is read, which is
from left to right if nothing else is said. Where nothing or a contradiction is said, there is no order.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from worlds.circles_rules import Order

Kind = Literal["size", "side", "turn", "end", "change", "not", "than", "word"]

SMALL = r"small\w*|tin(?:y|ier|iest)|littl\w+|mini\w*|narrow\w*|minor"
LARGE = r"larg\w*|big\w*|great\w*|huge\w*|giant\w*|max\w*|widest|wider"
RISING = r"ascend\w*|increas\w*|ris(?:e|es|ing)|grow\w*|upwards?|swell\w*"
FALLING = r"descend\w*|decreas\w*|fall(?:s|ing)?|shrink\w*|diminish\w*|declin\w*|dwindl\w*|reduc\w*"
SIDES = {"left": -1, "right": 1}
NOT_SIDES = re.compile(
    r"\bright\s+(?:away|now|angles?|after|before|next|order|place|spot|positions?|row)\b|\ball right\b"
    r"|\b(?:none|nothing|no\s+\w+)\s+(?:is\s+|are\s+)?left\b|\bat\s+least\b",
    re.IGNORECASE,
)
RANKED = re.compile(
    r"\b(?:\d+(?:st|nd|rd|th)|second|third|fourth|fifth|sixth|next)[\s-]+(?:" + SMALL + "|" + LARGE + r")\b",
    re.IGNORECASE,
)
VERTICAL = re.compile(
    r"\btop\s+(?:down\s+)?to\s+(?:the\s+)?bottom\b|\bbottom\s+(?:up\s+)?to\s+(?:the\s+)?top\b"
    r"|\bvertical\s+(?:line|column|row|stack|pile|order)\b|\bin\s+a\s+(?:column|stack|pile|tower)\b"
    r"|\b(?:on|at)\s+(?:the\s+)?(?:very\s+)?(?:top|bottom)\b",
    re.IGNORECASE,
)
HAND = r"(?:the\s+)?(?:far\s+|very\s+)?"
SIDE = r"(?:-?\s?hand)?(?:\s+(?:side|edge|end|border))?(?:\s+of\s+the\s+(?:picture|image|frame|screen|canvas))?"
TURN = re.compile(
    rf"\b(?:from\s+)?{HAND}(left){SIDE}\s*(?:to|towards?|→|->|-|–|until|through)\s*{HAND}right\b"
    rf"|\b(?:from\s+)?{HAND}(right){SIDE}\s*(?:to|towards?|→|->|-|–|until|through)\s*{HAND}left\b"
    rf"|\b(?:from|start\w*\s+(?:from|at|on|in)|begin\w*\s+(?:from|at|on|in))\s+{HAND}(?:(left)|(right))\b(?!\s*\()"
    r"|\b(?:(right)|(left))wards?\b",
    re.IGNORECASE,
)
MORE = re.compile(
    r"\b(?:gets?|getting|becom\w+|progressively|ever|increasingly|steadily|gradually)\s+"
    rf"(?:(?P<less>{SMALL})|{LARGE})\b"
    rf"|\b(?:(?P<lesser>smaller)\s+and\s+smaller|(?:bigger|larger)\s+and\s+(?:bigger|larger))\b",
    re.IGNORECASE,
)
TOKEN = re.compile(
    rf"(?P<turn_right><\+>)|(?P<turn_left><->)|(?P<more><up>)|(?P<less><down>)"
    rf"|(?P<small>\b(?:{SMALL})\b)|(?P<large>\b(?:{LARGE})\b)"
    rf"|(?P<rising>\b(?:{RISING})\b)|(?P<falling>\b(?:{FALLING})\b)"
    r"|(?P<left>\bleft(?:most)?\b)|(?P<right>\bright(?:most)?\b)"
    r"|(?P<first>\b(?:first|start\w*|begin\w*|front|lead\w*|head\w*|opens?|before|previous|preceding)\b)"
    r"|(?P<last>\b(?:last|end\w*|finish\w*|final\w*|rear|tail|clos(?:es?|ing)|after|next|following)\b)"
    r"|(?P<not>\b(?:not|never|no|don't|doesn't|without|instead|rather)\b)|(?P<than>\bthan\b)"
    r"|(?P<word>[\w']+|→|->|–|-|[,:()])",
    re.IGNORECASE,
)
JOINS = frozenset(["to", "→", "->", "–", "-", "until", "through", "toward", "towards", "then", ",", "down", "up"])
APART = frozenset(["and", "or", "next", "beside"])
FAR = 9  # words between a size and the end that it is said to be at
NEIGHBOURS = frozenset(["before", "previous", "preceding", "after", "next", "following"])
MOVED = frozenset(["move", "moves", "moving", "take", "takes", "pick", "slide", "slides"])


@dataclass(frozen=True)
class _Token:
    """A word. `value`: -1 small, left, first, falling, read to the left; 1 the opposite; 0 nothing."""

    kind: Kind
    value: int
    word: str
    index: int


def order_of(prompt: str) -> Order | None:
    """The order from left to right; None if the prompt says none, contradicts itself or wants a column."""
    if VERTICAL.search(prompt):
        return None
    text = MORE.sub(lambda m: " <down> " if m["less"] or m["lesser"] else " <up> ", _plain(prompt))
    text = TURN.sub(lambda m: " <+> " if m[1] or m[3] or m[5] else " <-> ", text)
    turns: set[int] = set()
    absolute: set[int] = set()
    relative: set[int] = set()
    for sentence in re.split(r"[.;!?\n]", text):
        tokens = _tokens(sentence)
        turns |= {token.value for token in tokens if token.kind == "turn" and not _denied(tokens, token)}
        for value, fixed in _said(tokens):
            (absolute if fixed else relative).add(value)
    if len(turns) > 1:
        return None
    turn = next(iter(turns), 1)
    said = absolute | {value * turn for value in relative}
    if len(said) != 1:
        return None
    return "ascending" if said == {1} else "descending"


def _plain(prompt: str) -> str:
    return RANKED.sub(" ranked ", NOT_SIDES.sub(" ", prompt.replace("’", "'")))


def _tokens(sentence: str) -> list[_Token]:
    named: dict[str, tuple[Kind, int]] = {
        "turn_right": ("turn", 1),
        "turn_left": ("turn", -1),
        "more": ("change", 1),
        "less": ("change", -1),
        "small": ("size", -1),
        "large": ("size", 1),
        "rising": ("change", 1),
        "falling": ("change", -1),
        "left": ("side", -1),
        "right": ("side", 1),
        "first": ("end", -1),
        "last": ("end", 1),
        "not": ("not", 0),
        "than": ("than", 0),
    }
    found: list[_Token] = []
    for index, match in enumerate(TOKEN.finditer(sentence)):
        kind, value = named.get(match.lastgroup or "word", ("word", 0))
        found.append(_Token(kind, value, match.group().lower(), index))
    return found


def _said(tokens: list[_Token]) -> Iterator[tuple[int, bool]]:
    """What a sentence says: (1 for growing, whether from left to right rather than as the row is read)."""
    held = [token for token in tokens if token.kind in ("size", "side", "end", "change")]
    used: set[int] = set()
    for size, side in _pairs(held, "side"):
        used |= {size.index, side.index}
        if not _denied(tokens, size):
            yield size.value * side.value * _turned(tokens, size, side), True
    rest = [token for token in held if token.index not in used]
    for change, side in _pairs([token for token in rest if token.kind != "size"], "side"):
        used.add(change.index)
        if not _denied(tokens, change):
            yield change.value * side.value, True
    sizes = [token for token in held if token.kind == "size"]
    for one, other in itertools.pairwise(sizes):
        if one.value != other.value and _joined(tokens, one, other):
            used |= {one.index, other.index}
            if not _denied(tokens, one):
                yield other.value, False
    rest = [token for token in held if token.index not in used]
    for size, end in _pairs([token for token in rest if token.kind != "change"], "end"):
        if not _denied(tokens, size) and _says_where(tokens, size, end):
            yield size.value * end.value * _turned(tokens, size, end), False
    for change in (token for token in rest if token.kind == "change"):
        if not _denied(tokens, change):
            yield change.value, False


def _pairs(held: list[_Token], kind: Kind) -> Iterator[tuple[_Token, _Token]]:
    """Each end with its size: the one before it, or where the sentence begins with an end, the one after it."""
    things = [token for token in held if token.kind in ("size", "change", kind)]
    index = 0
    while index + 1 < len(things):
        one, other = things[index], things[index + 1]
        if (one.kind == kind) == (other.kind == kind) or other.index - one.index > FAR:
            index += 1
            continue
        yield (other, one) if one.kind == kind else (one, other)
        index += 2


def _turned(tokens: list[_Token], size: _Token, end: _Token) -> int:
    """-1 for "bigger than the one on its left": then it is not the bigger one that is on the left."""
    return -1 if any(token.kind == "than" for token in tokens[size.index : end.index]) else 1


def _joined(tokens: list[_Token], one: _Token, other: _Token) -> bool:
    """Whether "from … to …" leads from one size to the other."""
    between = tokens[one.index + 1 : other.index]
    if any(token.kind in ("side", "than", "not") or token.word in APART for token in between):
        return False
    return any(token.word in JOINS for token in between)


def _denied(tokens: list[_Token], token: _Token) -> bool:
    """Whether a "not" stands before it in its clause."""
    for before in reversed(tokens[max(0, token.index - 4) : token.index]):
        if before.word in ",:()":
            return False
        if before.kind == "not":
            return True
    return False


def _says_where(tokens: list[_Token], size: _Token, end: _Token) -> bool:
    """Not "move the largest first", which says when; nor "before" and "next", but for "bigger than the next"."""
    low, high = sorted((size.index, end.index))
    if end.word in NEIGHBOURS and _turned(tokens, size, end) > 0:
        return False
    return not any(token.word in MOVED for token in tokens[max(0, low - 3) : high + 2])
