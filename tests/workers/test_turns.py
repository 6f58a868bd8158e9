"""Turns at one generator: renders never overlap, storing overlaps the next render."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from workers.desk import HandBack
from workers.turns import Turns


def nothing() -> None:
    pass


def at_work(turns: Turns, parts: list[Callable[[], None]]) -> None:
    """Each part in a thread of its own, as soon as it has the turn; renders in this one."""

    def take_turn(part: Callable[[], None]) -> None:
        while not turns.take():
            pass
        try:
            part()
        finally:
            turns.give()

    threads = [threading.Thread(target=take_turn, args=(part,), daemon=True) for part in parts]
    for thread in threads:
        thread.start()
    turns.serve(lambda: not any(thread.is_alive() for thread in threads))


def test_one_stores_while_the_next_renders_and_renders_are_in_the_main_thread() -> None:
    turns, spans, threads = Turns(nothing), list[tuple[str, float, float]](), set[threading.Thread]()

    def timed(what: str) -> None:
        threads.add(threading.current_thread()) if what == "render" else None
        began = time.monotonic()
        time.sleep(0.2)
        spans.append((what, began, time.monotonic()))

    def clip() -> None:
        turns.render(lambda: timed("render"))
        timed("store")

    at_work(turns, [clip, clip])
    renders = sorted(span for span in spans if span[0] == "render")
    first_store = min(span for span in spans if span[0] == "store")
    assert renders[1][1] >= renders[0][2]
    assert renders[1][1] < first_store[2]
    assert threads == {threading.main_thread()}


def test_the_next_clip_is_made_ready_while_a_render_is_about_to_end() -> None:
    turns, seen = Turns(nothing), list[str]()
    ready = threading.Event()

    def nearly_over() -> None:
        turns.progressed(0.0)
        assert not ready.wait(0.3), "who comes next has to wait while nothing is known of the end"
        turns.progressed(0.9)  # of about 0.3 s: it is over in a moment
        assert ready.wait(10.0)
        seen.append("first")

    def first() -> None:
        turns.render(nearly_over)

    def second() -> None:
        ready.set()
        turns.render(lambda: seen.append("second"))

    def second_after_first() -> None:
        second() if turns.rendering else first()

    at_work(turns, [second_after_first, second_after_first])
    assert seen == ["first", "second"]


def test_a_render_that_goes_on_for_long_keeps_the_next_clip_for_other_workers() -> None:
    turns, taken = Turns(nothing), list[int]()

    def long() -> None:
        time.sleep(0.3)
        turns.progressed(0.1)  # 2.7 s to go
        time.sleep(0.3)
        assert taken == [1]

    def clip() -> None:
        taken.append(1)
        turns.render(long if len(taken) == 1 else nothing)

    at_work(turns, [clip, clip])
    assert taken == [1, 1]


def test_a_message_without_a_render_gives_the_turn_back() -> None:
    turns, done = Turns(nothing), list[int]()
    at_work(turns, [lambda: done.append(1), lambda: done.append(2)])
    assert sorted(done) == [1, 2]


def test_what_a_render_raises_is_raised_where_it_was_asked_for() -> None:
    turns, raised = Turns(nothing), list[BaseException]()

    def clip() -> None:
        with pytest.raises(ZeroDivisionError) as caught:
            turns.render(lambda: 1 / 0)
        raised.append(caught.value)

    at_work(turns, [clip])
    assert len(raised) == 1


def test_no_render_begins_in_a_process_that_ends() -> None:
    def stop() -> None:
        raise HandBack

    turns, begun = Turns(stop), list[int]()

    def clip() -> None:
        with pytest.raises(HandBack):
            turns.render(lambda: begun.append(1))

    at_work(turns, [clip])
    assert begun == []
    assert not turns.rendering
