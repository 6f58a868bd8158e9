"""Knobs that save memory: tiling, slicing, offload; the ladder of profiles; set again on a loaded pipeline."""

from __future__ import annotations

import numpy as np
import pytest

from generators.knobs import Knobs, apply, lower, place, refusals
from orchestrator.errors import BackendMisconfigured
from tests.generators.knob_clips import Pixels, bare, difference, noting, plain, rig


def test_tiling_decodes_piece_by_piece_and_the_clip_stays_close() -> None:
    made = rig(vae_tiling=True, vae_tile=32)
    pieces: list[tuple[int, ...]] = []
    made.pipeline.vae.decoder.register_forward_hook(noting(pieces, "out"))
    clip = made.render()
    assert "VAE tiling by 32 pixels" in made.said
    assert clip.shape == plain().shape
    assert len(pieces) > 4
    assert {max(shape[-2:]) for shape in pieces} <= {24, 32}
    assert 0 < difference(clip) < 0.1


def test_tiles_larger_than_the_picture_change_nothing() -> None:
    assert np.array_equal(rig(vae_tiling=True).render(), plain())


def test_slicing_decodes_the_videos_of_a_batch_one_by_one_and_changes_nothing() -> None:
    whole, sliced = rig(), rig(vae_slicing=True)
    assert "VAE slicing" in sliced.said
    given: list[tuple[int, ...]] = []
    clips: list[Pixels] = []
    for made, batches in ((whole, {2}), (sliced, {1})):
        given.clear()
        made.pipeline.vae.decoder.register_forward_hook(noting(given, "given"))
        made.inputs["num_videos_per_prompt"] = 2
        clips.append(made.render())
        assert {shape[0] for shape in given} == batches
    assert np.allclose(clips[0], clips[1], atol=1e-5)


def test_group_offload_hooks_every_block_and_changes_nothing() -> None:
    made = rig(offload="group")
    assert made.said[-1] == "offload group to cpu"
    hooked = [hasattr(block, "_diffusers_hook") for block in made.pipeline.transformer.blocks]
    assert hooked == [True] * len(hooked)
    assert np.array_equal(made.render(), plain())


@pytest.mark.parametrize("offload", ["model", "sequential"])
def test_offload_between_gpu_and_memory_is_refused_by_name_on_a_cpu(offload: str) -> None:
    with pytest.raises(BackendMisconfigured, match=f"offload {offload} .* this runs on the CPU"):
        rig(offload=offload)


def test_the_ladder_saves_at_the_vae_first_then_offloads_more_and_more() -> None:
    profiles: list[tuple[str, bool]] = []
    knobs: Knobs | None = Knobs()
    while knobs is not None:
        profiles.append((knobs.offload, knobs.vae_tiling and knobs.vae_slicing))
        knobs = lower(knobs)
    assert profiles == [("none", False), ("none", True), ("model", True), ("group", True), ("sequential", True)]


def test_the_ladder_keeps_every_other_option() -> None:
    knobs = Knobs(cache="first_block", dtype="float16")
    lowered = lower(knobs)
    assert lowered is not None
    assert lowered.model_copy(update={"vae_tiling": False, "vae_slicing": False}) == knobs


class OfOneBackend(Knobs):
    """Options of a backend that inherits the knobs."""

    model: str


def test_the_ladder_keeps_a_backends_own_options() -> None:
    lowered = lower(OfOneBackend(model="/models/wan"))
    assert isinstance(lowered, OfOneBackend)
    assert (lowered.model, lowered.vae_tiling) == ("/models/wan", True)


def test_the_ladder_skips_what_the_pipeline_lacks_here() -> None:
    pipeline, _ = bare()
    assert refusals(pipeline, "cpu") == {"offload=model", "offload=sequential"}
    assert refusals(pipeline, "cuda") == set()
    saved = lower(Knobs(), refusals(pipeline, "cpu"))
    assert saved is not None
    assert (saved.offload, saved.vae_tiling) == ("none", True)
    grouped = lower(saved, refusals(pipeline, "cpu"))
    assert grouped is not None
    assert grouped.offload == "group"
    assert lower(grouped, refusals(pipeline, "cpu")) is None


def test_a_lower_profile_is_set_on_a_pipeline_that_has_rendered() -> None:
    made = rig()
    made.render()
    for profile in (Knobs(dtype="float32", vae_slicing=True), Knobs(dtype="float32", offload="group")):
        place(made.pipeline, profile)
        assert np.array_equal(made.render(), plain())
    place(made.pipeline, Knobs(dtype="float32"))
    hooks = [getattr(block, "_diffusers_hook", None) for block in made.pipeline.transformer.blocks]
    assert all(hook is None or not hook.hooks for hook in hooks)
    assert not made.pipeline.vae.use_slicing
    assert np.array_equal(made.render(), plain())


@pytest.mark.parametrize("name", ["vae_tiling", "vae_slicing"])
def test_a_vae_that_lacks_it_is_refused_by_name(name: str) -> None:
    pipeline, _ = bare()
    delattr(pipeline.vae, f"use_{name.removeprefix('vae_')}")
    with pytest.raises(BackendMisconfigured, match=f"WanImageToVideoPipeline has no VAE .*: leave out {name}"):
        apply(pipeline, Knobs.model_validate({"dtype": "float32", name: True}))
    assert name in refusals(pipeline)
    apply(pipeline, Knobs(dtype="float32"))


def test_an_offload_that_was_there_is_taken_down_before_the_next_one() -> None:
    made = rig()
    made.pipeline.enable_model_cpu_offload(device="cpu")  # what a GPU would have, with the CPU as its device
    assert hasattr(made.pipeline.transformer, "_hf_hook")
    place(made.pipeline, Knobs(dtype="float32", offload="group"))
    assert not hasattr(made.pipeline.transformer, "_hf_hook")
    assert np.array_equal(made.render(), plain())
