"""Prompt evolution: the diagnosis of a rejected clip is folded into the prompt, without another model call.

Always from the original instruction, never from the evolved one: public reports show quality falling over
retries when each correction drowns the detail of the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.records import FailureKind

# What a quick check, which has no words of its own, suggests.
QUICK_SUGGESTIONS: dict[FailureKind, str] = {
    "no_motion": "The described motion must be clearly visible.",
    "first_frame": "The video must begin with exactly the given picture.",
}


@dataclass(frozen=True)
class Evolved:
    """A prompt for the next attempt, and the suggestions that did not fit."""

    prompt: str
    dropped: tuple[str, ...] = ()


def evolve(instruction: str, suggestions: Sequence[str], limit: int) -> Evolved:
    """The instruction plus the latest suggestions that fit into `limit` characters.

    `suggestions` are in order of time; a repeated one counts once, at its latest place.
    """
    latest_first: list[str] = []
    for suggestion in reversed(suggestions):
        text = " ".join(suggestion.split())
        if text and _plain(text) not in {_plain(known) for known in (instruction, *latest_first)}:
            latest_first.append(text)
    kept: list[str] = []
    dropped: list[str] = []
    room = limit - len(instruction)
    for text in latest_first:
        if len(text) + 1 <= room:
            kept.append(text)
            room -= len(text) + 1
        else:
            dropped.append(text)
    return Evolved(" ".join([instruction, *reversed(kept)]), tuple(reversed(dropped)))


def _plain(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(".!")
