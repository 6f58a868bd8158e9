"""What nobody holds goes, all of it and nothing else; on SQLite and PostgreSQL, in a folder and in S3."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import func, select, update

from storage import leases, references
from storage.artifacts import ArtifactMissing, LocalArtifacts, key_of
from storage.booked import BookedArtifacts, Store
from storage.database import Database
from storage.jobs import JobState, change_state, load_job
from storage.s3 import S3Artifacts
from storage.sql import SqlDatabase
from storage.submissions import Request, remove, submit
from storage.sweeper import IDEMPOTENCY_SECONDS, SCRATCH_SECONDS, Removed, Sweep, Terms
from storage.sweeping import drop_copies, sweep_in_turn, sweeping
from storage.tables import ArtifactRow, EntryRow, IdempotencyRow, JobRow, LeaseRow, UploadRow
from tests.storage.buckets import client, environment_of, new_bucket, s3_server
from tests.storage.conftest import OpenDatabase
from tests.storage.jobs_for_tests import POLICY, ROOT, TASK

HOUR, DAY = 3600.0, 86400.0
TERMS = Terms(unheld=HOUR, upload=DAY)


@pytest.fixture(scope="module")
def variables() -> Iterator[Mapping[str, str]]:
    with s3_server() as variables, environment_of(variables):
        yield variables


OpenStore = Callable[[], Store]


@pytest.fixture(params=["folder", "s3"])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OpenStore]:
    made: list[Store] = []
    if request.param == "folder":

        def one() -> Store:
            made.append(LocalArtifacts(tmp_path / "artifacts"))
            return made[-1]
    else:
        bucket = new_bucket(request.getfixturevalue("variables"))

        def one() -> Store:
            made.append(S3Artifacts(f"s3://{bucket}/here", tmp_path / "copies"))
            return made[-1]

    yield one
    for store in made:
        store.close()


def sweep_of(database: SqlDatabase, store: Store, tmp_path: Path, terms: Terms = TERMS) -> Sweep:
    scratch = tmp_path / "scratch"
    scratch.mkdir(exist_ok=True)
    return Sweep(database, store, scratch, terms)


def age(database: SqlDatabase, seconds: float) -> None:
    """All that happened is longer ago."""
    with database.write() as connection:
        since = ArtifactRow.unreferenced_since
        connection.execute(update(ArtifactRow).values(unreferenced_since=since - seconds))
        connection.execute(update(EntryRow).values(recorded_at=EntryRow.recorded_at - seconds))
        for table in (UploadRow, IdempotencyRow):
            connection.execute(update(table).values(created_at=table.created_at - seconds))


def a_job(database: SqlDatabase, artifacts: BookedArtifacts, name: str, *contents: bytes) -> list[str]:
    """A job that has ended and holds these."""
    keys = [artifacts.put(content, ".png") for content in contents]
    submit(database, name, TASK.model_copy(update={"picture": keys[0]}), POLICY, Request("", "default"))
    with database.write() as connection:
        references.hold(connection, name, keys)
        change_state(connection, name, JobState("cancelled"), database.now(connection))
    return keys


def keys_of(store: Store) -> set[str]:
    return {file.key for file in store.stored()}


def booked(database: SqlDatabase) -> set[str]:
    with database.read() as connection:
        return set(connection.execute(select(ArtifactRow.key)).scalars())


def test_what_a_removed_job_held_alone_goes_after_a_while_and_what_another_shares_stays(
    opened: OpenDatabase, open_store: OpenStore, tmp_path: Path
) -> None:
    database, store = opened(), open_store()
    artifacts = BookedArtifacts(database, store)
    first = a_job(database, artifacts, "one", b"shared", b"own")
    second = a_job(database, artifacts, "fork", b"shared", b"new")
    before = load_job(database, "fork")
    remove(database, "one", None)
    sweep = sweep_of(database, store, tmp_path)
    assert sweep.brief().removed.get("artifacts", Removed()).count == 0
    assert keys_of(store) == {*first, *second}
    age(database, HOUR + 1)
    assert replace(sweep, tally=type(sweep.tally)()).brief().removed["artifacts"].count == 1
    assert keys_of(store) == booked(database) == set(second)
    assert artifacts.read(second[0]) == b"shared"
    assert load_job(database, "fork") == before
    remove(database, "fork", None)
    age(database, HOUR + 1)
    sweep_of(database, store, tmp_path).brief()
    assert keys_of(store) == booked(database) == set()
    assert [path.name for path in tmp_path.rglob("*.png")] == []


def test_a_whole_sweep_counts_bytes_and_a_dry_one_says_the_same_and_removes_nothing(
    opened: OpenDatabase, open_store: OpenStore, tmp_path: Path
) -> None:
    database, store = opened(), open_store()
    artifacts = BookedArtifacts(database, store)
    a_job(database, artifacts, "one", b"12345", b"1234567")
    kept = a_job(database, artifacts, "two", b"kept")
    remove(database, "one", None)
    age(database, HOUR + 1)
    seen: list[int] = []
    dry = replace(sweep_of(database, store, tmp_path), dry=True, step=seen.append).whole()
    assert dry.removed["artifacts"] == Removed(2, 12)
    assert sum(seen) == 3
    assert len(keys_of(store)) == 3
    wet = sweep_of(database, store, tmp_path).whole()
    assert wet.removed == dry.removed
    assert keys_of(store) == set(kept)


def test_an_upload_holds_its_artifact_for_its_time_and_a_job_that_took_it_for_longer(
    opened: OpenDatabase, tmp_path: Path
) -> None:
    database, store = opened(), LocalArtifacts(tmp_path / "artifacts")
    artifacts = BookedArtifacts(database, store)
    keys = [artifacts.put(data, ".png") for data in (b"lonely", b"used", b"renewed")]
    with database.write() as connection:
        for key in keys:
            references.hold_upload(connection, "owner", key, database.now(connection))
    a_job(database, artifacts, "one", b"used")
    age(database, DAY - 60)
    with database.write() as connection:
        references.hold_upload(connection, "other", keys[2], database.now(connection))
    assert sweep_of(database, store, tmp_path).brief().removed["uploads"].count == 0
    age(database, 120)
    assert sweep_of(database, store, tmp_path).brief().removed["uploads"].count == 3
    with database.read() as connection:
        assert not references.is_upload(connection, "owner", keys[0])
        assert references.is_upload(connection, "other", keys[2])
    assert keys_of(store) == set(keys)
    age(database, HOUR + 1)
    sweep_of(database, store, tmp_path).brief()
    assert keys_of(store) == {keys[1], keys[2]}


def test_removing_a_job_leaves_what_an_upload_holds(opened: OpenDatabase, tmp_path: Path) -> None:
    database, store = opened(), LocalArtifacts(tmp_path / "artifacts")
    (key,) = a_job(database, BookedArtifacts(database, store), "one", b"both")
    with database.write() as connection:
        references.hold_upload(connection, "", key, database.now(connection))
    remove(database, "one", None)
    age(database, HOUR + 1)
    sweep_of(database, store, tmp_path).brief()
    assert keys_of(store) == {key}


def test_an_artifact_that_was_announced_and_never_recorded_goes(opened: OpenDatabase, tmp_path: Path) -> None:
    database, store = opened(), LocalArtifacts(tmp_path / "artifacts")
    BookedArtifacts(database, store).put(b"frame", ".png")
    instantly = Terms(unheld=0.0, upload=DAY)
    sweep_of(database, store, tmp_path, instantly).whole()
    assert len(keys_of(store)) == 1  # young: somebody is about to record it, however soon sweeps come
    age(database, references.ARRIVAL_SECONDS + 1)
    sweep_of(database, store, tmp_path, instantly).whole()
    assert keys_of(store) == booked(database) == set()


def test_old_files_that_no_row_knows_go_and_young_ones_stay(
    opened: OpenDatabase, open_store: OpenStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, store = opened(), open_store()
    kept = a_job(database, BookedArtifacts(database, store), "one", b"kept", b"too")
    stray = store.put(b"stray", ".png")
    assert sweep_of(database, store, tmp_path).whole().removed.get("strays") is None
    later = time.time() + HOUR + 60
    monkeypatch.setattr(time, "time", lambda: later)
    done = sweep_of(database, store, tmp_path).whole()
    assert done.removed["strays"] == Removed(1, 5)
    assert keys_of(store) == booked(database) == set(kept)
    with pytest.raises(ArtifactMissing):
        store.read(stray)


def test_a_store_full_of_files_that_no_row_knows_is_left_alone_unless_asked_for(tmp_path: Path) -> None:
    store = LocalArtifacts(tmp_path / "artifacts")
    for number in range(3):
        os.utime(store.path(store.put(bytes([number]), ".png")), (1.0, 1.0))
    with Database(tmp_path / "other.sqlite", service=True) as database:
        done = sweep_of(database, store, tmp_path).whole()
        assert done.foreign == Removed(3, 3)
        assert len(keys_of(store)) == 3
        done = replace(sweep_of(database, store, tmp_path), strays=True).whole()
        assert (done.foreign, done.removed["strays"]) == (Removed(), Removed(3, 3))
        assert keys_of(store) == set()


def test_jobs_that_ended_long_ago_are_removed_with_all_they_held(opened: OpenDatabase, tmp_path: Path) -> None:
    database, store = opened(), LocalArtifacts(tmp_path / "artifacts")
    artifacts = BookedArtifacts(database, store)
    a_job(database, artifacts, "old", b"old")
    submit(database, "running", TASK, POLICY, Request("", "default"))
    age(database, 10 * DAY)
    young = a_job(database, artifacts, "young", b"young")
    terms = Terms(unheld=HOUR, upload=DAY, retention=9 * DAY)
    dry = replace(sweep_of(database, store, tmp_path, terms), dry=True).whole()
    assert dry.removed["jobs"].count == 1
    sweep_of(database, store, tmp_path, terms).brief()
    with database.read() as connection:
        assert set(connection.execute(select(JobRow.id)).scalars()) == {"running", "young"}
    age(database, HOUR + 1)
    sweep_of(database, store, tmp_path, terms).brief()
    assert keys_of(store) == set(young)


def test_old_idempotency_keys_and_leases_of_gone_jobs_are_forgotten(opened: OpenDatabase, tmp_path: Path) -> None:
    database, store = opened(), LocalArtifacts(tmp_path / "artifacts")
    submit(database, "there", TASK, POLICY, Request("", "default", idempotency_key="old", fingerprint="f" * 64))
    age(database, IDEMPOTENCY_SECONDS + 1)
    submit(database, "new", TASK, POLICY, Request("", "default", idempotency_key="new", fingerprint="f" * 64))
    for name in ("job/there", "job/gone", "clip/there/step/1", "clip/gone/step/1", "reaper"):
        lease = leases.take(database, name, "somebody")
        assert lease is not None
        leases.hand_back(database, lease)
    assert leases.take(database, "job/gone-but-worked-on", "somebody") is not None
    done = sweep_of(database, store, tmp_path).whole()
    assert (done.removed["idempotency"].count, done.removed["leases"].count) == (1, 2)
    with database.read() as connection:
        names = set(connection.execute(select(LeaseRow.name)).scalars())
        assert set(connection.execute(select(IdempotencyRow.key)).scalars()) == {"new"}
    assert names == {"job/there", "clip/there/step/1", "reaper", "job/gone-but-worked-on"}


def test_scratch_and_half_written_files_of_the_dead_go_and_those_of_the_living_stay(tmp_path: Path) -> None:
    with Database(tmp_path / "one.sqlite", service=True) as database:
        store = LocalArtifacts(tmp_path / "artifacts")
        sweep = sweep_of(database, store, tmp_path)
        long_ago = time.time() - SCRATCH_SECONDS - 60
        for name in ("dead", "living"):
            (sweep.scratch / name).mkdir()
            (sweep.scratch / name / "clip.mp4").write_bytes(b"12345")
        for path in (sweep.scratch / "dead" / "clip.mp4", sweep.scratch / "dead", sweep.scratch / "living"):
            os.utime(path, (long_ago, long_ago))
        part = store.root / f".{key_of(b'x', '.png')}.0123456789abcdef.part"
        part.write_bytes(b"123")
        assert replace(sweep, dry=True).whole().removed["unfinished"] == Removed(1, 3)
        done = sweep_of(database, store, tmp_path).whole()
        assert (done.removed["scratch"], done.removed["unfinished"]) == (Removed(1, 5), Removed(1, 3))
        assert [path.name for path in sweep.scratch.iterdir()] == ["living"]
        assert list(store.root.iterdir()) == []


def test_one_process_sweeps_at_a_time_and_not_again_within_a_minute(opened: OpenDatabase, tmp_path: Path) -> None:
    database, store = opened(), LocalArtifacts(tmp_path / "artifacts")
    sweep = sweep_of(database, store, tmp_path)
    assert "leases" in (sweep_in_turn(sweep, "one") or sweep.tally).removed  # the first one is a whole one
    assert sweep_in_turn(sweep, "two") is None
    with database.write() as connection:
        connection.execute(update(LeaseRow).where(LeaseRow.name == "sweeper").values(expires_at=0.0))
    again = sweep_in_turn(sweep, "two")
    assert again is not None
    assert "leases" not in again.removed


def test_a_store_that_is_away_stops_no_process_and_loses_nothing(
    variables: Mapping[str, str],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("storage.sweeping.LOOK_SECONDS", 0.01)
    bucket = new_bucket(variables)
    store = S3Artifacts(f"s3://{bucket}", tmp_path / "copies")
    with Database(tmp_path / "one.sqlite", service=True) as database:
        artifacts = BookedArtifacts(database, store)
        keys = a_job(database, artifacts, "one", b"frame")
        remove(database, "one", None)
        age(database, HOUR + 1)
        policy = (
            '{"Version": "2012-10-17", "Statement": [{"Effect": "Deny", "Principal": "*",'
            f'"Action": "s3:DeleteObject", "Resource": "arn:aws:s3:::{bucket}/*"}}]}}'
        )
        client(variables).put_bucket_policy(Bucket=bucket, Policy=policy)
        with sweeping(sweep_of(database, store, tmp_path), "one"):
            limit = time.monotonic() + 30
            while "refuses us" not in caplog.text and time.monotonic() < limit:
                time.sleep(0.01)
        refused = "refuses us" in caplog.text
        client(variables).delete_bucket_policy(Bucket=bucket)
        assert keys_of(store) == set(keys) == booked(database)
        assert refused
        with database.write() as connection:  # condemned: it is announced again before anybody relies on it
            assert references.missing(connection, keys) == set(keys)
        artifacts.put(b"frame", ".png")
        with database.write() as connection:
            assert references.missing(connection, keys) == set()
        sweep_of(database, store, tmp_path).whole()
        assert keys_of(store) == set(keys)
    store.close()


def test_other_machines_drop_their_copies_of_what_is_gone(variables: Mapping[str, str], tmp_path: Path) -> None:
    url = f"s3://{new_bucket(variables)}"
    store, there = (S3Artifacts(url, tmp_path / name) for name in ("one", "there"))
    with Database(tmp_path / "one.sqlite", service=True) as database:
        artifacts = BookedArtifacts(database, store)
        a_job(database, artifacts, "one", b"gone")
        (kept,) = a_job(database, artifacts, "two", b"kept")
        for key in keys_of(store):
            there.path(key)
        remove(database, "one", None)
        age(database, HOUR + 1)
        sweep_of(database, store, tmp_path).brief()
        assert len(there.copies.keys()) == 2
        drop_copies(sweep_of(database, there, tmp_path))
        assert there.copies.keys() == store.copies.keys() == [kept]
    store.close()
    there.close()


def test_a_process_sweeps_by_itself_while_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage.sweeping.LOOK_SECONDS", 0.01)
    with Database(tmp_path / "one.sqlite", service=True) as database:
        store = LocalArtifacts(tmp_path / "artifacts")
        a_job(database, BookedArtifacts(database, store), "one", b"gone")
        remove(database, "one", None)
        age(database, HOUR + 1)
        with sweeping(sweep_of(database, store, tmp_path), "one"):
            limit = time.monotonic() + 30
            while keys_of(store) and time.monotonic() < limit:
                time.sleep(0.01)
        assert keys_of(store) == set()


WRITER = """
import sys
from pathlib import Path
from storage.artifacts import LocalArtifacts
from storage.database import Database
from tests.storage.test_sweeper import race
with Database(Path(sys.argv[1]) / "race.sqlite", service=True) as database:
    race(database, LocalArtifacts(Path(sys.argv[1]) / "artifacts"), sys.argv[2], 60)
