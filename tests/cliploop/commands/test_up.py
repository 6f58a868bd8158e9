"""`cliploop up`, `serve` and `worker` as processes: they start, stop in order, and end with their parent."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from standardwebhooks.webhooks import Webhook

from cliploop.commands.up import refuse_open_doors
from cliploop.compose import Composition
from cliploop.site import Addresses, process_name
from orchestrator.errors import BackendMisconfigured
from storage.broker import embedded
from storage.keys import create, revoke
from storage.queue import Messages
from tests.cliploop.commandline import Said, child_environment
from tests.service.asking import submission
from tests.storage.jobs_for_tests import ROOT
from tests.storage.receivers import receiving

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")
STOPS_WITHIN_SECONDS = 10.0
CHILDREN = 3  # broker, reason worker, render worker


def begun(*words: str, cwd: Path, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "cliploop.cli", *words],
        cwd=cwd,
        env={**child_environment(**environment), "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def said(*words: str, cwd: Path, **environment: str) -> Said:
    process = begun(*words, cwd=cwd, **environment)
    out, err = process.communicate(timeout=60)
    return Said(process.returncode, out, err)


def refused(*words: str, cwd: Path, **environment: str) -> str:
    """Its one line; exit 2."""
    told = said(*words, cwd=cwd, **environment)
    assert told.code == 2, told
    assert len(told.err.splitlines()) == 1, told.err
    return told.err


def children(pid: int) -> list[int]:
    try:
        return list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))
    except OSError:
        return []


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def until(true: Callable[[], bool], seconds: float) -> bool:
    limit = time.monotonic() + seconds
    while not true() and time.monotonic() < limit:
        time.sleep(0.02)
    return true()


@pytest.fixture
def up(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A running one, with all its children; whatever is left of it is killed."""
    settings = {"CLIPLOOP_SERVICE__PRIVATE_WEBHOOKS": "true"}
    process = begun("up", "--port", "0", "--data", "data", cwd=tmp_path, **settings)
    assert until(lambda: len(children(process.pid)) >= CHILDREN, 30), process.communicate(timeout=5)
    mine = children(process.pid)
    yield process
    for pid in [process.pid, *mine, *children(process.pid)]:
        if alive(pid):
            os.kill(pid, signal.SIGKILL)
    process.communicate(timeout=10)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_says_where_everything_is_and_stops_all_of_it(
    up: subprocess.Popen[str], tmp_path: Path, number: int
) -> None:
    assert up.stdout is not None
    assert up.stdout.readline() == "starting ...\n"
    assert str(tmp_path / "data") in up.stdout.readline()
    mine, began = children(up.pid), time.monotonic()
    up.send_signal(number)
    out, err = up.communicate(timeout=30)
    assert time.monotonic() - began < STOPS_WITHIN_SECONDS
    assert up.returncode == 0, err
    assert "stopping" in out
    assert "Traceback" not in err
    assert not [pid for pid in mine if alive(pid)]


@pytest.mark.slow
def test_it_tells_a_webhook_how_a_job_ended(up: subprocess.Popen[str]) -> None:
    assert up.stdout is not None
    assert up.stdout.readline() == "starting ...\n"
    address = re.search(r"http://[^ ,]+", up.stdout.readline())
    assert address is not None
    with receiving() as receiver, httpx.Client(base_url=address[0], timeout=60, trust_env=False) as client:
        hook = {"webhook": {"url": receiver.url}, "max_steps": 1}
        job = client.post("/v1/jobs", json={**submission(), **hook}).json()
        assert until(lambda: bool(receiver.got), 60)
        _, headers, body = receiver.got[0]
        told = Webhook(job["webhook_secret"]).verify(body, headers)
        assert (told["type"], told["data"]["id"]) == ("job.succeeded", job["id"])


@pytest.mark.slow
def test_its_workers_say_that_they_live(up: subprocess.Popen[str], tmp_path: Path) -> None:
    broker = f"unix://{tmp_path}/data/broker/valkey.sock"

    def alive(*words: str, **environment: str) -> Said:
        return said("worker", "alive", *words, cwd=tmp_path, **environment)

    def of_the_folder() -> Said:
        return alive("--data", "data")

    assert until(lambda: all(role in of_the_folder().out for role in ("reason@", "render@")), 30)
    one = alive("--role", "render", CLIPLOOP_REDIS_URL=broker)
    assert one.code == 0
    assert "reason@" not in one.out
    (reason,), (render,) = (
        {int(pid) for pid in re.findall(rf"{role}@\S+?:(\d+)", of_the_folder().out)}
        for role in ("reason", "render")
    )
    priorities = [os.getpriority(os.PRIO_PROCESS, pid) for pid in (reason, render)]
    assert priorities[0] > priorities[1], "who plans and encodes gives way to who renders"
    os.kill(up.pid, signal.SIGTERM)
    up.communicate(timeout=30)
    for ended in (of_the_folder(), alive(CLIPLOOP_REDIS_URL=broker)):
        assert ended.code == 1
        assert len(ended.err.splitlines()) == 1


