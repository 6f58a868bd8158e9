"""Artifacts in S3, spoken to over HTTP: the same promises as a local folder, and errors that say what to do."""

from __future__ import annotations

import contextlib
import gc
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from cliploop.compose import Composition
from cliploop.site import Addresses, Site
from orchestrator.errors import BackendMisconfigured, BackendUnavailable
from storage.artifacts import ArtifactDamaged, ArtifactMissing, key_of
from storage.s3 import Pace, S3Artifacts
from tests.storage.buckets import client, environment_of, new_bucket, s3_server
from tests.storage.jobs_for_tests import ROOT

SOON = Pace(read_seconds=0.3, answer_seconds=0.6)
ABSENT = "0" * 64 + ".png"


@pytest.fixture(scope="module")
def variables() -> Iterator[Mapping[str, str]]:
    with s3_server() as variables, environment_of(variables):
        yield variables


@pytest.fixture
def bucket(variables: Mapping[str, str]) -> str:
    return new_bucket(variables)


@pytest.fixture
def artifacts(bucket: str, tmp_path: Path) -> Iterator[S3Artifacts]:
    made = S3Artifacts(f"s3://{bucket}/some/prefix", tmp_path / "copies")
    yield made
    made.close()


def elsewhere(artifacts: S3Artifacts, folder: Path) -> S3Artifacts:
    """The same store as another machine sees it: with no copy yet."""
    return S3Artifacts(artifacts.where, folder)


def test_what_is_put_lies_under_its_key_in_the_bucket_and_is_read_back_elsewhere(
    artifacts: S3Artifacts, variables: Mapping[str, str], bucket: str, tmp_path: Path
) -> None:
    key = artifacts.put(b"frame", ".png")
    assert key == key_of(b"frame", ".png")
    found = client(variables).get_object(Bucket=bucket, Key=f"some/prefix/{key}")
    assert found["Body"].read() == b"frame"
    there = elsewhere(artifacts, tmp_path / "there")
    assert there.read(key) == b"frame"
    assert there.path(key).read_bytes() == b"frame"
    there.close()


def test_a_copy_answers_while_s3_is_away(
    artifacts: S3Artifacts, bucket: str, variables: Mapping[str, str]
) -> None:
    key = artifacts.put(b"frame", ".png")
    client(variables).delete_object(Bucket=bucket, Key=f"some/prefix/{key}")
    assert artifacts.path(key).read_bytes() == artifacts.read(key) == b"frame"


def test_an_object_that_others_changed_is_never_handed_out(
    artifacts: S3Artifacts, bucket: str, variables: Mapping[str, str], tmp_path: Path
) -> None:
    key = artifacts.put(b"frame", ".png")
    client(variables).put_object(Bucket=bucket, Key=f"some/prefix/{key}", Body=b"fxame")
    there = elsewhere(artifacts, tmp_path / "there")
    for ask in (there.read, there.path):
        with pytest.raises(ArtifactDamaged, match=f"{key} is damaged"):
            ask(key)
    assert list((tmp_path / "there").glob("*.png")) == []
    artifacts.put(b"frame", ".png")
    assert there.read(key) == b"frame"
    there.close()


def test_a_copy_that_others_changed_is_fetched_again(artifacts: S3Artifacts, tmp_path: Path) -> None:
    key = artifacts.put(b"frame", ".png")
    (tmp_path / "copies" / key).write_bytes(b"another")
    assert artifacts.path(key).read_bytes() == b"frame"


def test_an_unknown_key_is_named_and_a_malformed_one_is_never_asked_for(artifacts: S3Artifacts) -> None:
    for ask in (artifacts.read, artifacts.path):
        with pytest.raises(ArtifactMissing, match=f"{ABSENT} is not in s3://"):
            ask(ABSENT)
        with pytest.raises(ArtifactMissing, match="is no artifact key"):
            ask("../secret.png")


