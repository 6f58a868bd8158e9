"""Finds JSON objects in a model's reply, nearly-JSON included; never completes what was cut off, never evaluates.

A small reader of our own: json5 wants a whole document (a reply has prose, fences and second thoughts around it),
and json-repair closes what was cut off, so that half an `accept` becomes a whole one.
Tolerated: prose, fences, single or typographic quotes, bare keys, trailing commas, comments, Python's literals,
raw line breaks in strings. Broken: all else, a key given twice with differing values, nesting beyond MAX_DEPTH.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

Value: TypeAlias = "str | float | bool | list[Value] | dict[str, Value] | None"

MAX_DEPTH = 32
MAX_LENGTH = 300_000  # characters of a reply; the longest replies of today's models hold some 65 000 tokens
MAX_COST = 1_000_000  # characters looked at in all: a hostile reply ends in bounded time
MAX_QUOTED = 20_000  # characters of a single-quoted string, whose end has to be searched for

TOKEN_COST = 20  # what a step of reading costs, in characters

_SPACE = re.compile(r"\s+|//[^\n]*|#[^\n]*")
_DOUBLE = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_CURLY = re.compile(r"[“”„][^“”\\]*(?:\\.[^“”\\]*)*[“”]", re.DOTALL)
_SINGLE_END = re.compile(r"['‘’](?=\s{0,64}[,:}\]])")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,4})?(?![\w.])")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*|[+-]Infinity")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_LONE = re.compile("[\ud800-\udfff]")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_STARTS = re.compile(r"[{\[]")
_OBJECT_LIKE = re.compile(r"\[?\s*\{\s*(?:[\"'“”„‘’]|[A-Za-z_]\w*\s*:)")

_LITERALS: dict[str, Value] = {
    **{word: True for word in ("true", "True", "TRUE")},
    **{word: False for word in ("false", "False", "FALSE")},
    **{word: None for word in ("null", "None", "NULL", "undefined")},
    **{word: float("nan") for word in ("NaN", "nan")},
    **{word: float("inf") for word in ("Infinity", "+Infinity", "inf")},
    "-Infinity": float("-inf"),
}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": " ", "f": " "}


class Broken(ValueError):
    """Not an object; `position` is where reading stopped."""

    def __init__(self, position: int) -> None:
        super().__init__(f"broken at {position}")
        self.position = position


@dataclass(frozen=True)
class Found:
    """Top-level values that hold objects, in order: one group per value, a list of objects is one group.

    `broken_at`: the furthest position at which something that began like an object broke off, or None.
    `last_start`: where the last group begins. `prose`: the text before, between and after the groups,
    in order, so one more than there are groups.
    """

    groups: tuple[tuple[dict[str, Value], ...], ...]
    broken_at: int | None
    last_start: int
    prose: tuple[str, ...]

    @property
    def objects(self) -> list[dict[str, Value]]:
        return [item for group in self.groups for item in group]


def find(text: str) -> Found:
    """All complete objects of a text, keys in lower case. Linear in its length, but for a bounded search.

    The caller keeps to MAX_LENGTH characters; MAX_COST bounds the search whatever the length.
    """
    reader = _Reader(text)
    groups: list[tuple[dict[str, Value], ...]] = []
    prose: list[str] = []
    broken_at: int | None = None
    position = last_start = end = 0
    while (start := _STARTS.search(text, position)) is not None:
        try:
            value, position = reader.value(start.start(), 0)
        except Broken as error:
            position = start.end()
            if error.position < 0 or _OBJECT_LIKE.match(text, start.start()):
                broken_at = max(broken_at or 0, len(text) if error.position < 0 else error.position)
            if error.position < 0:
                break
            continue
        group = _objects(value)
        if group:
            groups.append(group)
            prose.append(text[end : start.start()])
            last_start, end = start.start(), position
    return Found(tuple(groups), broken_at, last_start, (*prose, text[end:]))


def clean(text: str) -> str:
    """Text that any store and any terminal can hold: no control characters, no lone surrogates."""
    paired = _PAIR.sub(lambda pair: pair.group().encode("utf-16", "surrogatepass").decode("utf-16"), text)
    return _CONTROL.sub(" ", _LONE.sub("\ufffd", paired))


def _objects(value: Value) -> tuple[dict[str, Value], ...]:
    if isinstance(value, dict):
        return (value,)
    if isinstance(value, list):
        return tuple(item for item in value if isinstance(item, dict))
    return ()


def _same(one: Value, other: Value) -> bool:
    return type(one) is type(other) and one == other


class _Reader:
    """Recursive descent, as deep as MAX_DEPTH; `cost` counts the characters looked at."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.cost = 0
        self.comments_end = text.rfind("*/")

    def value(self, at: int, depth: int) -> tuple[Value, int]:
        if depth > MAX_DEPTH:
            raise Broken(at)
        self._pay(TOKEN_COST)
        at = self._space(at)
        first = self.text[at : at + 1]
        if first == "{":
            return self._object(at + 1, depth)
        if first == "[":
            return self._list(at + 1, depth)
        if first and first in "\"'“”„‘’":
            return self._string(at)
        if number := _NUMBER.match(self.text, at):
            self._pay(len(number.group()))
            return float(number.group()), number.end()
        word = _WORD.match(self.text, at)
        if word is None or word.group() not in _LITERALS:
            raise Broken(at)
        return _LITERALS[word.group()], word.end()

    def _object(self, at: int, depth: int) -> tuple[Value, int]:
        found: dict[str, Value] = {}
        while True:
            at = self._space(at)
            if self.text.startswith("}", at):
                return found, at + 1
            key, at = self._key(at)
            at = self._space(at)
            if not self.text.startswith(":", at):
                raise Broken(at)
            value, at = self.value(at + 1, depth + 1)
            if key in found and not _same(found[key], value):
                raise Broken(at)
            found[key] = value
            at = self._separator(at, "}")

    def _list(self, at: int, depth: int) -> tuple[Value, int]:
        found: list[Value] = []
        while True:
            at = self._space(at)
            if self.text.startswith("]", at):
                return found, at + 1
            value, at = self.value(at, depth + 1)
            found.append(value)
            at = self._separator(at, "]")

    def _separator(self, at: int, closing: str) -> int:
        """Past a comma, or at the closing bracket."""
        at = self._space(at)
        if self.text.startswith(",", at):
            return at + 1
        if self.text.startswith(closing, at):
            return at
        raise Broken(at)

    def _key(self, at: int) -> tuple[str, int]:
        self._pay(TOKEN_COST)
        if self.text[at : at + 1] in tuple("\"'“”„‘’"):
            key, at = self._string(at)
            return key.strip().casefold(), at
        word = _WORD.match(self.text, at)
        if word is None:
            raise Broken(at)
        return word.group().casefold(), word.end()

    def _string(self, at: int) -> tuple[str, int]:
        quote = self.text[at]
        if quote in "'‘’":
            closing = _SINGLE_END.search(self.text, at + 1, at + MAX_QUOTED)
            self._pay((closing.end() if closing else min(len(self.text), at + MAX_QUOTED)) - at)
            if closing is None:
                raise Broken(at)
            return _unescape(self.text[at + 1 : closing.start()]), closing.end()
        whole = (_DOUBLE if quote == '"' else _CURLY).match(self.text, at)
        self._pay(len(whole.group()) if whole else len(self.text) - at)
        if whole is None:
            raise Broken(len(self.text))
        return _unescape(whole.group()[1:-1]), whole.end()

    def _space(self, at: int) -> int:
        while True:
            if self.text.startswith("/*", at) and at + 2 <= self.comments_end:
                end = self.text.index("*/", at + 2) + 2
            elif space := _SPACE.match(self.text, at):
                end = space.end()
            else:
                return at
            self._pay(end - at)
            at = end

    def _pay(self, characters: int) -> None:
        self.cost += characters
        if self.cost > MAX_COST:
            raise Broken(-1)


def _unescape(inner: str) -> str:
    def one(match: re.Match[str]) -> str:
        code = match.group(1)
        return chr(int(code[1:], 16)) if len(code) == 5 else _ESCAPES.get(code, code)

    return clean(_ESCAPE.sub(one, inner) if "\\" in inner else inner)
