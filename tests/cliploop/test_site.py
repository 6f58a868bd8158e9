"""A site, as it is opened for those who wait for an answer, and for work that would be lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cliploop.choosing import Wanted
from cliploop.compose import Composition
from cliploop.site import HURRIED_SECONDS, Addresses, Site
from orchestrator.errors import CliploopError
from orchestrator.pacing import Turn
from orchestrator.records import Size
from planners.pacing import Paced
from storage.artifacts import ArtifactMissing
from storage.broker import embedded
from storage.database import BUSY_SECONDS

ABSENT = "0" * 64 + ".png"


def opened(folder: Path, *, patient: bool = False) -> Site:
    addresses = Addresses(data=folder / "data", broker=f"unix://{folder}/nobody.sock")
    return Site.opened(addresses, Composition.read(None, {}, folder), patient=patient)


def busy_milliseconds(site: Site) -> int:
    with site.database.read() as connection:
        return int(connection.exec_driver_sql("PRAGMA busy_timeout").scalar_one())


def test_who_answers_waits_for_another_writer_a_few_seconds_and_a_worker_longer(tmp_path: Path) -> None:
    with opened(tmp_path) as hurried, opened(tmp_path, patient=True) as patient:
        assert busy_milliseconds(hurried) == HURRIED_SECONDS * 1000
        assert busy_milliseconds(patient) == BUSY_SECONDS * 1000
    assert HURRIED_SECONDS <= 5 < BUSY_SECONDS


def test_no_remedy_of_a_service_is_an_option_of_the_command_line(tmp_path: Path) -> None:
    said: list[str] = []
    with opened(tmp_path) as site:
        with pytest.raises(ArtifactMissing) as missing:
            site.artifacts.path(ABSENT)
        said.append(str(missing.value))
        key = site.artifacts.put(b"frame", ".png")
        path = site.artifacts.path(key)
        path.write_bytes(b"other")
        with pytest.raises(ArtifactMissing) as damaged:
            site.artifacts.path(key)
        said.append(str(damaged.value))
        path.parent.rename(tmp_path / "aside")
        for call in (site.artifacts.check, lambda: site.artifacts.put(b"new", ".png")):
            with pytest.raises(CliploopError, match="is gone: bring it back") as gone:
                call()
            said.append(str(gone.value))
    assert not any("--fresh" in words or "same command" in words for words in said)


VLM = """
[vlms.gemini]
type = "gemini"
requests_per_minute = 5
[planners.gemini]
vlm = "gemini"
[verifiers.gemini]
vlm = "gemini"
"""


def test_all_jobs_of_all_workers_share_the_limits_of_a_vlm_through_the_broker(tmp_path: Path) -> None:
    (tmp_path / "cliploop.toml").write_text(VLM)
    wanted = Wanted(planner="gemini", verifier="gemini", seed=1)
    turns: list[Turn] = []
    with embedded(tmp_path / "broker") as broker:
        for number in range(2):
            composition = Composition.read(None, {}, tmp_path)
            addresses = Addresses(data=tmp_path / f"worker-{number}", broker=broker)
            policy = composition.policy(wanted, Size(width=64, height=64))
            with Site.opened(addresses, composition) as site:
                planner: Any = site.ports(policy, lambda _key, _fraction: None, lambda: False).planner
                client: Paced = planner.client
                turns += [client.limiter.book(client.name, client.rate, 0, 0) for _ in range(4)]
    assert [bool(turn.id) for turn in turns] == [True] * 5 + [False] * 3