def test_a_store_lists_its_own_artifacts_and_no_others_in_pages(
    artifacts: S3Artifacts, bucket: str, variables: Mapping[str, str]
) -> None:
    keys = {artifacts.put(bytes([number]), ".png") for number in range(5)}
    s3 = client(variables)
    s3.put_object(Bucket=bucket, Key="some/prefix/readme.txt", Body=b"of others")
    s3.put_object(Bucket=bucket, Key=f"other/{ABSENT}", Body=b"of others")
    found = list(artifacts.stored(page=2))
    assert {each.key for each in found} == keys
    assert {each.num_bytes for each in found} == {1}
    first = s3.head_object(Bucket=bucket, Key=f"some/prefix/{found[0].key}")
    assert found[0].changed_at == first["LastModified"].timestamp()


def test_what_is_removed_is_gone_with_its_copy_and_what_was_not_there_is_no_error(
    artifacts: S3Artifacts, tmp_path: Path
) -> None:
    kept, *going = [artifacts.put(bytes([number]), ".png") for number in range(4)]
    artifacts.remove([*going, ABSENT])
    assert [each.key for each in artifacts.stored()] == [kept]
    assert [path.name for path in (tmp_path / "copies").glob("*.png")] == [kept]
    with pytest.raises(ArtifactMissing):
        artifacts.read(going[0])


def test_many_threads_put_and_read_at_once(artifacts: S3Artifacts, tmp_path: Path) -> None:
    there = elsewhere(artifacts, tmp_path / "there")
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for turn in range(5):
                data = bytes([number % 2, turn]) * 1000
                assert there.read(artifacts.put(data, ".png")) == data
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    there.close()
    assert failures == []


def test_a_bucket_that_is_not_there_is_named_with_the_remedy(
    variables: Mapping[str, str], artifacts: S3Artifacts, bucket: str, tmp_path: Path
) -> None:
    with pytest.raises(BackendMisconfigured, match=r"there is no bucket 'no-such-bucket'.*create it"):
        S3Artifacts("s3://no-such-bucket", tmp_path / "c")
    client(variables).delete_bucket(Bucket=bucket)
    with pytest.raises(BackendMisconfigured, match="there is no bucket"):
        artifacts.put(b"frame", ".png")
    with pytest.raises(BackendMisconfigured, match="there is no bucket"):
        artifacts.check()


def test_a_bucket_that_refuses_us_is_named_with_the_remedy(
    artifacts: S3Artifacts, variables: Mapping[str, str], bucket: str
) -> None:
    policy = (
        '{"Version": "2012-10-17", "Statement": [{"Effect": "Deny", "Principal": "*", "Action": "s3:PutObject",'
        f'"Resource": "arn:aws:s3:::{bucket}/*"}}]}}'
    )
    client(variables).put_bucket_policy(Bucket=bucket, Policy=policy)
    with pytest.raises(BackendMisconfigured, match=r"refuses us.*check AWS_ACCESS_KEY_ID") as refused:
        artifacts.put(b"frame", ".png")
    assert variables["AWS_SECRET_ACCESS_KEY"] not in str(refused.value)


