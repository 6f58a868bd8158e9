"""A render worker keeps a real model warm: loaded once for many clips, in memory that does not grow."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cliploop.site import Addresses
from storage.jobs import load_job
from storage.journal import read_entries
from storage.queue import REASON, render_queues
from tests.cliploop.commandline import child_environment
from tests.generators.tiny_wan import checkpoint
from tests.storage.brokers import lent_broker
from tests.storage.jobs_for_tests import ROOT
from tests.workers.sites import a_site, submitted
from workers.desk import Desk
from workers.worker import DOES

CLIPS = 50
GROWTH = 1.05
SETTINGS = """
[defaults]
first_step_seconds = 0.5
denoising_steps = 2
[generators.tiny]
type = "wan"
model = "{model}"
dtype = "float32"
min_side = 32
max_side = 64
max_pixels = 4096
max_frames = 9
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return checkpoint("a14b", tmp_path_factory.mktemp("warm") / "a14b")


@pytest.mark.slow
def test_a_warm_worker_loads_its_model_once_for_20_clips_of_5_jobs(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline: Any = importlib.import_module("diffusers").WanImageToVideoPipeline
    load, loads = pipeline.from_pretrained, list[str]()

    def counted(folder: str, **given: Any) -> Any:
        loads.append(folder)
        return load(folder, **given)

    monkeypatch.setattr(pipeline, "from_pretrained", counted)
    (tmp_path / "cliploop.toml").write_text(SETTINGS.format(model=model))
    with a_site(tmp_path) as site:
        jobs = [submitted(site, generator="tiny", strategy="pass@4", seed=seed) for seed in range(5)]
        desk = Desk(site, "tester")
        for job_id in jobs:
            site.messages.advance(job_id)
        while (message := site.messages.take((REASON, *render_queues("tiny")), 1)) is not None:
            DOES[message.function](desk, message)
        keys = [entry.key for job_id in jobs for entry in read_entries(site.database, job_id)]
        assert sum(key.endswith("/clip") for key in keys) == 20
        assert {load_job(site.database, job_id).state.state for job_id in jobs} == {"succeeded"}
    assert loads == [str(model)]


@pytest.mark.slow
def test_memory_does_not_grow_over_50_clips(model: Path) -> None:
    """In a process of its own. Allocators breathe by some percent, so it is medians of twenty clips."""
    program = f"""
from pathlib import Path
from statistics import median
from generators.catalog import build
from media.editor import VideoEditor
from tests.generators.tiny_i2v import Table, rendered
from tests.generators.tiny_wan import SMALL

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1])

table = Table(32, 32)
generator = build("wan", {{"model": {str(model)!r}, **SMALL}}, table.reader)
editor = VideoEditor(table.artifacts, table.reader)
held = []
for seed in range(20 + {CLIPS}):
    shot = table.shot(seed=seed)
    editor.store(rendered(generator, shot), shot)
    held.append(resident())
print(int(median(held[10:30])), int(median(held[-20:])))
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=ROOT, timeout=240
    )
    assert ran.returncode == 0, ran.stderr
    before, after = map(int, ran.stdout.split())
    assert after <= GROWTH * before, f"{before} pages before, {after} after {CLIPS} clips"


def test_a_worker_whose_model_cannot_be_loaded_says_so_at_its_start_and_ends(tmp_path: Path) -> None:
    absent = "/models/wan2.2-i2v"
    (tmp_path / "cliploop.toml").write_text(SETTINGS.format(model=absent))
    with lent_broker() as broker:
        named = Addresses(tmp_path / "data", broker).environment()
        command = [sys.executable, "-m", "cliploop.cli", "worker", "render", "--generator", "tiny"]
        ended = subprocess.run(
            command, cwd=tmp_path, env=child_environment(**named, PYTHONPATH=str(ROOT)),
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
    assert ended.returncode == 2, ended.stderr
    assert f"cliploop: model {absent}: no such folder" in ended.stderr
    assert "is ready" not in ended.stderr
