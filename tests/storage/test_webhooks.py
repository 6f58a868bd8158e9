"""What is noted with a change of state is told, signed, in order, until it is taken. On SQLite and PostgreSQL."""

from __future__ import annotations

import itertools
import json
import logging
import socket
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import select, update
from standardwebhooks.webhooks import Webhook as Signer

from storage import webhooks
from storage.addresses import Rules
from storage.delivering import Deliverer, delivering, message, pause_wanted, webhook_rules
from storage.exchange import Answer
from storage.jobs import JobState, change_state
from storage.sql import SqlDatabase
from storage.submissions import Request, remove, submit
from storage.tables import DeliveryRow
from storage.webhooks import GONE, PAUSES_SECONDS, Due, Webhook, claim, is_secret, new_secret
from tests.storage.conftest import OpenDatabase
from tests.storage.jobs_for_tests import POLICY, TASK
from tests.storage.receivers import Receiver, receiving, saying

SECRET = new_secret()
HERE = webhook_rules(private=True)


def a_job(database: SqlDatabase, url: str, job_id: str = "job-1", owner: str = "") -> str:
    submit(database, job_id, TASK, POLICY, Request(owner, "default", webhook=Webhook(url, SECRET)))
    return job_id


def move(database: SqlDatabase, job_id: str, *states: JobState) -> None:
    for state in states:
        with database.write() as connection:
            change_state(connection, job_id, state, database.now(connection))


RUNNING, DONE = JobState("running"), JobState("succeeded", outcome="completed")
WAITING = JobState("waiting", "disk", "no room", "step/1/attempt/1/clip")


def deliver(database: SqlDatabase, rules: Rules = HERE, *, seconds: float = 10.0) -> int:
    """Try once what is due; how many."""
    deliverer = Deliverer(database, rules, seconds, jitter=lambda: 0.5)
    begun = deliverer.look()
    deliverer.wait(30.0)
    return begun


def make_due(database: SqlDatabase) -> None:
    """The pause is over."""
    with database.write() as connection:
        connection.execute(update(DeliveryRow).where(DeliveryRow.next_at.is_not(None)).values(next_at=0.0))


def pause(database: SqlDatabase) -> float:
    """Seconds until the earliest next try."""
    with database.read() as connection:
        at = connection.execute(select(DeliveryRow.next_at).order_by(DeliveryRow.next_at)).scalars().first()
        assert at is not None
        return at - database.now(connection)


def verified(receiver: Receiver, index: int) -> dict[str, Any]:
    """What the receiver read, after the library has checked its signature."""
    _, headers, body = receiver.got[index]
    return Signer(SECRET).verify(body, headers)


def ids(receiver: Receiver) -> list[str]:
    return [headers["webhook-id"] for _, headers, _ in receiver.got]


def standing(database: SqlDatabase, job_id: str = "job-1") -> webhooks.Told:
    told = webhooks.told(database, job_id)
    assert told is not None
    return told


def test_a_job_that_ends_tells_so_once_signed_for_its_receiver(opened: OpenDatabase) -> None:
    database = opened()
    with receiving() as receiver:
        job_id = a_job(database, f"{receiver.url}/hook?who=me")
        move(database, job_id, RUNNING)
        assert deliver(database) == 0
        move(database, job_id, DONE)
        assert deliver(database) == 1
        assert deliver(database) == 0
        told = verified(receiver, 0)
        assert receiver.got[0][0] == "/hook?who=me"
        assert ids(receiver) == ["msg_job-1_3"]
    assert told["type"] == "job.succeeded"
    assert told["data"]["id"] == job_id
    assert (told["data"]["state"], told["data"]["outcome"]) == ("succeeded", "completed")
    assert told["timestamp"].endswith("Z")
    assert (standing(database).delivered, standing(database).pending, standing(database).last_error) == (
        1,
        0,
        None,
    )


def test_a_receiver_that_fails_twice_is_told_a_third_time_under_the_same_id(opened: OpenDatabase) -> None:
    database = opened()
    with receiving((500, {}, b"no"), (503, {"Retry-After": "100"}, b""), (200, {}, b"ok")) as receiver:
        move(database, a_job(database, receiver.url), RUNNING, DONE)
        assert deliver(database) == 1
        assert deliver(database) == 0  # not before its pause is over
        assert pause(database) == pytest.approx(PAUSES_SECONDS[0], abs=2.0)
        assert standing(database).last_error == "the receiver answered 500"
        make_due(database)
        deliver(database)
        assert 90 < pause(database) <= 100
        make_due(database)
        deliver(database)
        assert len(set(ids(receiver))) == 1
        assert len({body for _, _, body in receiver.got}) == 1
        assert [verified(receiver, n)["type"] for n in range(3)] == ["job.succeeded"] * 3
    assert standing(database).delivered == 1
    assert standing(database).pending == 0


