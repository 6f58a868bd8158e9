"""Passwords, keys and webhook secrets are in no log, no file, no answer and no command line of the service."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from redis import Redis

from storage.broker import embedded
from tests.cliploop.commandline import child_environment
from tests.end_to_end.asking import EXAMPLE, ROOT, ended
from tests.end_to_end.places import CLIPLOOP, Processes, postgres
from tests.service.asking import as_data_url
from tests.storage.receivers import receiving

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")]
BROKER, DATABASE, WEBHOOK = "bro-Wq7xkers", "data-Wq7xbase", "whsec_" + "V3E3eA" * 6  # nothing else is like them


@contextlib.contextmanager
def a_broker(folder: Path) -> Generator[str]:
    """One that asks for a password; its URL."""
    with embedded(folder) as url:
        redis: Any = cast("Any", Redis).from_url(url)
        redis.config_set("requirepass", BROKER)
        yield url.replace("unix://", f"unix://:{BROKER}@")
        redis.close()


def family(pid: int) -> list[int]:
    """A process and all below it."""
    found = [pid]
    for each in found:
        with contextlib.suppress(OSError):
            found += map(int, Path(f"/proc/{each}/task/{each}/children").read_text().split())
    return found


def words_of(pids: list[int]) -> str:
    return "\n".join(Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace") for pid in pids)


def texts(folder: Path) -> str:
    """Whatever is in its files."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    return "\n".join(path.read_bytes().decode("latin-1") for path in files)


def made_key(environment: dict[str, str]) -> str:
    words = [*CLIPLOOP, "keys", "create", "me"]
    given = {**child_environment(), "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run(words, env=given, capture_output=True, text=True, check=True).stdout.strip()


def asked(webhook: str) -> dict[str, Any]:
    return {
        "picture": as_data_url((EXAMPLE / "first_frame.png").read_bytes()),
        "prompt": (EXAMPLE / "prompt.txt").read_text(),
        "generator": "simulated-perfect",
        "max_steps": 1,
        "webhook": {"url": webhook, "secret": WEBHOOK},
    }


def test_no_secret_is_where_it_does_not_belong(tmp_path: Path) -> None:
    served = tmp_path / "served"
    (tmp_path / "postgres").mkdir()
    served.mkdir()
    with (
        postgres(tmp_path / "postgres", DATABASE) as socket,
        a_broker(tmp_path / "broker") as broker,
        receiving((500, {}, b"no")) as receiver,
    ):
        environment = {
            "CLIPLOOP_REDIS_URL": broker,
            "CLIPLOOP_DATABASE_URL": f"postgresql://cliploop:{DATABASE}@/cliploop?host={socket}",
            "CLIPLOOP_DATA": str(served / "data"),
            "CLIPLOOP_SERVICE__PRIVATE_WEBHOOKS": "true",
        }
        processes = Processes(served)
        secret = made_key(environment)
        said: list[str] = []
        try:
            processes.start("up", [*CLIPLOOP, "up", "--port", "0"], environment)
            headers = {"Authorization": f"Bearer {secret}"}
            with httpx.Client(
                base_url=processes.listens("up"), headers=headers, timeout=60, trust_env=False
            ) as client:
                answers = use(client, f"{receiver.url}/news")
                commands = words_of(family(processes.running["up"].pid))
                assert len(commands.splitlines()) >= 4
                processes.until("up", lambda: bool(receiver.got))
                provoke(broker)
                processes.until("up", lambda: "the broker cannot be reached" in processes.said("up"))
                answers += "".join(client.get(path).text for path in ("/readyz", "/metrics", "/v1/jobs"))
        finally:
            processes.end()
        said += [answers, commands, processes.said("up"), texts(served)]
    for place in said:
        for hidden in (secret, secret.removeprefix("clp_"), BROKER, DATABASE, WEBHOOK):
            assert hidden not in place


def use(client: httpx.Client, webhook: str) -> str:
    """A job to its end, and requests that fail; all answers."""
    answer = client.post("/v1/jobs", json=asked(webhook))
    assert answer.status_code == 202, answer.text
    job = ended(client, answer.json()["id"])
    assert job["state"] == "succeeded"
    told = [answer.text.replace(WEBHOOK, "", 1), json.dumps(job)]  # to who made the secret it may be said, once
    for path in ("trajectory", "events", "contact-sheet", "video"):
        told.append(client.get(f"/v1/jobs/{job['id']}/{path}").content.decode("latin-1"))
    told.append(client.post("/v1/jobs", json={**asked(webhook), "webhook": {"secret": WEBHOOK}}).text)
    told.append(client.post("/v1/jobs", json={**asked(webhook), "webhook": {"url": 1, "secret": WEBHOOK}}).text)
    told.append(client.get("/v1/jobs", headers={"Authorization": "Bearer clp_wrong"}).text)
    told.append(client.get("/v1/nothing").text)
    return "\n".join(told)


def provoke(broker: str) -> None:
    """Have every process find its broker's password wrong."""
    redis: Any = cast("Any", Redis).from_url(broker)
    redis.config_set("requirepass", "another")
    redis.client_kill_filter(_type="normal")
    redis.client_kill_filter(_type="pubsub")
    redis.close()
