"""Artifacts: whole or not there, one file per content, no way out of the folder."""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.errors import BackendMisconfigured
from orchestrator.ports import Artifacts
from storage.artifacts import ArtifactDamaged, ArtifactMissing, LocalArtifacts, MemoryArtifacts
from tests.storage.jobs_for_tests import ROOT, child

FULL = """
import sys
from pathlib import Path
from orchestrator.errors import JobWaiting
from storage.artifacts import LocalArtifacts
artifacts = LocalArtifacts(Path(sys.argv[1]))
LIMIT
try:
    artifacts.put(b"x" * 3_000_000, ".mp4")
except JobWaiting as stop:
    print(stop.reason, stop)
small = artifacts.put(b"small", ".png")
assert artifacts.read(small) == b"small"
"""
FILE_SIZE_LIMIT = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))"
WRITER = """
import sys, time
from pathlib import Path
import storage.artifacts
artifacts = storage.artifacts.LocalArtifacts(Path(sys.argv[1]))
def stop_here(descriptor):
    print("half written", flush=True)
    time.sleep(60)
storage.artifacts.os.fsync = stop_here
artifacts.put(b"y" * 100_000, ".mp4")
"""


@pytest.fixture(params=["local", "memory"])
def artifacts(request: pytest.FixtureRequest, tmp_path: Path) -> Artifacts:
    return LocalArtifacts(tmp_path / "artifacts") if request.param == "local" else MemoryArtifacts()


@contextlib.contextmanager
def half_way_through_a_write(root: Path) -> Generator[subprocess.Popen[str]]:
    """A child that stands still in the middle of a put."""
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(root)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "half written\n"
        try:
            yield writer
        finally:
            writer.send_signal(signal.SIGKILL)


@settings(max_examples=40)
@given(data=st.binary(max_size=2000), suffix=st.sampled_from(["", ".png", ".mp4"]))
def test_what_is_put_is_read_back_under_the_hash_of_its_content(data: bytes, suffix: str) -> None:
    artifacts = MemoryArtifacts()
    key = artifacts.put(data, suffix)
    assert key == hashlib.sha256(data).hexdigest() + suffix
    assert artifacts.read(key) == data


def test_both_stores_give_the_same_key_and_a_file_with_the_content(artifacts: Artifacts) -> None:
    key = artifacts.put(b"frame", ".png")
    assert key == hashlib.sha256(b"frame").hexdigest() + ".png"
    assert artifacts.put(b"frame", ".png") == key
    assert artifacts.read(key) == b"frame"
    assert artifacts.path(key).read_bytes() == b"frame"
    assert artifacts.path(key).suffix == ".png"


def test_a_content_that_is_there_already_is_not_written_again(tmp_path: Path) -> None:
    artifacts = LocalArtifacts(tmp_path)
    before = artifacts.path(artifacts.put(b"frame", ".png")).stat()
    after = artifacts.path(artifacts.put(b"frame", ".png")).stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_a_file_of_the_wrong_size_is_replaced_by_the_whole_content(tmp_path: Path) -> None:
    artifacts = LocalArtifacts(tmp_path)
    path = artifacts.path(artifacts.put(b"a whole frame", ".png"))
    path.write_bytes(b"a who")
    assert artifacts.read(artifacts.put(b"a whole frame", ".png")) == b"a whole frame"


