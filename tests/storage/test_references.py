"""Which artifacts a job holds. On SQLite and on PostgreSQL."""

from __future__ import annotations

from orchestrator.records import Clip, Footage, Segment, Size
from storage import references
from storage.digest import dump
from storage.jobs import create_job
from storage.journal import SqlJournal
from storage.sql import SqlDatabase
from tests.storage.conftest import OpenDatabase
from tests.storage.jobs_for_tests import POLICY, TASK

PICTURE, CLIP, LAST = "a" * 64 + ".png", "b" * 64 + ".mp4", "c" * 64 + ".png"


def two_jobs(database: SqlDatabase) -> None:
    for job in ("one", "two"):
        create_job(database, job, TASK, POLICY)


def free(database: SqlDatabase, before: float = 1e12) -> list[str]:
    with database.read() as connection:
        return references.unreferenced(connection, before, limit=100)


def test_every_key_in_a_record_is_found_and_a_digest_is_none() -> None:
    clip = Clip(
        mezzanine=CLIP,
        last_frame=LAST,
        num_frames=5,
        fps=16.0,
        size=Size(width=8, height=8),
        rendered_size=Size(width=8, height=8),
        frames_digest="d" * 64,
        first_frame_psnr=100.0,
        first_frame_ssim=1.0,
    )
    footage = Footage(segments=(Segment(mezzanine=CLIP, first=0, stop=5, fps=16.0),))
    value = {"clip": dump(clip), "candidate": dump(footage), "reason": f"see {PICTURE}"}
    assert set(references.keys_in(value)) == {CLIP, LAST}


def test_a_job_holds_what_it_was_given_once_however_often_it_is_named(opened: OpenDatabase) -> None:
    database = opened()
    two_jobs(database)
    for _ in range(2):
        with database.write() as connection:
            references.hold(connection, "one", {"picture": PICTURE, "again": [PICTURE, CLIP]})
    with database.read() as connection:
        held = [references.holds(connection, "one", key) for key in (PICTURE, CLIP, LAST)]
        others = references.holds(connection, "two", PICTURE)
    assert (held, others) == ([True, True, False], False)


def test_what_the_last_holder_lets_go_is_free_and_what_another_job_holds_is_not(opened: OpenDatabase) -> None:
    database = opened()
    two_jobs(database)
    with database.write() as connection:
        references.hold(connection, "one", [PICTURE, CLIP])
        references.hold(connection, "two", [PICTURE])
    with database.write() as connection:
        references.let_go(connection, "one", now=100.0)
    assert free(database) == [CLIP]
    assert free(database, before=100.0) == []
    with database.write() as connection:
        references.let_go(connection, "two", now=200.0)
    assert free(database) == [PICTURE, CLIP]


def test_what_is_held_again_before_it_is_swept_stays(opened: OpenDatabase) -> None:
    database = opened()
    two_jobs(database)
    with database.write() as connection:
        references.hold(connection, "one", [CLIP, LAST])
        references.let_go(connection, "one", now=1.0)
    with database.write() as connection:
        references.hold(connection, "two", [CLIP])
    with database.write() as connection:
        references.condemn(connection, [CLIP, LAST], before=2.0)
        assert references.forget(connection, [CLIP, LAST]) == [LAST]
        assert references.forget(connection, [CLIP, LAST]) == []
    assert free(database) == []


def test_a_journal_holds_what_it_records_in_the_same_transaction(opened: OpenDatabase) -> None:
    database = opened()
    two_jobs(database)
    journal = SqlJournal(
        database, "one", fence=lambda connection, value: references.hold(connection, "one", value)
    )
    footage = Footage(segments=(Segment(mezzanine=CLIP, first=0, stop=5, fps=16.0),))
    journal.once("step/1/attempt/1/cut", {}, Footage, lambda: footage)
    with database.read() as connection:
        assert references.holds(connection, "one", CLIP)
