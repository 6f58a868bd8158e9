"""The conformance suite passes what conforms and fails what does not, each fault by its own check."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from generators.catalog import GENERATORS, build
from generators.conformance import Finding, check
from media.frames import FrameReader
from orchestrator.errors import BackendFailed, JobCancelled
from orchestrator.frame_counts import snap
from orchestrator.ports import Artifacts
from orchestrator.records import Capabilities, Shot
from storage.artifacts import MemoryArtifacts


class Handmade:
    """A small generator written for these tests: a still picture with some noise in a corner, and one fault."""

    def __init__(self, artifacts: Artifacts, fault: str = "", **capabilities: Any) -> None:
        self._reader = FrameReader(artifacts)
        self._fault = fault
        self._calls = 0
        given = {"name": "handmade", "size_multiple": 16, "frame_step": 4, "frame_offset": 1, **capabilities}
        self.capabilities = Capabilities.model_validate(given)

    def render(
        self,
        shot: Shot,
        *,
        resume: str | None,
        checkpoint: Callable[[str], None],
        progress: Callable[[float], None],
        cancelled: Callable[[], bool],
    ) -> Any:
        self._calls += 1
        if self._fault == "dies":
            raise BackendFailed("out of memory")
        submits = self.capabilities.remote and (resume is None or self._fault == "resubmits")
        if submits and self._fault != "no token":
            checkpoint(f"render-{shot.seed}")
        for step in range(4):
            if cancelled() and self._fault != "deaf":
                raise JobCancelled("stop")
            progress(step / 4 if self._fault != "falling" else 1 - step / 4)
        progress(0.9 if self._fault == "never done" else 1.0)
        return self._frames(shot)

    def _frames(self, shot: Shot) -> Any:
        count = shot.num_frames if self._fault == "any count" else snap(shot.num_frames, self.capabilities)
        start = self._reader.picture(shot.start_frame)
        frames = np.repeat(start[np.newaxis], count, axis=0)
        seed = self._calls if self._fault == "moody" else 0 if self._fault == "seedless" else shot.seed
        noise = np.random.default_rng(seed).integers(0, 255, (count, 4, 4, 3), dtype=np.uint8)
        frames[1:, :4, :4] = noise[1:]
        if self._fault == "drifts":
            frames = (frames.astype(np.int16) + 20).clip(0, 255).astype(np.uint8)
        if self._fault == "rounds":
            frames = frames[:, : start.shape[0] // 32 * 32 - 16]
        if self._fault == "floats":
            return frames / 255
        return list(frames) if self._fault == "list" else frames


def _failed(fault: str, **capabilities: Any) -> dict[str, Finding]:
    artifacts = MemoryArtifacts()
    found = list(check(Handmade(artifacts, fault, **capabilities), artifacts))
    assert len(found) == 8
    return {finding.name: finding for finding in found if not finding.passed}


@pytest.mark.parametrize("name", [name for name in GENERATORS if name.startswith("simulated")])
def test_every_simulated_generator_conforms(name: str) -> None:
    artifacts = MemoryArtifacts()
    found = list(check(build(name, {}, FrameReader(artifacts)), artifacts))
    assert [finding for finding in found if not finding.passed] == []


def test_a_backend_that_drifts_at_frame_0_fails_and_is_told_why() -> None:
    failed = _failed("drifts")
    assert set(failed) == {"first frame"}
    assert "dB" in failed["first frame"].detail
    assert "drifts at frame 0" in failed["first frame"].detail


def test_a_backend_that_says_it_cannot_be_chained_fails() -> None:
    assert set(_failed("", chainable=False)) == {"first frame"}


@pytest.mark.parametrize(
    ("fault", "checks"),
    [
        ("floats", {"shape"}),
        ("rounds", {"sizes"}),
        ("any count", {"frame counts"}),
        ("moody", {"seeds", "cancel"}),
        ("deaf", {"cancel"}),
        ("falling", {"progress"}),
        ("never done", {"progress"}),
    ],
)
def test_each_fault_is_found_by_its_own_check(fault: str, checks: set[str]) -> None:
    assert checks <= set(_failed(fault))


def test_a_backend_without_fault_passes_and_an_ignored_seed_is_told() -> None:
    assert _failed("") == {}
    artifacts = MemoryArtifacts()
    seeds = next(f for f in check(Handmade(artifacts, "seedless"), artifacts) if f.name == "seeds")
    assert seeds.passed
    assert "ignored" in seeds.detail


def test_a_backend_that_takes_no_seed_is_not_held_to_one() -> None:
    assert "seeds" not in _failed("moody", seeded=False)


def test_a_remote_backend_is_taken_up_again_by_its_token() -> None:
    assert _failed("", remote=True) == {}
    assert set(_failed("no token", remote=True)) == {"checkpoint"}
    assert set(_failed("resubmits", remote=True)) == {"checkpoint"}


def test_a_backend_that_fails_every_render_fails_every_check_and_raises_nothing() -> None:
    failed = _failed("dies")
    assert len(failed) >= 7
    assert "out of memory" in failed["shape"].detail