def test_a_server_that_cannot_be_reached_may_be_there_later_and_is_not_named(
    bucket: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://name:password@127.0.0.1:9")
    with pytest.raises(BackendUnavailable, match=f"s3://{bucket} cannot be reached now") as away:
        S3Artifacts(f"s3://{bucket}", tmp_path / "copies")
    assert "password" not in str(away.value)
    assert away.value.__cause__ is None


def test_an_endpoint_of_s3_alone_wins_over_the_general_one(
    bucket: str, variables: Mapping[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", variables["AWS_ENDPOINT_URL"])
    made = S3Artifacts(f"s3://{bucket}", tmp_path / "copies")
    assert made.read(made.put(b"frame", "")) == b"frame"
    made.close()


def test_missing_credentials_are_named(bucket: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(BackendMisconfigured, match=r"no credentials for .*AWS_ACCESS_KEY_ID"):
        S3Artifacts(f"s3://{bucket}", tmp_path / "copies")


@pytest.mark.parametrize(
    "url",
    [
        "s3://",
        "bucket/prefix",
        "https://bucket",
        "s3://key:secret@bucket/prefix",
        "s3://bucket/../other",
        "s3://bucket/a//b",
        "s3://Bucket",
        "s3://bucket?key=secret",
        "file:///tmp",
    ],
)
def test_an_address_that_is_none_is_refused_and_not_repeated(url: str, tmp_path: Path) -> None:
    with pytest.raises(BackendMisconfigured, match="must be written s3://bucket") as refused:
        S3Artifacts(url, tmp_path / "copies")
    assert "secret" not in str(refused.value)


def test_without_the_extra_the_remedy_is_named_and_nothing_else_needs_it() -> None:
    code = (
        "import sys; sys.modules['s3fs'] = None\n"
        "from pathlib import Path; from orchestrator.errors import BackendMisconfigured\n"
        "import cliploop.site, storage.s3\n"
        "try: storage.s3.S3Artifacts('s3://bucket', Path('copies'))\n"
        "except BackendMisconfigured as error: print(error)\n"
        "assert 'botocore' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "pip install 'cliploop[s3]'" in done.stdout


def test_connections_are_given_back_without_a_warning(bucket: str, tmp_path: Path) -> None:
    code = (
        "import sys, gc; from pathlib import Path; from storage.s3 import Pace, S3Artifacts\n"
        "made = S3Artifacts(sys.argv[1], Path(sys.argv[2])); made.put(b'x', '.png')\n"
        "if sys.argv[3] == 'close': made.close()\n"
        "del made; gc.collect()"
    )
    for how in ("close", "leave"):
        command = [sys.executable, "-W", "error", "-c", code, f"s3://{bucket}", str(tmp_path), how]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        assert done.stderr == ""


def test_a_site_keeps_its_artifacts_where_the_environment_says_and_tells_its_children(
    bucket: str, tmp_path: Path
) -> None:
    from storage.broker import embedded

    said = {"CLIPLOOP_DATA": str(tmp_path / "data"), "CLIPLOOP_ARTIFACTS_URL": f"s3://{bucket}/here"}
    with embedded(tmp_path / "broker") as broker:
        addresses = Addresses.of(said, broker=broker)
        assert addresses.environment() == {**said, "CLIPLOOP_REDIS_URL": broker}
        with Site.opened(addresses, Composition.read(None, {}, tmp_path)) as site:
            key = site.artifacts.put(b"frame", ".png")
            assert [each.key for each in site.artifacts.store.stored()] == [key]
    assert not (tmp_path / "data" / "artifacts").exists()
    gc.collect()
    assert not any("SECRET" in name for name in addresses.environment())
    assert os.environ["AWS_SECRET_ACCESS_KEY"]


@contextlib.contextmanager
def deaf_server() -> Generator[tuple[str, threading.Event]]:
    """An endpoint that says yes to everything, until the event is set: then it accepts, and answers nothing."""
    deaf, over = threading.Event(), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:  # and whatever else is asked for
            if deaf.is_set():
                over.wait(60)
            self.send_response(200)
            self.end_headers()

        def __getattr__(self, name: str) -> Callable[[], None]:
            if name.startswith("do_"):
                return self.do_HEAD
            raise AttributeError(name)

        def log_message(self, format: str, *args: object) -> None:
            """Silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    serving = threading.Thread(target=server.serve_forever, daemon=True)
    serving.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", deaf
    finally:
        over.set()
        server.shutdown()
        server.server_close()


def test_a_server_that_accepts_and_does_not_answer_is_given_up_in_time(
    variables: Mapping[str, str], tmp_path: Path
) -> None:
    with deaf_server() as (url, deaf), environment_of({**variables, "AWS_ENDPOINT_URL": url}):
        artifacts = S3Artifacts("s3://bucket", tmp_path / "copies", pace=Pace(0.3, 20.0))
        artifacts._pace = SOON
        deaf.set()
        calls: list[Callable[[], object]] = [
            lambda: artifacts.check(0.5),
            lambda: artifacts.put(b"frame", ".png"),
            lambda: artifacts.read(ABSENT),
            lambda: artifacts.path(ABSENT),
        ]
        for call in calls:
            began = time.monotonic()
            with pytest.raises(BackendUnavailable, match="cannot be reached now"):
                call()
            assert time.monotonic() - began < 20
        artifacts.close()


def test_artifacts_are_stored_although_the_copies_have_no_place(artifacts: S3Artifacts, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "copies")
    (tmp_path / "copies").write_text("in the way")
    key = artifacts.put(b"frame", ".png")
    (tmp_path / "copies").unlink()
    assert artifacts.read(key) == b"frame"
    assert artifacts.path(key).parent == tmp_path / "copies"
