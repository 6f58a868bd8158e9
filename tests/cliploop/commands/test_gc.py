"""`cliploop gc`: what a sweep removes, in words and as JSON; nothing with --dry-run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from sqlalchemy import update

from cliploop.site import Addresses
from storage.artifacts import LocalArtifacts
from storage.booked import BookedArtifacts
from storage.tables import ArtifactRow
from tests.cliploop.commandline import command
from tests.storage.buckets import environment_of, new_bucket, s3_server


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("CLIPLOOP_DATA", "CLIPLOOP_DATABASE_URL", "CLIPLOOP_REDIS_URL", "CLIPLOOP_ARTIFACTS_URL"):
        monkeypatch.delenv(name, raising=False)


def filled(addresses: Addresses) -> None:
    """A site with two files that nobody holds any more, and one that somebody is about to record."""
    with addresses.opened_database() as database:
        store = addresses.opened_store()
        artifacts = BookedArtifacts(database, store)
        for content in (b"x" * 1000, b"y" * 3000):
            artifacts.put(content, ".png")
        with database.write() as connection:
            connection.execute(update(ArtifactRow).values(unreferenced_since=1.0))
        artifacts.put(b"young", ".png")
        store.close()


def keys(addresses: Addresses) -> list[str]:
    store = addresses.opened_store()
    try:
        return [file.key for file in store.stored()]
    finally:
        store.close()


def test_a_dry_run_says_what_would_go_and_the_real_one_removes_it(capsys: pytest.CaptureFixture[str]) -> None:
    filled(Addresses.of({}))
    dry = command(capsys, "gc", "--dry-run")
    assert dry.code == 0
    assert "would go" in dry.out
    assert "2      3.9 KiB  files that nobody holds" in dry.out
    assert len(keys(Addresses.of({}))) == 3
    done = command(capsys, "gc", "--json").json
    assert done["ok"] is True
    assert done["dry_run"] is False
    assert done["removed"]["artifacts"] == {"count": 2, "num_bytes": 4000}
    assert done["removed"]["jobs"] == {"count": 0, "num_bytes": 0}
    assert len(keys(Addresses.of({}))) == 1
    assert command(capsys, "gc", "--json").json["removed"]["artifacts"]["count"] == 0


def test_it_sweeps_the_folder_that_is_named_with_the_operators_times(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    addresses = Addresses(tmp_path / "there", "")
    filled(addresses)
    (tmp_path / "cliploop.toml").write_text("[service]\nsweep_after_seconds = 1e12\n", encoding="utf-8")
    command(capsys, "gc", "--data", "there")
    assert len(keys(addresses)) == 3
    (tmp_path / "cliploop.toml").unlink()
    command(capsys, "gc", "--data", "there")
    assert len(keys(addresses)) == 1


def test_files_of_another_database_are_left_alone_until_asked_for(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    store = LocalArtifacts(tmp_path / "cliploop-data" / "artifacts")
    for number in range(3):
        os.utime(store.path(store.put(bytes([number]), ".png")), (1.0, 1.0))
    with Addresses.of({}).opened_database():
        pass
    said = command(capsys, "gc")
    assert "left alone: 3 files" in said.out
    assert "--strays" in said.out
    assert len(list(store.stored())) == 3
    assert command(capsys, "gc", "--strays", "--json").json["removed"]["strays"]["count"] == 3
    assert list(store.stored()) == []


def test_where_no_service_has_run_there_is_nothing_to_sweep_and_nothing_is_made(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    said = command(capsys, "gc")
    assert (said.code, "no service has run" in said.out) == (0, True)
    assert command(capsys, "gc", "--json").json["ok"] is True
    assert list(tmp_path.iterdir()) == []


def test_it_sweeps_a_bucket_too_and_says_no_secret(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with s3_server() as variables, environment_of(variables):
        monkeypatch.setenv("CLIPLOOP_ARTIFACTS_URL", f"s3://{new_bucket(variables)}/here")
        filled(Addresses.of(os.environ))
        said = command(capsys, "gc", "--json")
        assert said.json["removed"]["artifacts"] == {"count": 2, "num_bytes": 4000}
        assert len(keys(Addresses.of(os.environ))) == 1
        assert variables["AWS_SECRET_ACCESS_KEY"] not in said.out + said.err
        monkeypatch.setenv("CLIPLOOP_ARTIFACTS_URL", "s3://no-such-bucket")
        refused = command(capsys, "gc")
        assert refused.code == 2
        assert "there is no bucket 'no-such-bucket'" in refused.err


def test_its_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    said = command(capsys, "gc", "--help")
    assert said.code == 0
    for word in ("--dry-run", "sweep_after_seconds", "safe while the service runs", "cliploop gc --data"):
        assert word in said.out


def test_with_nothing_to_remove_it_says_what_is_kept_and_how_it_goes_at_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(Addresses.of({}))
    command(capsys, "gc")
    said = " ".join(command(capsys, "gc").out.split())
    assert said.startswith("nothing to remove")
    assert "files that nobody holds any more 3600 s" in said
    variable = "CLIPLOOP_SERVICE__SWEEP_AFTER_SECONDS"
    assert f"{variable}=0 cliploop gc" in said
    with Addresses.of({}).opened_database() as database, database.write() as connection:
        connection.execute(update(ArtifactRow).values(unreferenced_since=database.now(connection) - 1))
    monkeypatch.setenv(variable, "0")
    assert "removed" in command(capsys, "gc").out
    assert keys(Addresses.of({})) == []