def test_news_of_one_job_come_in_order_however_the_first_fares(opened: OpenDatabase) -> None:
    database = opened()
    with receiving((500, {}, b""), (200, {}, b"")) as receiver:
        job_id = a_job(database, receiver.url)
        move(database, job_id, RUNNING, WAITING, RUNNING, DONE)
        assert deliver(database) == 1
        assert deliver(database) == 0
        make_due(database)
        assert [deliver(database), deliver(database), deliver(database)] == [1, 1, 0]
        types = [json.loads(body)["type"] for _, _, body in receiver.got]
        assert types == ["job.waiting", "job.waiting", "job.succeeded"]
        assert verified(receiver, 1)["data"]["reason"] == "disk"
        assert verified(receiver, 1)["data"]["at"] == "step/1/attempt/1/clip"


def test_a_delivery_is_given_up_after_its_last_try_and_said_so(opened: OpenDatabase) -> None:
    database = opened()
    with receiving((404, {}, b"")) as receiver:
        move(database, a_job(database, receiver.url), RUNNING, DONE)
        for expected in [*PAUSES_SECONDS, None]:
            make_due(database)
            assert deliver(database) == 1
            if expected is not None:
                assert pause(database) == pytest.approx(expected, abs=5.0)
        make_due(database)
        assert deliver(database) == 0
        assert len(receiver.got) == len(PAUSES_SECONDS) + 1
    told = standing(database)
    assert (told.delivered, told.pending, told.given_up) == (0, 0, 1)
    assert told.last_error == "the receiver answered 404"


def test_a_receiver_that_says_gone_hears_no_more_of_the_job(opened: OpenDatabase) -> None:
    database = opened()
    with receiving((410, {}, b"")) as receiver:
        job_id = a_job(database, receiver.url)
        move(database, job_id, RUNNING, WAITING, RUNNING, WAITING)
        assert deliver(database) == 1
        make_due(database)
        assert deliver(database) == 0
        move(database, job_id, RUNNING, DONE)
        assert deliver(database) == 0
        assert len(receiver.got) == 1
    assert standing(database).last_error == GONE
    assert standing(database).pending == 0


def test_a_process_that_died_between_post_and_record_leaves_it_to_the_next(opened: OpenDatabase) -> None:
    ours, theirs = opened(), opened()
    with receiving() as receiver:
        move(ours, a_job(ours, receiver.url), RUNNING, DONE)
        (due,) = claim(ours, 8, {})
        Deliverer(ours, HERE).send(due)  # and the process is gone
        assert deliver(theirs) == 0  # as long as it may be at it
        assert pause(theirs) > 50
        make_due(theirs)
        assert deliver(theirs) == 1
        assert ids(receiver) == ["msg_job-1_3"] * 2
        webhooks.failed(ours, due, "a late word")
        assert standing(theirs).delivered == 1
        assert standing(theirs).last_error is None


def test_two_processes_never_claim_the_same_delivery(opened: OpenDatabase) -> None:
    ours, theirs = opened(), opened()
    for number in range(6):
        move(ours, a_job(ours, f"http://{number}.example/", f"job-{number}"), RUNNING, DONE)
    mine, others = claim(ours, 4, {}), claim(theirs, 4, {})
    assert len(mine) == 4
    assert len(others) == 2
    assert len({due.job_id for due in [*mine, *others]}) == 6


def test_a_slow_host_holds_up_no_other(opened: OpenDatabase) -> None:
    database = opened()

    def silent(talking: socket.socket) -> Iterator[bytes]:
        while talking.recv(65536):
            pass
        yield b""

    with saying(silent) as place, receiving() as receiver:
        for number in range(20):
            move(database, a_job(database, f"http://{place}/", f"slow-{number}"), RUNNING, DONE)
        move(database, a_job(database, receiver.url), RUNNING, DONE)
        assert deliver(database, seconds=0.3) == 3
        assert len(receiver.got) == 1
    assert standing(database).delivered == 1
    errors = [standing(database, f"slow-{number}").last_error for number in range(20)]
    assert errors.count("no answer in 0.3 s") == 2


def test_one_owners_many_hosts_hold_up_no_other_owner(opened: OpenDatabase) -> None:
    database = opened()
    for number in range(20):
        move(database, a_job(database, f"http://{number}.example/", f"many-{number}", "many"), RUNNING, DONE)
    move(database, a_job(database, "http://one.example/", "one", "other"), RUNNING, DONE)
    claimed = claim(database, 8, {})
    assert [due.owner for due in claimed] == ["many"] * 6 + ["other"]
    assert claim(database, 8, Counter(place for due in claimed for place in due.places)) == []


