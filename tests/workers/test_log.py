"""What operators read: a line per job for accepted, begun and ended; never what it is about."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from storage.jobs import load_job
from tests.service.asking import work
from tests.workers.sites import a_site, submitted


def test_a_job_is_logged_when_it_is_accepted_begins_and_ends(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with a_site(tmp_path) as site:
        job_id = submitted(site, generator="simulated-perfect", max_steps=1)
        site.messages.advance(job_id)
        work(site)
        prompt = str(load_job(site.database, job_id).task["prompt"])
    lines = [line for line in caplog.messages if line.startswith(f"job {job_id}: ")]
    assert lines[0].endswith(": accepted")
    assert lines[1].endswith(": begun")
    assert "succeeded" in lines[-1]
    assert " s after it began" in lines[-1]
    assert sum(": begun" in line for line in lines) == 1
    assert prompt not in caplog.text
