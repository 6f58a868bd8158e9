"""What a vision-language model is asked and what it sends back; knows no vendor, no wording, no reply's form.

A client (`planners.gemini`, `planners.openai_compatible`) turns a Question into one request and its answer into
a Reply. Pictures and clips are named by artifact key: how they are shown is the client's business.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

from orchestrator.records import ArtifactKey, Footage, Spend

Role = Literal["planner", "verifier", "router", "assessor", "selector"]


@dataclass(frozen=True)
class Picture:
    """One still: an RGB PNG on the canvas."""

    key: ArtifactKey


@dataclass(frozen=True)
class Clip:
    """Footage: shown as raw video where the model takes it, else as frames of it in order."""

    footage: Footage


Part: TypeAlias = str | Picture | Clip


@dataclass(frozen=True)
class Question:
    """One ask. `parts` are text, pictures and clips in the order in which they are read.

    `schema` is the JSON schema (draft 2020-12) of the reply; `seed` is the same for the same ask of the same job.
    """

    role: Role
    system: str
    parts: tuple[Part, ...]
    schema: Mapping[str, Any]
    temperature: float = 0.2
    seed: int = 0


@dataclass(frozen=True)
class Reply:
    """What came back, unread. `finish_reason` is the vendor's own word; `planners.replies` knows what it means.

    `sent` says in phrases what the model was shown ("81 frames as video at 8 fps, 214 KB"), for the trajectory.
    """

    text: str | None
    finish_reason: str | None
    spend: Spend
    model: str
    sent: tuple[str, ...] = field(default=())


class VlmClient(Protocol):
    """Asks one model of one vendor, once."""

    def ask(self, question: Question) -> Reply:
        """One request and its answer; a retry is the caller's.

        Raises BackendUnavailable (busy, down, over its quota: with the server's Retry-After),
        BackendMisconfigured (no key, wrong key, unknown model), ReplyBlocked (a safety filter),
        ReplyUnreadable (no text at all).
        """
        ...
