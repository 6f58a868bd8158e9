"""Messages on a real broker."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.errors import BackendMisconfigured, BackendUnavailable
from storage import beats
from storage.queue import ADVANCE, RENDER, Message, Messages, render_queue, render_queues
from tests.storage.brokers import lent_broker


@pytest.fixture
def messages() -> Iterator[Messages]:
    with lent_broker() as url:
        messages = Messages(url)
        yield messages
        messages.close()


def test_a_message_is_taken_once_as_it_was_sent(messages: Messages) -> None:
    messages.advance("job-1")
    assert messages.depths() == {"reason": 1}
    assert messages.take(["reason"], 1) == Message(ADVANCE, ("job-1",), "reason")
    assert messages.take(["reason"], 1) is None
    assert messages.depths() == {}


def test_nothing_of_a_taken_message_is_left_in_the_broker(messages: Messages) -> None:
    messages.render("simulated", "normal", "job-1", "step/1/attempt/1/clip")
    messages.take(render_queues("simulated"), 1)
    messages.advance("job-1")
    messages.take(["reason"], 1)
    assert set(messages._redis.keys("*")) == {b"rq:queues"}


def test_urgent_clips_come_first_and_other_generators_clips_not_at_all(messages: Messages) -> None:
    for priority in ("low", "normal", "high"):
        messages.render("wan", priority, "job", priority)
    messages.render("other", "high", "job", "not ours")
    taken = [messages.take(render_queues("wan"), 1) for _ in range(3)]
    assert [message.arguments[1] for message in taken if message] == ["high", "normal", "low"]
    assert [message.function for message in taken if message] == [RENDER] * 3
    assert messages.take(render_queues("wan"), 1) is None
    assert messages.depths() == {render_queue("other", "high"): 1}


def test_a_first_one_comes_before_all_that_wait_but_after_urgent_ones(messages: Messages) -> None:
    for key in ("second", "third"):
        messages.render("wan", "normal", "job", key)
    messages.render("wan", "normal", "job", "first", first=True)
    messages.render("wan", "high", "job", "urgent")
    taken = [messages.take(render_queues("wan"), 1) for _ in range(4)]
    assert [message.arguments[1] for message in taken if message] == ["urgent", "first", "second", "third"]


def test_the_same_call_twice_is_two_messages(messages: Messages) -> None:
    for _ in range(2):
        messages.advance("job-1")
    assert messages.depths() == {"reason": 2}


def test_who_waits_hears_at_once(messages: Messages) -> None:
    heard: list[Message | None] = []
    waiting = threading.Thread(target=lambda: heard.append(messages.take(["reason"], 30)))
    waiting.start()
    messages.advance("job-1")
    waiting.join(5)
    assert heard == [Message(ADVANCE, ("job-1",), "reason")]


def test_watchers_hear_of_their_job_and_of_no_other(messages: Messages) -> None:
    ears = messages.heard(["mine"], 0.2)
    assert next(ears) is None
    messages.tell("other", {"sequence": 1})
    messages.tell("mine", {"sequence": 2})
    assert next(word for word in ears if word) == {"kind": "news", "sequence": 2}


def test_progress_can_be_asked_for_later(messages: Messages) -> None:
    assert messages.progress("mine") is None
    messages.tell("mine", {"fraction": 0.5}, "progress")
    assert messages.progress("mine") == {"fraction": 0.5}


def test_a_url_that_is_none_is_refused_without_repeating_it() -> None:
    with pytest.raises(BackendMisconfigured, match="redis://") as refused:
        Messages("postgres://user:secret@host")
    assert "secret" not in str(refused.value)


def test_a_broker_that_is_away_is_said_to_be(tmp_path: Path) -> None:
    messages = Messages(f"unix://{tmp_path}/none.sock")
    for call in (messages.ping, lambda: messages.advance("a"), lambda: messages.take(["reason"], 1)):
        with pytest.raises(BackendUnavailable, match="is it running"):
            call()


def test_a_worker_lives_as_long_as_it_says_so(messages: Messages) -> None:
    messages.beat("reason@here:7")
    messages.beat("reason@here:7")
    messages.beat("render@there:8")
    assert messages.beating() == ["reason@here:7", "render@there:8"]
    assert 0 < messages._redis.ttl("cliploop:worker:reason@here:7") <= beats.KEPT_SECONDS
    messages.forget_beat("reason@here:7")
    assert messages.beating() == ["render@there:8"]
    assert messages.depths() == {}
    assert messages.waiting() == set()


def test_what_others_put_into_a_queue_is_dropped_and_leaves_nothing(messages: Messages) -> None:
    redis, queue = messages._redis, f"rq:queue:{render_queue('simulated', 'high')}"
    redis.hset("rq:job:junk", mapping={"data": "not json", "status": "queued", "origin": "x"})
    redis.hset("rq:job:half", mapping={"data": '["os.system", null, ["true"], {}]', "created_at": "yesterday"})
    redis.hset("rq:job:other", mapping={"data": '["os.system", null, ["true"], {}]', "status": "queued"})
    redis.set("rq:job:text", "no hash")
    foreign = ["junk", "half", "other", "text", "gone", b"\xff\xfe"]
    redis.rpush(queue, *foreign)
    messages.render("simulated", "high", "job-1", "step/1/attempt/1/clip")
    taken = [messages.take(render_queues("simulated"), 1) for _ in range(len(foreign) + 1)]
    assert taken[:-1] == [None] * len(foreign)
    assert taken[-1] == Message(RENDER, ("job-1", "step/1/attempt/1/clip"), queue.removeprefix("rq:queue:"))
    assert set(redis.keys("*")) == {b"rq:queues"}


def test_what_others_put_into_the_broker_hides_no_job_and_no_depth(messages: Messages) -> None:
    redis = messages._redis
    messages.advance("job-1")
    redis.sadd("rq:queues", "rq:queue:x", b"\xff", "rq:queue:render:one:low", "nothing")
    redis.rpush("rq:queue:x", b"\xff\xfe")
    redis.rpush("rq:queue:reason", b"\xff\xfe")
    redis.set("rq:queue:render:one:low", "no list")
    assert "job-1" in messages.waiting()
    assert messages.depths() == {"reason": 2}
    redis.lpush("rq:queue:reason", "junk")
    for said in ("yesterday", "2026-01-01T00:00:00", b"\xff"):
        redis.hset("rq:job:junk", "created_at", said)
        assert messages.ages() == {}
    redis.lpop("rq:queue:reason")
    messages.render("one", "low", "job-1", "clip")
    assert messages.depths() == {"reason": 2, "render:one:low": 1}


@pytest.mark.parametrize("said", [b"no json", b"[]", b"\xff", b"[" * 100_000, b"null"])
def test_watchers_hear_nothing_of_what_others_say(messages: Messages, said: bytes) -> None:
    one, all_jobs = messages.heard(["mine"], 0.2), messages.overheard(0.2)
    assert next(one) is None
    assert next(all_jobs) is None
    messages._redis.publish("cliploop:job:mine", said)
    messages._redis.publish(b"cliploop:job:\xff", b"{}")
    messages.tell("mine", {"sequence": 2})
    assert next(word for word in one if word) == {"kind": "news", "sequence": 2}
    heard = (word for word in all_jobs if word and word[0] == "mine")
    assert next(heard) == ("mine", {"kind": "news", "sequence": 2})
    messages._redis.set("cliploop:progress:mine", said)
    assert messages.progress("mine") is None


def test_what_others_write_beside_our_counts_and_beats_is_passed_over(messages: Messages) -> None:
    messages.count("reaped")
    messages._redis.hset("cliploop:counts", mapping={"other": "many"})
    messages.count("other")
    assert messages.counted() == {"reaped": 1}
    messages._redis.set(b"cliploop:worker:\xff", b"\xff")
    messages.beat("reason@here:7")
    assert "reason@here:7" in messages.beating()
    assert messages.crew()["reason@here:7"] == ()
