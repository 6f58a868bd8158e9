"""A VLM's limits of requests and tokens: kept by its client, shared by all entries that mean the same VLM."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from cliploop.choosing import Wanted
from cliploop.compose import Composition
from orchestrator.errors import BackendUnavailable, ReplyUnreadable
from orchestrator.pacing import InProcess
from orchestrator.ports import Ports
from orchestrator.records import Footage, Segment, Size, Spend
from planners.catalog import build
from planners.gemini_options import GeminiOptions
from planners.openai_compatible_options import OpenAICompatibleOptions
from planners.pacing import COME_BACK_SECONDS, LONGEST_WAIT_SECONDS, Paced, estimated_tokens, paced, vlm_name
from planners.questions import Clip, Picture, Question, Reply, VlmClient
from storage.artifacts import MemoryArtifacts


@dataclass
class Clock:
    """Time that passes only in sleep."""

    at: float = 0.0
    pauses: list[float] = field(default_factory=list[float])

    def now(self) -> float:
        return self.at

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.at += seconds


@dataclass
class Counting:
    """Answers with what the question is said to have cost, and notes when it was asked."""

    clock: Clock
    costs: Sequence[int] = (1000,)
    fails: bool = False
    asked_at: list[float] = field(default_factory=list[float])

    def ask(self, question: Question) -> Reply:
        self.asked_at.append(self.clock.now())
        spend = Spend(vlm_calls=1, vlm_tokens=self.costs[min(len(self.asked_at), len(self.costs)) - 1])
        if self.fails:
            raise ReplyUnreadable("no", spend=spend)
        return Reply("{}", "STOP", spend, "counting")


def question(*parts: Any) -> Question:
    return Question("verifier", "You verify.", parts or ("Look.",), {})


def limited(clock: Clock, inner: VlmClient, **limits: int) -> VlmClient:
    return paced(inner, GeminiOptions.model_validate(limits), InProcess(clock.now), clock)


def test_questions_wait_for_their_turn_and_a_long_wait_is_handed_to_the_loop() -> None:
    clock = Clock()
    inner = Counting(clock)
    client = limited(clock, inner, requests_per_minute=2)
    client.ask(question())
    clock.at = 45.0
    client.ask(question())
    client.ask(question())
    assert inner.asked_at == [0.0, 45.0, pytest.approx(60.6)]
    with pytest.raises(BackendUnavailable, match="limit of 2 requests a minute is used up for 45 s") as caught:
        client.ask(question())
    assert caught.value.retry_after_seconds == pytest.approx(45.0)
    assert caught.value.retry_after_seconds is not None
    assert caught.value.retry_after_seconds < COME_BACK_SECONDS
    assert max(clock.pauses) <= LONGEST_WAIT_SECONDS
    assert len(inner.asked_at) == 3


def test_tokens_that_were_used_count_not_those_that_were_guessed() -> None:
    clock = Clock()
    inner = Counting(clock, costs=(100,))
    client = limited(clock, inner, tokens_per_minute=3000)
    for _ in range(20):  # a guess of 1,500 each would let two pass
        client.ask(question())
    assert inner.asked_at == [0.0] * 20


def test_the_last_question_of_a_role_is_the_guess_for_its_next() -> None:
    clock = Clock()
    inner = Counting(clock, costs=(4000,))
    client = limited(clock, inner, tokens_per_minute=10_000)
    client.ask(question())
    client.ask(question())
    with pytest.raises(BackendUnavailable, match="limit of 10000 tokens"):
        client.ask(question())
    assert len(inner.asked_at) == 2


def test_a_reply_that_cannot_be_read_counts_as_what_it_used() -> None:
    clock = Clock()
    client = limited(clock, Counting(clock, costs=(9000,), fails=True), tokens_per_minute=10_000)
    with pytest.raises(ReplyUnreadable):
        client.ask(question())
    with pytest.raises(BackendUnavailable):
        client.ask(question())


def test_without_a_limit_the_client_is_what_it_was() -> None:
    clock = Clock()
    inner = Counting(clock)
    assert limited(clock, inner) is inner


def test_a_guess_grows_with_what_is_shown() -> None:
    clip = Footage(segments=(Segment(mezzanine="a.mp4", first=0, stop=81, fps=16.0),))
    plain = estimated_tokens(question("x" * 400))
    assert plain == 1500 + (400 + len("You verify.")) // 4
    assert estimated_tokens(question("x" * 400, Picture("p.png"))) == plain + 1000
    assert estimated_tokens(question("x" * 400, Clip(clip))) == plain + round(40.5 * 258)


def test_entries_that_mean_the_same_vlm_have_one_name() -> None:
    gemini = GeminiOptions()
    assert vlm_name(gemini) == vlm_name(GeminiOptions(temperature=1.0, requests_per_minute=3))
    chat = {"model": "qwen", "base_url": "http://gpu:8000/v1"}
    others = [
        GeminiOptions(model="gemini-2.5-flash"),
        GeminiOptions(api_key_env="OTHER_KEY"),
        GeminiOptions(base_url="http://proxy:8000"),
        OpenAICompatibleOptions.model_validate(chat),
    ]
    names = {vlm_name(options) for options in (gemini, *others)}
    assert len(names) == 5
    assert vlm_name(others[-1]) == vlm_name(
        OpenAICompatibleOptions.model_validate({**chat, "base_url": "http://gpu:8000/v1/"})
    )
    assert "KEY" not in " ".join(names)


SETTINGS = """
[vlms.gemini]
type = "gemini"
requests_per_minute = 5

[planners.one]
vlm = "gemini"

[verifiers.two]
vlm = "gemini"
temperature = 0.9
"""


def ports(folder: Path) -> tuple[Ports, Ports]:
    """Of two jobs of one process."""
    (folder / "cliploop.toml").write_text(SETTINGS)
    composition = Composition.read(None, {}, folder)
    policy = composition.policy(Wanted(planner="one", verifier="two"), Size(width=64, height=64))
    clock = Clock()
    first, second = (composition.ports(policy, MemoryArtifacts(), clock=clock) for _ in range(2))
    return first, second


def test_a_planner_and_a_verifier_on_one_vlm_share_its_limit_in_all_jobs_of_a_process(tmp_path: Path) -> None:
    made = ports(tmp_path)
    models: list[Any] = [made[0].planner, made[0].verifier, made[1].planner]
    clients = [model.client for model in models]
    assert all(isinstance(client, Paced) for client in clients)
    assert len({client.name for client in clients}) == 1
    assert len({id(client.limiter) for client in clients}) == 1
    assert clients[0].rate.requests == 5


def test_a_model_that_asks_nobody_is_not_paced() -> None:
    clock = Clock()
    oracle = build("oracle", {}, None, limiter=InProcess(clock.now), clock=clock)
    assert not hasattr(oracle, "client")
