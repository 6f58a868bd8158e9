"""Which colour and shape plays which role, read from the words of a task prompt.

Every noun phrase with a colour or a shape is a *phrase*; each sentence votes for its role: "walls are light blue"
and "the goal, shown as a star" by saying so, "slides along the white tiles" and "never touches the gray ones" by
what is done with it. Votes add up over the whole prompt, so that no single sentence need be understood.
Knows no picture.
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from worlds.legend import ISH, MODIFIERS, NAMES, SHAPE_OF, SYNONYMS, Colour, colour_of

Role = Literal["player", "goal", "wall", "floor", "box"]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


ROLE_NOUNS: dict[Role, frozenset[str]] = {
    "player": _words(
        "player agent hero character robot explorer runner mover traveler traveller pawn avatar pusher worker "
        "keeper mouse protagonist adventurer walker sprite warehouseman rover drone traveller start"
    ),
    "goal": _words(
        "goal destination exit finish target endpoint objective home treasure prize dock storage terminus "
        "receptacle"
    ),
    "wall": _words(
        "wall obstacle barrier obstruction hedge fence rock boundary blocked impassable forbidden solid "
        "obstructed blocker boulder bush impenetrable trap hazard spike lava mine danger dangerous bomb pit hole "
        "fire poison deadly thorn acid hazardous unsafe"
    ),
    "floor": _words(
        "floor path corridor track passage route lane hallway road walkable open free empty ground traversable "
        "safe passable walkway trail pathway aisle tunnel navigable accessible"
    ),
    "box": _words("box crate pushable cargo chest parcel package barrel"),
}
TRAPS = _words(
    "trap hazard spike lava mine danger dangerous bomb pit hole fire poison deadly thorn acid hazardous unsafe"
)
NEUTRAL = _words(
    "coloured colored solid filled small large big little tiny single full shaded shaped area region "
    "zone mark marked "
    "marker symbol piece token spot position location background ones one thing element part section glyph icon "
    "sign space place field warehouse main lone tile cell outlined thick thin bold hued tinted toned "
    "color colour maze grid puzzle board "
    "same other only any each every all final central plain object figure item unit floor-tile"
)
DETERMINERS = _words("the a an this that these those its their any each every all some of either both")
LINKS = (
    _words(
        "is are was be being as in with = : – — → - ( represented shown marked drawn depicted displayed "
        "indicated "
        "given rendered coloured colored painted filled denoted denotes appear appears look looks like made "
        "consisting by using represents represent marks mark shows show means mean stands stand for serves serve "
        "acts act indicates indicate signals considered counts count treated form forms make makes up can called "
        "equals symbolises symbolizes has have am"
    )
    | DETERMINERS
    | NEUTRAL
)
VERB_LINKS = LINKS - DETERMINERS - NEUTRAL - frozenset(["in", "with", "by", "using", "can", "like"])
MOTION = _words(
    "slide move travel roll glide walk navigate go head advance run proceed crawl step make start traverse cross "
    "pass escape hurry rush race dash hop jump march stroll wander venture journey fly drive ride creep sneak "
    "climb swim drift float return"
)
ARRIVING = _words("get reach come arrive enter find take follow set end")  # of a player if right after it
SENDING = _words("make let have show watch see animate get")  # "let the red circle cross the field"
CARRIED = _words("brought led taken moved guided steered sent escorted helped driven")
WAYS = _words("way path route passage course")
STEER = _words(
    "move guide slide lead bring steer take navigate get drive send direct help walk roll escort pilot"
)
ALONG = _words(
    "along through across over via within inside follow following traverse traversing between using on"
)
TOWARDS = _words("to onto into reach reaching toward towards until at find finding enter entering touch touching")
STOP_PLACES = _words("on at in with onto inside")
WALKED = _words("walked entered crossed visited stepped used travelled traveled traversed taken")
MODALS = _words("wants needs has must should tries shall starts begins wishes seeks")
STOPS = _words("stop stopping end ending rest resting land landing finish halt halting park arrive arriving")
AVOID = _words(
    "never not no without avoid avoiding cannot can't don't doesn't mustn't won't nor neither away off clear "
    "instead refrain except isn't shouldn't dies die loses lose fails fail explodes perishes"
)
RESETS = _words(
    "but while then until only stay staying keep keeping remain remaining stopping reach reaching stop"
)
TOKEN = re.compile(
    r"#[0-9a-f]{3,6}\b|rgb\s*\([^)]*\)|\(\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\)|[a-z]+(?:'[a-z]+)?|[.,;:()=–—→!?\n×✕✖✗-]"
)


@dataclass(frozen=True)
class Phrase:
    """A noun phrase of the prompt: `"light blue square"`."""

    words: str
    colour: Colour | None = None
    shape: str | None = None


@dataclass(frozen=True)
class Asked:
    """What a prompt says about a grid picture."""

    phrases: Mapping[Role, tuple[Phrase, ...]] = field(default_factory=dict[Role, tuple[Phrase, ...]])
    traps: bool = False  # what must be avoided is called a trap
    walls: bool = False  # what must be avoided is called a wall
    pushes: bool = False  # something is pushed
    moves: bool = False  # it speaks of a player and of where that shall get to

    @property
    def about_grid(self) -> bool:
        """Whether it says at all that a piece moves; a picture alone is not enough to tell."""
        return self.moves or bool(self.of("player")) or bool(self.of("box"))

    def of(self, role: Role) -> tuple[Phrase, ...]:
        return self.phrases.get(role, ())


@dataclass(frozen=True)
class _Item:
    """A word, a role noun or a phrase (index ≥ 0) of a sentence."""

    word: str
    role: Role | None = None
    phrase: int = -1


def _stem(word: str) -> str:
    """The singular of a noun, the base of a verb in -s; good enough for the word lists above."""
    if word.endswith("'s"):
        word = word[:-2]
    if word.endswith(("xes", "shes", "ches", "sses", "oes")):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is", "as")):
        return word[:-1]
    return word


def read_prompt(prompt: str) -> Asked:
    """Roles of every phrase that the prompt votes for; an empty prompt asks for nothing."""
    text = re.sub(r"(?<=[a-z])-(?=[a-z])", " ", prompt.lower().replace("’", "'"))
    tokens: list[str] = TOKEN.findall(text)
    stems = {_stem(token) for token in tokens}
    pushes = any(token.startswith("push") for token in tokens)
    phrases: list[Phrase] = []
    votes: dict[tuple[int, Role], float] = defaultdict(float)
    sentence: list[str] = []
    for token in [*tokens, "."]:
        if token not in (".", ";", "!", "?", "\n"):
            sentence.append(token)
            continue
        items = _items(sentence, phrases, votes)
        _equations(items, votes)
        _actions(items, votes, pushes)
        sentence = []
    return Asked(
        phrases=_decide(phrases, votes, pushes),
        traps=bool(stems & TRAPS),
        walls=bool(stems & (ROLE_NOUNS["wall"] - TRAPS - {"solid"})),
        pushes=pushes,
        moves=bool(stems & (ROLE_NOUNS["player"] - {"start"})) and bool(stems & ROLE_NOUNS["goal"]),
    )


def _items(sentence: list[str], phrases: list[Phrase], votes: dict[tuple[int, Role], float]) -> list[_Item]:
    """Find the noun phrases of a sentence; a role noun inside one ("light blue walls") is a strong vote."""
    items: list[_Item] = []
    index = 0
    while index < len(sentence):
        stop, colour = _colour_at(sentence, index)
        shape = _shape_at(sentence, index, items)
        if colour is None and shape is None:
            items.append(_Item(sentence[index], _role_noun(sentence[index])))
            index += 1
            continue
        if colour is not None:
            while items and (items[-1].word in NEUTRAL or items[-1].word in SHAPE_OF) and items[-1].phrase < 0:
                shape = SHAPE_OF.get(items.pop().word)
        words = sentence[index:stop]
        roles: list[Role] = list[Role]()
        index = max(stop, index)
        while index < len(sentence) and _in_noun_phrase(sentence, index):
            word = _stem(sentence[index])
            if shape is not None and sentence[index] == "cross":
                break  # "make the teal triangle cross the field"
            shape = shape or SHAPE_OF.get(word)
            role = _role_noun(sentence[index])
            if role is not None:
                roles.append(role)
            words.append(sentence[index])
            index += 1
        phrases.append(Phrase(" ".join(words), colour, shape))
        for role in roles:
            votes[len(phrases) - 1, role] += 1.0 if role == "box" else 3.0
        items.append(_Item(words[-1] if words else "", None, len(phrases) - 1))
    return items


def _colour_at(sentence: list[str], index: int) -> tuple[int, Colour | None]:
    """The longest colour phrase that starts here: (index after it, colour)."""
    for stop in range(min(len(sentence), index + 4), index, -1):
        part = sentence[index:stop]
        first = SYNONYMS.get(part[0], part[0])
        if first in NAMES or first in MODIFIERS or first in ISH or part[0][0] in "#(r" or first == "off":
            colour = colour_of(" ".join(part))
            if colour is not None:
                return stop, colour
    return index, None


def _shape_at(sentence: list[str], index: int, items: list[_Item]) -> str | None:
    """A shape that stands alone as a noun ("the star"), not one that belongs to a verb ("it crosses into")."""
    word = _stem(sentence[index])
    shape = SHAPE_OF.get(word)
    if shape is None or shape == "square" or sentence[index] in ("round", "circular"):
        return None
    before = items[-1].word if items else ""
    if shape == "cross":
        return shape if before in DETERMINERS or word in ("x", "×", "✕", "✖", "✗") else None
    return shape


def _in_noun_phrase(sentence: list[str], index: int) -> bool:
    word = _stem(sentence[index])
    if sentence[index] in ("mark", "marks", "marked", "crosses", "steps"):
        return False
    if SHAPE_OF.get(word) == "cross":
        return word in ("x", "×", "✕", "✖", "✗") or index > 0
    return word in NEUTRAL or word in SHAPE_OF or _role_noun(sentence[index]) is not None


def _role_noun(token: str) -> Role | None:
    word = _stem(token)
    for role, nouns in ROLE_NOUNS.items():
        if word in nouns or token in nouns:
            return role
    return None


def _equations(items: list[_Item], votes: dict[tuple[int, Role], float]) -> None:
    """ "Walls are light blue", "the goal, shown as a star", "red = player", "the red x (traps)"."""
    marks = [i for i, item in enumerate(items) if item.role is not None or item.phrase >= 0]
    for left, right in itertools.pairwise(marks):
        a, b = items[left], items[right]
        if (a.phrase >= 0) == (b.phrase >= 0):
            continue
        between = [item.word for item in items[left + 1 : right]]
        if (
            any(word not in LINKS and _stem(word) not in NEUTRAL and word not in (",", ")") for word in between)
            or len(between) > 8
        ):
            continue
        phrase, role = (a.phrase, b.role) if a.phrase >= 0 else (b.phrase, a.role)
        if role is None or (between[:1] == ["for"] and items[left].role == "floor"):
            continue  # "a path for the red circle"
        if any(word in VERB_LINKS for word in between):
            votes[phrase, role] += 3.0
        elif any(word in ("in", "with", "by", "using", "like") for word in between):
            votes[phrase, role] += 2.0
        elif not between or "," in between:
            votes[phrase, role] += 0.5


def _actions(items: list[_Item], votes: dict[tuple[int, Role], float], pushes: bool) -> None:
    """What is done with a phrase says what it is."""
    avoiding = False
    for i, item in enumerate(items):
        if item.phrase < 0:
            avoiding = (avoiding and not _resets(items, i)) or item.word in AVOID
            continue
        before, after = _before(items, i), [item.word for item in items[i + 1 : i + 9]]
        if pushes:
            _pushing(before, after, item.phrase, votes)
        if avoiding:
            leaving = any(word.startswith("leav") for word in before[-2:])
            pulling = any(word.startswith("pull") for word in before[-2:])
            role: Role = "floor" if leaving else "box" if pulling else "wall"
            votes[item.phrase, role] += 1.5
            continue
        _governed(before, item.phrase, votes)
        if before and _base(before[-1]) in SENDING | STEER and after and _base(after[0]) in MOTION | ARRIVING:
            votes[item.phrase, "player"] += 0.5
        _doing(after, item.phrase, votes, 0.5 if pushes else 1.0)


def _governed(before: list[str], phrase: int, votes: dict[tuple[int, Role], float]) -> None:
    """The verb or preposition before a phrase: "slides along", "stops on", "guide"."""
    last = before[-1] if before else ""
    stopping = any(_base(word) in STOPS or word.startswith("align") for word in before[-3:])
    if (last in STOP_PLACES and stopping) or _base(last) in ("cover", "occupy"):
        votes[phrase, "goal"] += 2.0
    elif last in ALONG:
        votes[phrase, "floor"] += 1.5
    elif last in TOWARDS or _base(last) in TOWARDS:
        votes[phrase, "goal"] += 1.0
    elif last == "from":
        votes[phrase, "player"] += 0.6
    elif _base(last) in STEER or (last == "for" and any(_stem(word) in WAYS for word in before[:-1])):
        votes[phrase, "player"] += 1.0
    elif before[-2:] in (["reached", "by"], ["crossed", "by"]):
        votes[phrase, "player"] += 1.5
    elif last == "behind":
        votes[phrase, "box"] += 1.0


def _doing(after: list[str], phrase: int, votes: dict[tuple[int, Role], float], weight: float) -> None:
    """The verb after a phrase: "moves", "wants to get to", "can be walked on"."""
    if "can" in after[:3] and any(word in WALKED for word in after[:6]):
        votes[phrase, "floor"] += 2.0
        return
    if after[:1] and after[0] in MODALS and not {"be", "is", "not"} & set(after[:2]):
        votes[phrase, "player"] += 1.0
        return
    if after[:2] == ["is", "to"] or (after[1:2] == ["be"] and after[2:3] and after[2] in CARRIED):
        votes[phrase, "player"] += 1.0
        return
    next_word = next((word for word in after[:2] if not word.endswith("ly") and word not in ("can", "will")), "")
    verbs = [word for word in after[:4] if _base(word) in MOTION]
    moving = verbs and not set(after[: after.index(verbs[0])]) & (TOWARDS | ALONG | {"when", ","})
    if moving or _base(next_word) in ARRIVING:
        votes[phrase, "player"] += weight


def _pushing(before: list[str], after: list[str], phrase: int, votes: dict[tuple[int, Role], float]) -> None:
    if any(word.startswith("push") and word != "pushed" for word in before[-2:]):
        votes[phrase, "box"] += 3.0
    elif any(word == "pushed" for word in after[:5]):
        votes[phrase, "box"] += 2.0
    elif any(word in ("push", "pushes", "pushing") for word in after[:3]):
        votes[phrase, "player"] += 2.0
    if before and before[-1] == "by":
        votes[phrase, "player"] += 2.0


def _before(items: list[_Item], index: int) -> list[str]:
    """Words before a phrase up to the previous one, determiners and adjectives left out."""
    words: list[str] = []
    for item in reversed(items[:index]):
        if item.phrase >= 0 or len(words) >= 6:
            break
        if item.word not in DETERMINERS and item.word not in NEUTRAL:
            words.append(item.word)
    return words[::-1]


def _resets(items: list[_Item], index: int) -> bool:
    """Whether a negation ends here: "without touching blue, staying on white"."""
    if items[index].word not in RESETS:
        return False
    following = {item.word for item in items[index + 1 : index + 3]}
    return not following & {"away", "off", "clear", "out"}


def _base(word: str) -> str:
    """The base of a verb: slides, sliding, stopped, stopping."""
    if word.endswith("ies") and word[:-3] + "y" in MOTION:
        return word[:-3] + "y"
    for ending in ("ing", "ped", "ed", "es", "s"):
        root = word.removesuffix(ending)
        if root == word:
            continue
        for candidate in (root, root + "e", root[:-1] if root[-1:] == root[-2:-1] else root):
            if any(candidate in verbs for verbs in (MOTION, STEER, STOPS, TOWARDS, ARRIVING)):
                return candidate
    return word


def _decide(
    phrases: list[Phrase], votes: dict[tuple[int, Role], float], pushes: bool
) -> dict[Role, tuple[Phrase, ...]]:
    """Merge equal phrases, give each to the role that most votes are for."""
    keys = _merged(phrases)
    totals: dict[tuple[Phrase, Role], float] = defaultdict(float)
    for (index, role), weight in votes.items():
        named: Role = "goal" if role == "box" and not pushes else role
        totals[keys[index], named] += weight
    chosen: dict[Role, list[tuple[float, Phrase]]] = defaultdict(list)
    for phrase in dict.fromkeys(keys):
        roles: dict[Role, float] = {role: w for (other, role), w in totals.items() if other == phrase}
        if not roles:
            continue
        best = max(roles, key=lambda role: roles[role])
        if roles[best] >= 0.5:
            chosen[best].append((roles[best], phrase))
    return {role: tuple(p for _, p in sorted(found, key=lambda pair: -pair[0])) for role, found in chosen.items()}


def _merged(phrases: list[Phrase]) -> list[Phrase]:
    """One phrase per colour and shape; "red" joins "red circle" where no other red thing is named."""
    shapes: dict[str, set[str]] = defaultdict(set)
    for phrase in phrases:
        if phrase.colour and phrase.shape:
            shapes[phrase.colour.words].add(phrase.shape)
    first: dict[tuple[str, str | None], Phrase] = {}
    merged: list[Phrase] = []
    for phrase in phrases:
        words = phrase.colour.words if phrase.colour else ""
        shape = phrase.shape
        if shape is None and len(shapes[words]) == 1:
            shape = next(iter(shapes[words]))
        named = " ".join(part for part in (words, shape if shape != "cross" else "x") if part)
        merged.append(first.setdefault((words, shape), Phrase(named, phrase.colour, shape)))
    return merged
