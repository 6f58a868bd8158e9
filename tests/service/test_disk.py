"""A full disk, as the API tells it: what to do, nothing stored, and all well when there is room."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from cliploop.compose import Composition
from cliploop.serving import Serving
from cliploop.site import Site
from service.app import create_app
from tests.service.asking import posted, submission, work
from tests.service.serving import client_of, served
from tests.workers.sites import a_site


def test_a_submission_that_finds_no_room_is_answered_with_507_and_stores_nothing(
    small_file_system: Path, tmp_path: Path
) -> None:
    if not small_file_system.is_mount():
        pytest.skip("no small file system can be mounted here")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "artifacts").symlink_to(small_file_system)
    filler = small_file_system / "filler"
    free = os.statvfs(small_file_system)
    filler.write_bytes(bytes(free.f_bavail * free.f_frsize))
    with a_site(tmp_path) as site, served(create_app(site)) as address, client_of(address) as client:
        refused = client.post("/v1/jobs", json=submission())
        assert refused.status_code == 507
        assert refused.headers["content-type"] == "application/problem+json"
        assert refused.json()["code"] == "disk"
        assert "there is no room left" in refused.json()["detail"]
        assert int(refused.headers["retry-after"]) > 0
        assert client.get("/v1/jobs").json()["data"] == []
        assert list(small_file_system.iterdir()) == [filler]
        filler.unlink()
        posted(client)


def test_below_the_mark_jobs_are_taken_wait_for_the_disk_and_readyz_says_so(
    site: Site, client: httpx.Client
) -> None:
    mark = Composition(replace(site.composition.settings, service=Serving(min_free_gib=1e9)))
    low = replace(site, composition=mark)
    with served(create_app(low)) as address, client_of(address) as other:
        job_id = posted(other)
        work(low)
        job = other.get(f"/v1/jobs/{job_id}").json()
        assert (job["state"], job["reason"]) == ("waiting", "disk")
        ready = other.get("/readyz")
        assert ready.status_code == 503
        assert "nearly full" in ready.json()["missing"]["disk"]
    site.messages.beat("reason@here:1")
    site.messages.beat("render@here:2", ["simulated"])
    assert client.get("/readyz").status_code == 200
