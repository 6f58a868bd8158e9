"""The backend `wan` on tiny random checkpoints of each family: what reaches the model, and what comes back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from generators.catalog import build
from generators.conformance import check
from media.canvas import choose
from media.editor import VideoEditor
from media.frames import FrameReader
from orchestrator.errors import BackendMisconfigured, JobCancelled
from orchestrator.records import Size
from storage.artifacts import MemoryArtifacts
from tests.generators.tiny_i2v import Table, rendered
from tests.generators.tiny_wan import TINY, checkpoint
from tests.generators.wan_desk import counted, pipeline_of, wan

FAMILIES = ("a14b", "ti2v", "wan21")


@pytest.fixture(scope="session")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("wan")
    return {name: checkpoint(name, folder / name) for name in FAMILIES}


@pytest.fixture(params=FAMILIES)
def folder(request: pytest.FixtureRequest, checkpoints: dict[str, Path]) -> Path:
    """Of every family in turn."""
    return checkpoints[request.param]


@pytest.fixture
def table() -> Table:
    return Table(96, 64)


def test_the_same_seed_gives_the_same_frames_and_another_seed_others(folder: Path, table: Table) -> None:
    generator = wan(folder, table)
    first = rendered(generator, table.shot())
    assert (first.shape, first.dtype) == ((9, 64, 96, 3), np.uint8)
    assert np.array_equal(first, rendered(wan(folder, table), table.shot()))
    assert not np.array_equal(first, rendered(generator, table.shot(seed=4)))


def test_the_same_seed_and_checkpoint_give_the_same_bytes_of_the_mezzanine(folder: Path, table: Table) -> None:
    shot = table.shot()
    editor = VideoEditor(table.artifacts, table.reader)
    clips = [editor.store(rendered(wan(folder, table), shot), shot) for _ in range(2)]
    assert clips[0] == clips[1]
    assert table.artifacts.read(clips[0].mezzanine)[4:8] == b"ftyp"


def test_what_was_rendered_is_recorded_and_not_what_was_asked(folder: Path, table: Table) -> None:
    shot = table.shot(num_frames=15)
    clip = VideoEditor(table.artifacts, table.reader).store(rendered(wan(folder, table), shot), shot)
    assert clip.num_frames == 17
    assert clip.rendered_size == Size(width=96, height=64)


@pytest.mark.parametrize(
    ("name", "multiple", "fps", "max_frames"),
    [("a14b", 16, 16, 81), ("ti2v", 32, 24, 121), ("wan21", 16, 16, 81)],
)
def test_each_family_has_its_own_sizes_rate_and_length(
    checkpoints: dict[str, Path], name: str, multiple: int, fps: float, max_frames: int
) -> None:
    told = build("wan", {"model": str(checkpoints[name])}, None).capabilities
    assert (told.size_multiple, told.fps, told.max_frames) == (multiple, fps, max_frames)
    assert (told.frame_step, told.frame_offset) == (4, 1)
    canvas = choose(Size(width=848, height=480), told)
    assert canvas.size.width % multiple == canvas.size.height % multiple == 0
    assert canvas.content.width / canvas.content.height == pytest.approx(848 / 480, rel=0.01)


@pytest.mark.parametrize(
    ("model", "title"),
    [
        ("Wan-AI/Wan2.2-I2V-A14B-Diffusers", "Wan2.2 I2V A14B"),
        ("somebody/VBVR-Wan2.2-diffusers", "Wan2.2 I2V A14B"),
        ("Wan-AI/Wan2.2-TI2V-5B-Diffusers", "Wan2.2 TI2V 5B"),
        ("Wan-AI/Wan2.1-I2V-14B-480P-Diffusers", "Wan2.1 I2V 480P"),
        ("Wan-AI/Wan2.1-I2V-14B-720P-Diffusers", "Wan2.1 I2V 720P"),
    ],
)
def test_a_process_without_the_files_knows_a_model_by_its_name(model: str, title: str) -> None:
    assert build("wan", {"model": model}, None).capabilities.name == f"{title} ({model})"


def test_a_name_that_says_nothing_needs_the_family(tmp_path: Path) -> None:
    with pytest.raises(BackendMisconfigured, match=r"cliploop models pull lab/our-tune, or set family to one of"):
        _ = build("wan", {"model": "lab/our-tune"}, None).capabilities
    assert build("wan", {"model": "lab/our-tune", "family": "wan2.2-ti2v-5b"}, None).capabilities.fps == 24


@pytest.mark.parametrize(
    "model", ["Wan-AI/Wan2.2-T2V-A14B-Diffusers", "Wan-AI/Wan2.1-FLF2V-14B-720P-diffusers", "lab/Wan2.1-VACE-14B"]
)
def test_a_model_that_takes_no_picture_is_refused_by_its_name_before_it_is_fetched(model: str) -> None:
    with pytest.raises(BackendMisconfigured, match=r"by its name \(\w+\) it does not make a video of a picture"):
        _ = build("wan", {"model": model}, None).capabilities


def test_progress_is_told_after_every_step_and_ends_at_1(folder: Path, table: Table) -> None:
    told: list[float] = []
    rendered(wan(folder, table), table.shot(denoising_steps=4), progress=told.append)
    assert sorted(told) == told
    assert len(set(told)) == 6  # before the first step, after each of four, at the end
    assert told[-1] == 1


def test_a_render_stops_at_the_next_step_and_the_next_one_is_as_if_nothing_had_been(
    folder: Path, table: Table
) -> None:
    generator, shot = wan(folder, table), table.shot(denoising_steps=6)
    before = rendered(generator, shot)
    ran = counted(pipeline_of(generator))
    told: list[float] = []
    with pytest.raises(JobCancelled):
        rendered(generator, shot, progress=told.append, cancelled=lambda: len(told) >= 3)
    assert sum(ran.values()) == 2 * 2  # two steps of six, each with and without the prompt
    assert np.array_equal(rendered(generator, shot), before)


def test_both_experts_render_their_part_of_the_steps(checkpoints: dict[str, Path], table: Table) -> None:
    generator = wan(checkpoints["a14b"], table)
    rendered(generator, table.shot(denoising_steps=1))
    ran = counted(pipeline_of(generator))
    rendered(generator, table.shot(denoising_steps=8))
    assert sum(ran.values()) == 2 * 8
    assert set(ran) == {"transformer", "transformer_2"}


@pytest.mark.parametrize("guidance", [1.0, 0.0])
def test_a_guidance_of_1_or_less_turns_it_off_for_both_experts(
    checkpoints: dict[str, Path], table: Table, guidance: float
) -> None:
    generator = wan(checkpoints["a14b"], table)
    rendered(generator, table.shot(denoising_steps=1))
    ran = counted(pipeline_of(generator))
    rendered(generator, table.shot(denoising_steps=8, guidance=guidance))
    assert sum(ran.values()) == 8


def test_the_second_expert_may_have_a_guidance_of_its_own(checkpoints: dict[str, Path], table: Table) -> None:
    shot = table.shot(denoising_steps=8)
    plain = rendered(wan(checkpoints["a14b"], table), shot)
    assert not np.array_equal(plain, rendered(wan(checkpoints["a14b"], table, guidance_low=8.0), shot))
    assert np.array_equal(plain, rendered(wan(checkpoints["a14b"], table, guidance_low=3.0), shot))


def test_a_guidance_of_the_second_expert_that_would_do_nothing_is_refused(
    checkpoints: dict[str, Path], table: Table
) -> None:
    with pytest.raises(BackendMisconfigured, match=r"Wan2\.2 TI2V 5B has one expert: leave it out"):
        rendered(wan(checkpoints["ti2v"], table, guidance_low=3.0), table.shot())
    with pytest.raises(BackendMisconfigured, match="turns it off for both experts"):
        rendered(wan(checkpoints["a14b"], table, guidance_low=3.0), table.shot(guidance=1.0))


@pytest.mark.parametrize("option", [{"flow_shift": 1.5}, {"negative_prompt": "a blurred picture"}])
def test_options_of_sampling_reach_the_model(folder: Path, table: Table, option: dict[str, Any]) -> None:
    plain = rendered(wan(folder, table), table.shot())
    assert not np.array_equal(plain, rendered(wan(folder, table, **option), table.shot()))


def test_the_prompt_and_the_start_picture_reach_the_model(folder: Path, table: Table) -> None:
    generator = wan(folder, table)
    plain = rendered(generator, table.shot())
    assert not np.array_equal(plain, rendered(generator, table.shot(prompt="The blue ball rolls up.")))
    other = Table(96, 64, seed=6)
    assert not np.array_equal(plain, rendered(wan(folder, other), other.shot()))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a14b", "ti2v"])
def test_the_suite_passes_but_for_the_first_frame_of_random_weights(
    checkpoints: dict[str, Path], name: str
) -> None:
    artifacts = MemoryArtifacts()
    generator = build("wan", {"model": str(checkpoints[name]), **TINY}, FrameReader(artifacts))
    failed = [finding for finding in check(generator, artifacts) if not finding.passed]
    assert [finding.name for finding in failed] == ["first frame"]
    assert "cannot be chained" in failed[0].detail