def flipped(path: Path) -> None:
    """The same size, another content."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def test_a_content_that_others_changed_is_never_handed_out_and_the_remedy_is_named(tmp_path: Path) -> None:
    key = LocalArtifacts(tmp_path).put(b"a whole frame", ".png")
    flipped(tmp_path / key)
    artifacts = LocalArtifacts(tmp_path)
    for ask in (artifacts.read, artifacts.path):
        with pytest.raises(ArtifactDamaged, match=f"{key} is damaged.*--fresh"):
            ask(key)


def test_a_content_that_changes_while_the_process_runs_is_seen(tmp_path: Path) -> None:
    artifacts = LocalArtifacts(tmp_path)
    key = artifacts.put(b"a whole frame", ".png")
    (tmp_path / key).write_bytes(b"a whole frame and more")
    with pytest.raises(ArtifactDamaged):
        artifacts.read(key)


def test_putting_the_content_again_repairs_a_damaged_file(tmp_path: Path) -> None:
    key = LocalArtifacts(tmp_path).put(b"a whole frame", ".png")
    flipped(tmp_path / key)
    artifacts = LocalArtifacts(tmp_path)
    assert artifacts.put(b"a whole frame", ".png") == key
    assert artifacts.read(key) == b"a whole frame"
    assert (tmp_path / key).read_bytes() == b"a whole frame"


def test_nothing_but_whole_files_lies_in_the_folder(tmp_path: Path) -> None:
    artifacts = LocalArtifacts(tmp_path)
    keys = {artifacts.put(bytes([number]) * 1000, ".png") for number in range(5)}
    assert {path.name for path in tmp_path.iterdir()} == keys


def test_what_a_killed_process_left_half_written_never_counts_and_is_cleaned_up(tmp_path: Path) -> None:
    with half_way_through_a_write(tmp_path):
        pass
    (part,) = tmp_path.iterdir()
    assert part.stat().st_size == 100_000
    artifacts = LocalArtifacts(tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert artifacts.read(artifacts.put(b"y" * 100_000, ".mp4")) == b"y" * 100_000


def test_what_a_living_process_is_writing_is_left_alone(tmp_path: Path) -> None:
    with half_way_through_a_write(tmp_path):
        LocalArtifacts(tmp_path)
        assert len(list(tmp_path.iterdir())) == 1


def test_a_file_size_limit_means_waiting_for_the_disk_and_leaves_nothing_half_written(tmp_path: Path) -> None:
    done = child(FULL.replace("LIMIT", FILE_SIZE_LIMIT), tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("disk no room for 3000000 bytes")
    assert "free some space" in done.stdout
    assert [path.stat().st_size for path in tmp_path.iterdir()] == [5]


def test_a_full_file_system_means_waiting_for_the_disk(small_file_system: Path) -> None:
    done = child(
        FULL.replace("LIMIT", FILE_SIZE_LIMIT if not os.path.ismount(small_file_system) else ""),
        small_file_system,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("disk no room for 3000000 bytes")
    assert [path.stat().st_size for path in small_file_system.iterdir()] == [5]


@pytest.mark.parametrize(
    "key",
    [
        "",
        "..",
        "../secret.txt",
        "/etc/passwd",
        "a" * 64 + "/../../secret.txt",
        "a" * 64 + ".png/../../secret.txt",
        "a" * 64 + ".png\n",
        "a" * 64 + ".png\0",
        "A" * 64 + ".png",
        "a" * 63 + ".png",
        "a" * 64 + ".tar.gz",
        "." + "a" * 64 + ".png.0123456789abcdef.part",
    ],
)
def test_a_malformed_key_is_refused_and_never_leaves_the_folder(
    artifacts: Artifacts, tmp_path: Path, key: str
) -> None:
    (tmp_path / "secret.txt").write_bytes(b"secret")
    for ask in (artifacts.read, artifacts.path):
        with pytest.raises(ArtifactMissing, match="is no artifact key"):
            ask(key)


@settings(max_examples=60)
@given(st.text(max_size=80))
def test_no_text_reads_anything_that_was_not_put(text: str) -> None:
    with pytest.raises(ArtifactMissing):
        MemoryArtifacts().path(text)


def test_an_unknown_key_is_named_with_the_remedy(tmp_path: Path) -> None:
    key = "b" * 64 + ".png"
    with pytest.raises(ArtifactMissing, match=f"{key} is not in {tmp_path}.*--fresh"):
        LocalArtifacts(tmp_path).read(key)
    with pytest.raises(ArtifactMissing, match=key):
        MemoryArtifacts().read(key)


@pytest.mark.parametrize("suffix", ["png", "./png", ".p/ng", "..png", ".PNG", "."])
def test_a_suffix_that_is_none_is_refused(artifacts: Artifacts, suffix: str) -> None:
    with pytest.raises(ValueError, match="is no suffix"):
        artifacts.put(b"frame", suffix)


def test_a_file_in_the_way_of_the_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")
    with pytest.raises(BackendMisconfigured, match=f"cannot make the folder {tmp_path}/out"):
        LocalArtifacts(tmp_path / "out" / "artifacts")


def test_a_folder_that_vanished_is_named(tmp_path: Path) -> None:
    artifacts = LocalArtifacts(tmp_path / "artifacts")
    (tmp_path / "artifacts").rmdir()
    with pytest.raises(BackendMisconfigured, match=f"cannot write to {tmp_path}/artifacts"):
        artifacts.put(b"frame", ".png")


def test_many_processes_put_the_same_content_at_once(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from storage.artifacts import LocalArtifacts\n"
        "for number in range(30): LocalArtifacts(Path(sys.argv[1])).put(bytes([number]) * 20_000, '.png')"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    writers = [subprocess.Popen(command, cwd=ROOT) for _ in range(4)]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0, 0]
    contents = sorted(path.read_bytes() for path in tmp_path.iterdir())
    assert contents == [bytes([number]) * 20_000 for number in range(30)]
