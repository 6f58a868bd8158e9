"""Turns shared through a real broker: by processes, by the same rule as in one, and without the broker too."""

from __future__ import annotations

import logging
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.pacing import InProcess, Rate
from storage.broker import embedded
from storage.pacing import PREFIX, SharedPacing
from storage.queue import Messages

ROOT = Path(__file__).parent.parent.parent
ASKER = """
import sys, time
from orchestrator.pacing import InProcess, Rate
from storage.pacing import SharedPacing
from storage.queue import Messages
url, shared = sys.argv[1:]
messages = Messages(url)
pacing = SharedPacing(messages.pool(2.0)) if shared == "shared" else InProcess(time.monotonic)
print("ready", flush=True)
sys.stdin.readline()
rate, end = Rate(requests=6, seconds=1.0), time.monotonic() + 2.5
while time.monotonic() < end:
    turn = pacing.book("vlm", rate, 0, 0.5)
    time.sleep(turn.wait_seconds)
    if turn.id:
        print(time.monotonic(), flush=True)
"""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with embedded(tmp_path_factory.mktemp("broker")) as url:
        yield url


@pytest.fixture
def messages(url: str) -> Iterator[Messages]:
    messages = Messages(url)
    messages._redis.flushall()
    yield messages
    messages.close()


@pytest.fixture
def pacing(messages: Messages) -> Iterator[SharedPacing]:
    pacing = SharedPacing(messages.pool(2.0))
    yield pacing
    pacing.close()


def most_in_a_window(url: str, how: str) -> tuple[int, int]:
    """Of two processes that ask as often as they may: the most requests in any 0.8 s of 1 s, and all of them."""
    command = [sys.executable, "-c", ASKER, url, how]
    children = [
        subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    said = [child.communicate(timeout=60)[0] for child in children]
    at = sorted(float(line) for line in "\n".join(said).split())
    return max(sum(begin <= each < begin + 0.8 for each in at) for begin in at), len(at)


@pytest.mark.slow
def test_two_processes_together_never_exceed_the_limit(url: str) -> None:
    most, asked = most_in_a_window(url, "shared")
    assert most <= 6
    assert asked >= 12
    assert most_in_a_window(url, "alone")[0] > 6  # as it would be if each kept to it by itself


@settings(max_examples=25, deadline=None)
@given(
    asks=st.lists(st.integers(0, 300), min_size=1, max_size=12),
    requests=st.integers(0, 4),
    tokens=st.integers(0, 500),
    longest=st.sampled_from([0.0, 1500.0, 1e6]),
)
def test_the_script_and_the_rule_give_the_same_turns(
    url: str, asks: list[int], requests: int, tokens: int, longest: float
) -> None:
    messages = Messages(url)
    shared, alone = SharedPacing(messages.pool(2.0)), InProcess(lambda: 0.0)
    rate, name = Rate(requests, tokens, seconds=1000.0), f"vlm-{time.monotonic_ns()}"
    for number, size in enumerate(asks):
        got, wanted = (limiter.book(name, rate, size, longest) for limiter in (shared, alone))
        assert bool(got.id) == bool(wanted.id)
        assert got.wait_seconds == pytest.approx(wanted.wait_seconds, abs=5.0)
        if number % 3 == 0:
            for limiter, turn in ((shared, got), (alone, wanted)):
                limiter.correct(name, turn.id, size // 2)
    shared.close()
    messages.close()


def test_a_correction_changes_that_turn_and_no_other(pacing: SharedPacing, messages: Messages) -> None:
    rate = Rate(tokens=1000)
    first, second = (pacing.book("vlm", rate, 400, 0) for _ in range(2))
    pacing.correct("vlm", first.id, 100)
    pacing.correct("vlm", "nobody's", 10**6)
    members = messages._redis.zrange(f"{PREFIX}vlm", 0, -1)
    assert sorted(members) == sorted([f"{first.id}:100".encode(), f"{second.id}:400".encode()])


def test_nothing_is_kept_for_ever(pacing: SharedPacing, messages: Messages) -> None:
    pacing.book("vlm", Rate(requests=1), 0, 20)
    assert 60_000 < messages._redis.pttl(f"{PREFIX}vlm") < 1_000_000


def test_a_broker_that_lost_everything_or_holds_something_else_is_used_again(
    pacing: SharedPacing, messages: Messages
) -> None:
    rate = Rate(requests=1)
    assert pacing.book("vlm", rate, 0, 0).id
    assert not pacing.book("vlm", rate, 0, 0).id
    messages._redis.flushall()
    messages._redis.script_flush()
    assert pacing.book("vlm", rate, 0, 0).id
    messages._redis.set(f"{PREFIX}vlm", "something else")
    assert pacing.book("vlm", rate, 0, 0).id
    messages._redis.zadd(f"{PREFIX}vlm", {"no turn of ours": 10**15 * 4})
    assert pacing.book("vlm", Rate(tokens=5), 1, 0).id == ""  # a turn far ahead, of no known size


def test_without_a_broker_a_process_keeps_to_the_limit_by_itself_and_says_so_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    messages = Messages(f"unix://{tmp_path}/nobody.sock")
    pacing = SharedPacing(messages.pool(0.5))
    rate: Any = Rate(requests=2)
    with caplog.at_level(logging.WARNING):
        turns = [pacing.book("vlm", rate, 10, 0) for _ in range(3)]
        pacing.correct("vlm", turns[0].id, 5)
    assert [bool(turn.id) for turn in turns] == [True, True, False]
    assert [record.message for record in caplog.records] == [
        record.message for record in caplog.records if "keeps to the models' limits by itself" in record.message
    ]
    assert len(caplog.records) == 1
    pacing.close()
    messages.close()
