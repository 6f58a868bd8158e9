"""Pipelines of diffusers by class name, on tiny random checkpoints of three that are called differently."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from generators.catalog import build
from generators.conformance import check
from media.frames import FrameReader
from orchestrator.errors import BackendFailed, BackendMisconfigured, JobCancelled
from orchestrator.records import Size
from storage.artifacts import MemoryArtifacts
from tests.generators import tiny_i2v
from tests.generators.tiny_i2v import Table, rendered

# By class: how its tiny checkpoint is made, and what is otherwise than with a real one.
CLASSES: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {
    "CogVideoXImageToVideoPipeline": (tiny_i2v.cogvideox, {}),
    "LTXImageToVideoPipeline": (tiny_i2v.ltx, {"call": {"negative_prompt": "blurred"}}),
    "HunyuanVideo15ImageToVideoPipeline": (tiny_i2v.hunyuan_15, {}),
}
SMALL = {"min_side": 32, "max_side": 128, "max_pixels": 96 * 64, "max_frames": 17, "dtype": "float32"}


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("checkpoints")
    return {name: tiny_i2v.saved(make, folder / name) for name, (make, _) in CLASSES.items()}


@pytest.fixture(params=CLASSES)
def options(request: pytest.FixtureRequest, checkpoints: dict[str, Path]) -> dict[str, Any]:
    """Of every class in turn."""
    name = request.param
    return {"pipeline": name, "model": str(checkpoints[name]), **SMALL, **CLASSES[name][1]}


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(options: dict[str, Any]) -> None:
    table = Table(96, 64)
    generator = build("diffusers_i2v", options, table.reader)
    first = rendered(generator, table.shot())
    assert (first.shape, first.dtype) == ((9, 64, 96, 3), np.uint8)
    again = rendered(build("diffusers_i2v", options, table.reader), table.shot())
    assert np.array_equal(first, again)
    assert not np.array_equal(first, rendered(generator, table.shot(seed=4)))


def test_the_guidance_of_a_shot_reaches_the_model(options: dict[str, Any]) -> None:
    table = Table(96, 64)
    generator = build("diffusers_i2v", options, table.reader)
    clips = [rendered(generator, table.shot(guidance=guidance)) for guidance in (1.0, 9.0)]
    assert not np.array_equal(*clips)


def test_a_clip_in_the_default_formats_is_rendered(options: dict[str, Any]) -> None:
    table = Table(96, 64)
    given = {name: value for name, value in options.items() if name != "dtype"}
    assert rendered(build("diffusers_i2v", given, table.reader), table.shot()).shape == (9, 64, 96, 3)


def test_a_render_stops_in_the_middle_and_the_next_one_is_as_if_nothing_had_been(options: dict[str, Any]) -> None:
    table = Table(96, 64)
    generator = build("diffusers_i2v", options, table.reader)
    shot = table.shot(denoising_steps=4)
    before = rendered(generator, shot)
    told: list[float] = []
    with pytest.raises(JobCancelled):
        rendered(generator, shot, progress=told.append, cancelled=lambda: len(told) >= 3)
    assert 0 < told[-1] < 1
    assert np.array_equal(rendered(generator, shot), before)


def test_progress_is_told_after_every_step_and_ends_at_1(options: dict[str, Any]) -> None:
    table = Table(96, 64)
    told: list[float] = []
    rendered(build("diffusers_i2v", options, table.reader), table.shot(denoising_steps=4), progress=told.append)
    assert sorted(told) == told
    assert len(set(told)) == 6  # before the first step, after each of four, at the end
    assert told[-1] == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["CogVideoXImageToVideoPipeline", "LTXImageToVideoPipeline"])
def test_the_suite_passes_but_for_the_first_frame_of_random_weights(
    checkpoints: dict[str, Path], name: str
) -> None:
    artifacts = MemoryArtifacts()
    given = {"pipeline": name, "model": str(checkpoints[name]), **SMALL}
    generator = build("diffusers_i2v", given, FrameReader(artifacts))
    failed = [finding for finding in check(generator, artifacts) if not finding.passed]
    assert [finding.name for finding in failed] == ["first frame"]
    assert "cannot be chained" in failed[0].detail


def test_the_loaded_pipeline_stays(checkpoints: dict[str, Path]) -> None:
    table = Table(96, 64)
    folder = tiny_i2v.saved(tiny_i2v.ltx, checkpoints["LTXImageToVideoPipeline"].parent / "once")
    generator = build("diffusers_i2v", _ltx(folder), table.reader)
    first = rendered(generator, table.shot())
    for file in folder.rglob("*.safetensors"):
        file.unlink()
    assert np.array_equal(rendered(generator, table.shot()), first)


def test_the_model_is_told_the_frame_rate(checkpoints: dict[str, Path]) -> None:
    table = Table(96, 64)
    generator = build("diffusers_i2v", _ltx(checkpoints["LTXImageToVideoPipeline"]), table.reader)
    assert not np.array_equal(*[rendered(generator, table.shot(fps=fps)) for fps in (8, 24)])


def test_further_arguments_reach_the_call(checkpoints: dict[str, Path]) -> None:
    table = Table(96, 64)
    folder = checkpoints["LTXImageToVideoPipeline"]
    plain = rendered(build("diffusers_i2v", _ltx(folder), table.reader), table.shot())
    other = _ltx(folder, call={"negative_prompt": "green"})
    assert not np.array_equal(rendered(build("diffusers_i2v", other, table.reader), table.shot()), plain)


def test_a_checkpoint_of_one_size_takes_a_canvas_of_another_padded(tmp_path: Path) -> None:
    folder = tiny_i2v.saved(_one_size, tmp_path / "cogvideox")
    given = {
        **{"pipeline": "CogVideoXImageToVideoPipeline", "model": str(folder), **SMALL},
        **{"sizes": "96x64", "max_frames": 9},
    }
    table = Table(48, 56)
    generator = build("diffusers_i2v", given, table.reader)
    shown = rendered(generator, table.shot())
    assert shown.shape == (9, 56, 48, 3)
    capabilities = generator.capabilities
    assert (capabilities.size_multiple, capabilities.max_side, capabilities.max_pixels) == (1, 96, 96 * 64)
    with pytest.raises(BackendMisconfigured, match="renders 96x64 alone, 9 frames: set sizes = '96x64'"):
        rendered(build("diffusers_i2v", {**given, "sizes": ""}, table.reader), table.shot())


def test_what_came_back_is_measured_not_believed(checkpoints: dict[str, Path]) -> None:
    table = Table(96, 64)
    folder = str(checkpoints["CogVideoXImageToVideoPipeline"])
    given = {"pipeline": "CogVideoXImageToVideoPipeline", "model": folder, **SMALL}
    by_4 = {"frame_step": 4, "min_frames": 5, "max_frames": 5}
    with pytest.raises(BackendFailed, match="rendered 8 frames instead of 5: correct frame_step"):
        rendered(build("diffusers_i2v", {**given, **by_4}, table.reader), table.shot(num_frames=5))
    odd = Table(104, 72)
    with pytest.raises(BackendFailed, match=r"Pipeline at 104x72, 9 frames: The size of tensor"):
        rendered(build("diffusers_i2v", {**given, "size_multiple": 8}, odd.reader), odd.shot())


def test_what_the_pipeline_refuses_is_a_lost_attempt_in_its_own_words(checkpoints: dict[str, Path]) -> None:
    table = Table(104, 72)
    generator = build("diffusers_i2v", _ltx(checkpoints["LTXImageToVideoPipeline"]), table.reader)
    with pytest.raises(
        BackendFailed, match=r"LTXImageToVideoPipeline at 104x72, 9 frames: .*divisible by 32 but are 72 and 104"
    ):
        rendered(generator, table.shot())


def test_a_start_picture_off_the_canvas_is_refused(checkpoints: dict[str, Path]) -> None:
    table = Table(96, 64)
    generator = build("diffusers_i2v", _ltx(checkpoints["LTXImageToVideoPipeline"]), table.reader)
    with pytest.raises(BackendFailed, match="the start frame is 96x64, the canvas is 64x64"):
        rendered(generator, table.shot(canvas=Size(width=64, height=64)))


def test_out_of_memory_is_tried_once_more_with_less_and_then_says_what_to_set(
    checkpoints: dict[str, Path],
) -> None:
    table = Table(96, 64)
    generator: Any = build("diffusers_i2v", _ltx(checkpoints["LTXImageToVideoPipeline"]), table.reader)
    fine = rendered(generator, table.shot())
    pipeline = generator._pipeline
    tiled: list[bool] = []

    def hungry(*_: Any) -> None:
        tiled.append(pipeline.vae.use_tiling)
        if len(tiled) in failing:
            raise tiny_i2v.library("torch").OutOfMemoryError("CUDA out of memory. Tried to allocate 9 GiB")

    hook = pipeline.transformer.register_forward_pre_hook(hungry)
    failing = {1}
    assert np.array_equal(rendered(generator, table.shot()), fine)  # a tile is larger than the picture
    assert tiled[:2] == [False, True]
    tiled.clear()
    failing = {1, 2}
    with pytest.raises(BackendFailed, match=r"out of memory \(CUDA out of memory.*set vae_tiling, offload"):
        rendered(generator, table.shot())
    hook.remove()
    assert rendered(generator, table.shot()).shape == fine.shape


def _ltx(folder: Path, **more: Any) -> dict[str, Any]:
    return {"pipeline": "LTXImageToVideoPipeline", "model": str(folder), **SMALL, **more}


def _one_size() -> Any:
    return tiny_i2v.cogvideox(use_learned_positional_embeddings=True)
