"""A worker's sign of life, on a real broker."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path

from storage.queue import Messages
from tests.storage.brokers import lent_broker
from workers.pulse import beating

NAME = "reason@here:7"


def known(messages: Messages, wanted: list[str]) -> bool:
    limit = time.monotonic() + 10
    while messages.beating() != wanted and time.monotonic() < limit:
        time.sleep(0.01)
    return messages.beating() == wanted


def test_it_is_known_while_the_worker_works_and_no_longer() -> None:
    with lent_broker() as url, closing(Messages(url)) as messages:
        with beating(messages, NAME):
            assert known(messages, [NAME])
        assert messages.beating() == []


def test_it_is_told_again_to_a_broker_that_forgot_everything() -> None:
    with lent_broker() as url, closing(Messages(url)) as messages, beating(messages, NAME, seconds=0.05):
        assert known(messages, [NAME])
        messages._redis.flushall()
        assert known(messages, [NAME])


def test_a_broker_that_is_away_ends_no_worker(tmp_path: Path) -> None:
    with closing(Messages(f"unix://{tmp_path}/nobody.sock")) as messages, beating(messages, NAME, seconds=0.01):
        time.sleep(0.05)