def test_a_hostile_receiver_is_left_and_tried_again_later(opened: OpenDatabase) -> None:
    database = opened()

    def endless(_talking: socket.socket) -> Iterator[bytes]:
        yield b"HTTP/1.1 500 No\r\n\r\n"
        yield from itertools.repeat(b"x" * 65536)

    with receiving() as inside, saying(endless) as place:
        redirecting = (302, {"Location": inside.url}, b"")
        with receiving(redirecting) as receiver:
            move(database, a_job(database, f"http://{place}/", "endless"), RUNNING, DONE)
            move(database, a_job(database, receiver.url, "redirected"), RUNNING, DONE)
            assert deliver(database) == 2
        assert inside.got == []
    assert standing(database, "endless").last_error == "the receiver answered 500"
    assert standing(database, "redirected").last_error == "the receiver answered 302"
    assert standing(database, "redirected").pending == 1


def test_what_is_not_public_is_not_told_unless_the_operator_allows_it(opened: OpenDatabase) -> None:
    database = opened()
    with receiving() as receiver:
        move(database, a_job(database, receiver.url), RUNNING, DONE)
        assert deliver(database, webhook_rules()) == 1
        assert receiver.got == []
    assert "not a public address" in str(standing(database).last_error)
    assert standing(database).pending == 1


def test_a_job_that_is_deleted_meanwhile_is_told_of_no_more(opened: OpenDatabase) -> None:
    database = opened()
    with receiving() as receiver:
        job_id = a_job(database, receiver.url)
        move(database, job_id, RUNNING, DONE)
        (due,) = claim(database, 8, {})
        remove(database, job_id, None)
        webhooks.delivered(database, due)
        webhooks.failed(database, due, "late")
        make_due(database)
        assert deliver(database) == 0
        assert receiver.got == []
    assert webhooks.told(database, job_id) is None


def test_a_job_without_a_webhook_notes_nothing(opened: OpenDatabase) -> None:
    database = opened()
    submit(database, "job-1", TASK, POLICY, Request("", "default"))
    move(database, "job-1", RUNNING, DONE)
    with database.read() as connection:
        assert connection.execute(select(DeliveryRow.job_id)).all() == []
    assert webhooks.told(database, "job-1") is None


def test_threads_deliver_while_a_process_lives(opened: OpenDatabase, caplog: pytest.LogCaptureFixture) -> None:
    database = opened()
    caplog.set_level(logging.DEBUG)
    with receiving((500, {}, b""), (204, {}, b"")) as receiver:
        with delivering(Deliverer(database, HERE)):
            move(database, a_job(database, f"{receiver.url}/?token=private"), RUNNING, DONE)
            until_told(receiver, 1)
        make_due(database)
        with delivering(Deliverer(database, HERE)):
            until_told(receiver, 2)
    assert standing(database).delivered == 1
    assert SECRET not in caplog.text
    assert "token=private" not in caplog.text


def until_told(receiver: Receiver, times: int) -> None:
    limit = time.monotonic() + 30
    while len(receiver.got) < times and time.monotonic() < limit:
        time.sleep(0.01)
    assert len(receiver.got) >= times


def test_deliveries_are_counted(opened: OpenDatabase) -> None:
    database = opened()
    with receiving((200, {}, b""), (410, {}, b"")) as receiver:
        move(database, a_job(database, receiver.url, "a"), RUNNING, DONE)
        deliver(database)
        move(database, a_job(database, receiver.url, "b"), RUNNING, DONE)
        deliver(database)
        move(database, a_job(database, receiver.url, "c"), RUNNING, DONE)
    assert webhooks.counts(database) == {"delivered": 1, "pending": 1, "given_up": 1}


def test_a_secret_has_the_form_of_standard_webhooks() -> None:
    assert is_secret(SECRET)
    assert new_secret() != SECRET
    for wrong in ("", "whsec_", "whsec_c2hvcnQ=", "secret", SECRET.removeprefix("whsec_"), "whsec_!!", "whsec_é"):
        assert not is_secret(wrong)
    assert SECRET not in repr(Webhook("http://example.org", SECRET))


def test_a_message_is_the_same_at_every_try() -> None:
    due = Due(
        "job-1", 3, 1, "", Webhook("http://example.org", SECRET), {"state": "failed"}, 1.5, 1.0, "default", None
    )
    assert message(due) == message(replace(due, tries=2))
    assert due.id == replace(due, tries=7).id
    assert json.loads(message(due))["timestamp"] == "1970-01-01T00:00:01.500Z"


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("120", 120.0),
        ("Thu, 01 Jan 2026 00:01:00 GMT", 60.0),
        ("Wed, 31 Dec 2025 00:00:00 GMT", 0.0),
        ("soon", 0.0),
        ("-5", 0.0),
        ("", 0.0),
        ("9" * 400, 999999999.0),
    ],
)
def test_retry_after_is_read_in_both_its_forms(said: str, seconds: float) -> None:
    from datetime import UTC, datetime

    answer = Answer(503, {"retry-after": said}, b"")
    assert pause_wanted(answer, datetime(2026, 1, 1, tzinfo=UTC)) == seconds