def test_a_worker_of_another_role_does_not_count(tmp_path: Path) -> None:
    with embedded(tmp_path / "data" / "broker") as url, closing(Messages(url)) as messages:
        messages.beat(process_name("reason"))
        assert said("worker", "alive", "--data", "data", "--role", "reason", cwd=tmp_path).code == 0
        none = said("worker", "alive", "--data", "data", "--role", "render", cwd=tmp_path)
    assert none.code == 1
    assert "no render worker" in none.err


@pytest.mark.slow
def test_everything_ends_with_it_even_when_it_is_killed(up: subprocess.Popen[str]) -> None:
    mine = children(up.pid)
    up.kill()
    up.wait()
    assert until(lambda: not any(map(alive, mine)), STOPS_WITHIN_SECONDS)


@pytest.mark.slow
def test_a_child_that_dies_is_started_again(up: subprocess.Popen[str]) -> None:
    for pid in children(up.pid):
        os.kill(pid, signal.SIGKILL)
        assert until(lambda: len(children(up.pid)) >= CHILDREN, 20)
        assert until(lambda pid=pid: pid not in children(up.pid), 20)


@pytest.mark.slow
def test_a_second_one_on_the_same_data_is_refused(up: subprocess.Popen[str], tmp_path: Path) -> None:
    assert "another cliploop" in refused("up", "--port", "0", "--data", "data", cwd=tmp_path)


@pytest.mark.parametrize("command", ["up", "serve"])
def test_a_port_in_use_is_one_line(tmp_path: Path, command: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        line = refused(command, "--port", port, cwd=tmp_path, CLIPLOOP_REDIS_URL="unix:///nowhere")
    if command == "up" or "API" not in line:
        assert f"cannot listen on 127.0.0.1:{port} (Address already in use)" in line
        assert "--port" in line
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["up", "serve"])
def test_without_keys_it_listens_on_this_machine_only(tmp_path: Path, command: str) -> None:
    line = refused(command, "--host", "0.0.0.0", "--port", "0", cwd=tmp_path, CLIPLOOP_REDIS_URL="unix:///none")
    assert "cliploop keys create" in line
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.2", "example.org", "", "localhost.example.org"])
def test_another_host_takes_a_key_that_works(tmp_path: Path, host: str) -> None:
    addresses = Addresses(tmp_path, "")
    with pytest.raises(BackendMisconfigured, match="cliploop keys create"):
        refuse_open_doors(host, addresses)
    with addresses.opened_database() as database:
        key, _ = create(database, "lab")
        refuse_open_doors(host, addresses)
        revoke(database, key.id)
    with pytest.raises(BackendMisconfigured):
        refuse_open_doors(host, addresses)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "::1", "localhost"])
def test_loopback_takes_no_key(tmp_path: Path, host: str) -> None:
    refuse_open_doors(host, Addresses(tmp_path, ""))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("worker", "reason"), "CLIPLOOP_REDIS_URL"),
        (("worker", "alive"), "CLIPLOOP_REDIS_URL"),
        (("worker", "render", "--generator", "simulatd"), "simulated"),
        (("worker", "render", "--generator", "simulated", "--clip-seconds", "0"), "--clip-seconds"),
        (("worker", "render"), "--generator"),
        (("up", "--port", "99999"), "99999"),
    ],
)
def test_what_cannot_work_is_one_line(tmp_path: Path, words: tuple[str, ...], says: str) -> None:
    assert says in refused(*words, cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_default_generator_that_cannot_be_loaded_is_said_and_ends_it(tmp_path: Path) -> None:
    (tmp_path / "cliploop.toml").write_text(
        "[defaults]\ngenerator = 'mine'\n[generators.mine]\ntype = 'wan'\nmodel = '/models/wan2.2-i2v'\n"
    )
    told = said("up", "--port", "0", "--data", str(tmp_path / "data"), cwd=tmp_path)
    assert told.code == 2
    assert "cliploop: model /models/wan2.2-i2v: no such folder" in told.err
    assert told.err.splitlines()[-1] == "cliploop: the render worker cannot start; what is wrong stands above"
    (tmp_path / "cliploop.toml").write_text(
        "[defaults]\ngenerator = 'ltx'\n[generators.ltx]\ntype = 'diffusers_i2v'\n"
    )
    assert "[generators.ltx]: generator 'diffusers_i2v': " in refused("up", "--port", "0", cwd=tmp_path)


def test_generators_that_lack_an_option_keep_no_worker_from_rendering_with_the_others(tmp_path: Path) -> None:
    (tmp_path / "cliploop.toml").write_text("[generators.tune]\ntype = 'wan'\nmodel = 'lab/our-tune'\n")
    names = Composition.read(None, {}, tmp_path).usable_generators()
    assert names[0] == "simulated"
    assert {"simulated-perfect", "wan", "veo", "cosmos"} <= set(names)
    assert not {"tune", "diffusers_i2v", "openai_videos"} & set(names)
