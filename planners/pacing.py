"""A client that keeps to what its VLM's vendor allows in a minute, together with all others that ask that VLM.

It knows no vendor, and not how the turns are shared out: that is the limiter's business.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from typing import Any

from orchestrator.errors import BackendUnavailable, ReplyBlocked, ReplyUnreadable
from orchestrator.pacing import Rate
from orchestrator.ports import Clock, RateLimiter, check
from planners.questions import Clip, Question, Reply, Role, VlmClient
from planners.roles import VlmModel
from planners.vlm_options import VlmOptions

LONGEST_WAIT_SECONDS = 20.0  # here; a longer one is the loop's, which may do something else
COME_BACK_SECONDS = 50.0  # at most: a worker that is told of a longer wait lets its job wait for somebody
CHARS_PER_TOKEN = 4
PICTURE_TOKENS, FRAME_TOKENS, REPLY_TOKENS = 1000, 258, 1500
FRAMES_A_SECOND = 8.0


@dataclass
class Paced:
    """Implements planners.questions.VlmClient over another. `name` is the VLM, as all its clients call it."""

    inner: VlmClient
    name: str
    rate: Rate
    limiter: RateLimiter
    clock: Clock
    _used: dict[Role, int] = field(default_factory=dict[Role, int])

    def check(self) -> None:
        check(self.inner)

    def ask(self, question: Question) -> Reply:
        """As the other client, in turn. Raises BackendUnavailable where that would take long, too."""
        tokens = self._used.get(question.role) or estimated_tokens(question)
        turn = self.limiter.book(self.name, self.rate, tokens, LONGEST_WAIT_SECONDS)
        if not turn.id:
            raise BackendUnavailable(
                f"the limit of {_told(self.rate)} is used up for {turn.wait_seconds:.0f} s: the next question"
                " waits; raise requests_per_minute or tokens_per_minute if its vendor allows more",
                retry_after_seconds=min(turn.wait_seconds, COME_BACK_SECONDS),
                outside="the model's limit of requests is used up for now: the job goes on by itself",
            )
        if turn.wait_seconds > 0:
            self.clock.sleep(turn.wait_seconds)
        try:
            reply = self.inner.ask(question)
        except (ReplyUnreadable, ReplyBlocked) as error:
            self._correct(question.role, turn.id, error.spend.vlm_tokens)
            raise
        self._correct(question.role, turn.id, reply.spend.vlm_tokens)
        return reply

    def _correct(self, role: Role, id: str, tokens: int) -> None:
        """What a role's question used is the best guess of what its next one will."""
        if tokens:
            self._used[role] = tokens
            self.limiter.correct(self.name, id, tokens)


def estimated_tokens(question: Question) -> int:
    """Of a question and its reply, before any was asked: rather too many than too few."""
    words = len(question.system) + sum(len(part) for part in question.parts if isinstance(part, str))
    tokens = words // CHARS_PER_TOKEN + REPLY_TOKENS
    for part in question.parts:
        if isinstance(part, Clip):
            seen = min(part.footage.num_frames, part.footage.seconds * FRAMES_A_SECOND)
            tokens += round(seen * FRAME_TOKENS)
        elif not isinstance(part, str):
            tokens += PICTURE_TOKENS
    return tokens


def keeping_pace(model: Any, options: Any, limiter: RateLimiter, clock: Clock) -> Any:
    """The model over a paced client; one that asks no VLM is what it was."""
    if not isinstance(model, VlmModel) or not isinstance(options, VlmOptions):
        return model
    return replace(model, client=paced(model.client, options, limiter, clock))


def paced(client: VlmClient, options: VlmOptions, limiter: RateLimiter, clock: Clock) -> VlmClient:
    """The client itself where its options set no limit."""
    rate = Rate(options.requests_per_minute, options.tokens_per_minute)
    return Paced(client, vlm_name(options), rate, limiter, clock) if rate.is_limited else client


def vlm_name(options: Any) -> str:
    """The same for all entries that ask one model at one address with one key: they share its limit."""
    address = str(getattr(options, "base_url", "") or "").rstrip("/")
    asked = "\n".join((type(options).__name__, address, options.model, getattr(options, "api_key_env", "")))
    return hashlib.sha256(asked.encode()).hexdigest()[:24]


def _told(rate: Rate) -> str:
    said = [f"{rate.requests} requests" if rate.requests else "", f"{rate.tokens} tokens" if rate.tokens else ""]
    return f"{' and '.join(filter(None, said))} a minute"
