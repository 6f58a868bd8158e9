"""A job goes on with the models and prompts that it was submitted with, or waits; it never mixes old and new."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cliploop.choosing import Wanted
from cliploop.compose import Composition
from cliploop.site import Site
from orchestrator.errors import JobWaiting
from orchestrator.records import Size
from storage.artifacts import MemoryArtifacts
from storage.jobs import load_job
from tests.workers.sites import a_site, submitted
from workers.desk import Desk
from workers.reason import advance

SHIPPED = Path(__file__).parents[2] / "planners" / "prompts"
SETTINGS = """
[defaults]
generator = "simulated-perfect"
planner = "{planner}"
verifier = "strict"
[vlms.q]
type = "openai_compatible"
base_url = "{url}"
model = "{model}"
prompts = "{prompts}"
timeout_seconds = {seconds}
[planners.q]
vlm = "q"
[verifiers.strict]
type = "single"
vlm = "q"
"""


def settings(folder: Path, **other: str) -> Path:
    plain = {"planner": "oracle", "url": "http://127.0.0.1:9/v1", "model": "m", "seconds": "60"}
    prompts = folder / "prompts"
    prompts.mkdir(exist_ok=True)
    verifier = prompts / "verifier.md"
    if not verifier.exists():
        verifier.write_text((SHIPPED / "verifier.md").read_text(encoding="utf-8"), encoding="utf-8")
    text = SETTINGS.format(**{**plain, "prompts": str(prompts), **other})
    (folder / "cliploop.toml").write_text(text)
    return verifier


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    settings(tmp_path)
    with a_site(tmp_path) as site:
        yield site


def test_a_changed_prompt_stops_a_job_until_it_is_put_back(site: Site, tmp_path: Path) -> None:
    job_id = submitted(site, generator="simulated-perfect")
    verifier = tmp_path / "prompts" / "verifier.md"
    before = verifier.read_text()
    verifier.write_text(before.replace("Never reject a clip for small artefacts", "Reject a clip for anything"))
    desk = Desk(site, "tester")
    advance(desk, job_id)
    stopped = load_job(site.database, job_id).state
    assert (stopped.state, stopped.reason) == ("waiting", "changed")
    assert "fork the job from the step" in stopped.message
    verifier.write_text(before)
    advance(desk, job_id)
    assert load_job(site.database, job_id).state.state == "running"


def digest_now(folder: Path) -> str:
    policy = Composition.read(None, {}, folder).policy(Wanted(), Size(width=64, height=48))
    return policy.backends_digest


def test_where_a_model_is_and_how_long_it_is_waited_for_may_change_meanwhile(tmp_path: Path) -> None:
    settings(tmp_path)
    before = digest_now(tmp_path)
    settings(tmp_path, url="http://other-box:8000/v1", seconds="300")
    assert digest_now(tmp_path) == before
    settings(tmp_path, model="another")
    assert digest_now(tmp_path) != before


def test_the_one_who_plays_a_job_with_another_model_is_told_so(tmp_path: Path) -> None:
    settings(tmp_path)
    policy = Composition.read(None, {}, tmp_path).policy(Wanted(), Size(width=64, height=48))
    settings(tmp_path, model="another")
    changed = Composition.read(None, {}, tmp_path)
    clock: object = None
    with pytest.raises(JobWaiting, match="set up otherwise than when it was submitted") as waiting:
        changed.ports(policy, MemoryArtifacts(), clock=clock)  # pyright: ignore[reportArgumentType]
    assert waiting.value.reason == "changed"
    assert "cliploop.toml" not in waiting.value.outside