"""


def race(database: SqlDatabase, store: Store, name: str, turns: int, contents: bytes = b"abc") -> None:
    """Store and record the same few contents over and over, each time for a job that is removed right after.

    Fails if a recorded artifact cannot be read.
    """
    artifacts = BookedArtifacts(database, store)
    for turn in range(turns):
        data = bytes([contents[turn % len(contents)]]) * 5000
        job_id = f"{name}-{turn}"
        submit(database, job_id, TASK, POLICY, Request("", "default"))
        key = artifacts.put(data, ".png")
        with database.write() as connection:
            lost = references.missing(connection, [key])
            if not lost:
                references.hold(connection, job_id, [key])
            change_state(connection, job_id, JobState("cancelled"), database.now(connection))
        if not lost:
            if isinstance(store, S3Artifacts):
                store.copies.drop([key])
            assert read_soon(artifacts, key) == data
        remove(database, job_id, None)


def read_soon(artifacts: BookedArtifacts, key: str) -> bytes:
    """The content. As announcements count as old at once here, another writer may just be writing it again."""
    limit = time.monotonic() + 10
    while True:
        try:
            return artifacts.read(key)
        except ArtifactMissing:
            if time.monotonic() > limit:
                raise
            time.sleep(0.01)


@pytest.mark.slow
def test_processes_that_store_what_another_one_sweeps_never_lose_a_recorded_artifact(tmp_path: Path) -> None:
    with Database(tmp_path / "race.sqlite", service=True) as database:
        store = LocalArtifacts(tmp_path / "artifacts")
        command = [sys.executable, "-c", WRITER, str(tmp_path)]
        writers = [subprocess.Popen([*command, name], cwd=ROOT) for name in ("one", "two")]
        swept = swept_while(database, store, tmp_path, lambda: any(writer.poll() is None for writer in writers))
        assert [writer.wait() for writer in writers] == [0, 0]
        assert swept > 3


def swept_while(database: SqlDatabase, store: Store, folder: Path, going: Callable[[], bool]) -> int:
    """Sweep without a pause, with what was announced counting as old at once; how many artifacts went."""
    swept = 0
    while going():
        with database.write() as connection:
            unheld = ArtifactRow.unreferenced_since.is_not(None)
            connection.execute(update(ArtifactRow).where(unheld).values(unreferenced_since=1.0))
        done = sweep_of(database, store, folder).brief()
        swept += done.removed.get("artifacts", Removed()).count
    return swept


def test_machines_that_store_in_s3_what_another_one_sweeps_never_lose_a_recorded_artifact(
    opened: OpenDatabase, variables: Mapping[str, str], tmp_path: Path
) -> None:
    url = f"s3://{new_bucket(variables)}"
    failures: list[BaseException] = []

    def write(number: int) -> None:
        store = S3Artifacts(url, tmp_path / f"copies-{number}", copied_bytes=0)
        try:
            race(opened(), store, f"job-{number}", 25, contents=bytes([number]))
        except BaseException as error:
            failures.append(error)
        finally:
            store.close()

    threads = [threading.Thread(target=write, args=(number,)) for number in range(2)]
    sweeper = S3Artifacts(url, tmp_path / "copies")
    for thread in threads:
        thread.start()
    swept = swept_while(opened(), sweeper, tmp_path, lambda: any(thread.is_alive() for thread in threads))
    sweeper.close()
    assert failures == []
    assert swept > 3
    shutil.rmtree(tmp_path / "copies")


def test_a_writer_waits_for_the_removal_under_way_and_then_finds_no_file(
    open_store: OpenStore, tmp_path: Path
) -> None:
    """The instant that would lose a file: the sweeper has decided, the writer looks whether there is one."""
    with Database(tmp_path / "one.sqlite", service=True) as database:
        store = open_store()
        artifacts = BookedArtifacts(database, store)
        key = artifacts.put(b"frame", ".png")
        age(database, references.ARRIVAL_SECONDS + HOUR + 1)
        writer = threading.Thread(target=lambda: artifacts.put(b"frame", ".png"))
        with database.write() as connection:
            references.condemn(connection, [key], before=1e12)
        with database.write() as connection:
            assert references.forget(connection, [key]) == [key]
            writer.start()
            writer.join(0.3)
            assert writer.is_alive()  # it announces first, and that waits
            store.remove([key])
        writer.join()
        assert keys_of(store) == {key}
        assert artifacts.read(key) == b"frame"
        assert booked(database) == {key}
        with database.read() as connection:
            assert connection.execute(select(func.count()).select_from(ArtifactRow)).scalar_one() == 1
