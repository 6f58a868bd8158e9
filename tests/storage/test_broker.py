"""The embedded broker: a real server that keeps its messages and ends with its owner."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, cast

import pytest
from redis import Redis

from orchestrator.errors import BackendUnavailable
from storage.broker import check_policy, embedded
from storage.lock import FolderBusy
from storage.queue import Messages
from tests.storage.jobs_for_tests import ROOT

OWNER = (
    "import sys, time; from pathlib import Path; from storage.broker import embedded\n"
    "with embedded(Path(sys.argv[1])) as url:\n"
    "    print(url, (Path(sys.argv[1]) / 'valkey.pid').read_text().strip(), flush=True)\n"
    "    time.sleep(60)\n"
)


def connected(url: str) -> Any:
    return cast("Any", Redis).from_url(url)


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def gone_within(pid: int, seconds: float) -> bool:
    limit = time.monotonic() + seconds
    while alive(pid) and time.monotonic() < limit:
        time.sleep(0.02)
    return not alive(pid)


def test_it_serves_while_the_block_runs_and_is_gone_afterwards(tmp_path: Path) -> None:
    with embedded(tmp_path / "broker") as url:
        messages = Messages(url)
        messages.ping()
        pid = int((tmp_path / "broker" / "valkey.pid").read_text())
        with connected(url) as redis:
            assert check_policy(redis) == ""
            assert redis.config_get("appendonly") == {"appendonly": "yes"}
    assert not alive(pid)
    with pytest.raises(BackendUnavailable, match="is it running"):
        messages.ping()
    messages.close()


def test_messages_outlive_a_restart(tmp_path: Path) -> None:
    with embedded(tmp_path) as url:
        messages = Messages(url)
        messages.advance("job-1")
        messages.close()
    with embedded(tmp_path) as url:
        messages = Messages(url)
        message = messages.take(["reason"], 1)
        assert message is not None
        assert message.arguments == ("job-1",)
        messages.close()


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGTERM])
def test_it_ends_with_its_owner_even_when_that_is_killed(tmp_path: Path, by: signal.Signals) -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert owner.stdout is not None
    url, pid = owner.stdout.readline().split()
    assert url.startswith("unix://")
    assert alive(int(pid))
    os.kill(owner.pid, by)
    owner.wait()
    owner.stdout.close()
    assert gone_within(int(pid), 5.0)
    with embedded(tmp_path) as url:
        messages = Messages(url)
        messages.ping()
        messages.close()


def test_one_folder_has_one_broker(tmp_path: Path) -> None:
    with embedded(tmp_path), pytest.raises(FolderBusy, match=str(os.getpid())), embedded(tmp_path):
        pass


def test_only_its_owner_can_enter_its_folder(tmp_path: Path) -> None:
    with embedded(tmp_path / "data"):
        assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700


def test_a_long_path_works_too(tmp_path: Path) -> None:
    with embedded(tmp_path / ("x" * 100)) as url:
        messages = Messages(url)
        messages.ping()
        messages.close()


def test_a_broker_that_may_evict_is_warned_of(tmp_path: Path) -> None:
    with embedded(tmp_path) as url, connected(url) as redis:
        redis.config_set("maxmemory-policy", "allkeys-lru")
        assert "allkeys-lru" in check_policy(redis)
        assert "noeviction" in check_policy(redis)
