"""Every knob of generators/knob_options.py through `wan`: it reaches the pipeline, or is refused by its name.

How far each changes a clip, and what it runs less of: tests/generators/test_knobs*.py.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from generators.catalog import build
from generators.knobs import Knobs
from generators.wan_options import WanOptions
from media.pictures import Frames
from orchestrator.errors import BackendMisconfigured
from tests.generators.knob_clips import adapter
from tests.generators.tiny_i2v import Table, rendered
from tests.generators.tiny_wan import checkpoint
from tests.generators.wan_desk import counted, pipeline_of, wan

STEPS = 4
EVEN = (1.0,) * STEPS
MAGCACHE = {"cache": "magcache", "cache_ratios": EVEN, "cache_ratios_low": EVEN, "cache_retention": 0.1}
TAYLORSEER = {"cache": "taylorseer", "cache_warmup": 1, "cache_interval": 3}
TORCHS_OWN = "ignore:`torch.jit.script_method` is deprecated:DeprecationWarning"  # as its compiler is imported

# By what the knob says of itself: the options, and by how many levels of 255 the clip may differ on the mean.
# 0 is the same clip; ROUNDED may be it; above that it must differ.
ROUNDED = 0.01
KNOBS: dict[str, tuple[dict[str, Any], float]] = {
    "dtype bfloat16": ({"dtype": "bfloat16"}, 12),
    "VAE tiling by 32 pixels": ({"vae_tiling": True, "vae_tile": 32}, 24),
    "VAE slicing": ({"vae_slicing": True}, 0),
    "offload group to cpu": ({"offload": "group"}, 0),
    "attention native_math": ({"attention": "native_math"}, ROUNDED),
    "cache first_block on transformer and transformer_2": ({"cache": "first_block", "cache_threshold": 5.0}, 12),
    "cache magcache on transformer and transformer_2": (MAGCACHE, 12),
    "cache taylorseer on transformer and transformer_2": (TAYLORSEER, 12),
    "quantization torchao int8 of transformer and transformer_2": ({"quantization": "torchao"}, 4),
}
LACKS: dict[str, dict[str, Any]] = {
    "offload model .* this runs on the CPU": {"offload": "model"},
    "offload sequential .* this runs on the CPU": {"offload": "sequential"},
    "context_parallel 2 needs as many GPUs": {"context_parallel": 2},
    "quantization bitsandbytes needs": {"quantization": "bitsandbytes"},
    "attention sage .* package sageattention": {"attention": "sage", "attention_strict": True},
    "cache magcache: .* cache_ratios_low": {"cache": "magcache", "cache_ratios": EVEN},
    "lora absent.safetensors cannot be loaded": {"lora": [{"path": "absent.safetensors"}]},
}


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("wan")
    return {name: checkpoint(name, folder / name) for name in ("a14b", "ti2v")}


@pytest.fixture(scope="module")
def table() -> Table:
    return Table(96, 64)


@pytest.fixture(scope="module")
def plain(checkpoints: dict[str, Path], table: Table) -> Frames:
    """The clip without knobs."""
    return rendered(wan(checkpoints["a14b"], table), table.shot(denoising_steps=STEPS))


@pytest.mark.parametrize("said", KNOBS)
def test_a_knob_reaches_the_pipeline_and_shows_as_far_as_it_should(
    checkpoints: dict[str, Path], table: Table, plain: Frames, said: str
) -> None:
    options, most = KNOBS[said]
    generator = wan(checkpoints["a14b"], table, **options)
    clip = rendered(generator, table.shot(denoising_steps=STEPS))
    assert said in generator.applied
    assert clip.shape == plain.shape
    differs = np.abs(clip.astype(int) - plain).mean()
    assert differs <= most
    assert differs > 0 or most <= ROUNDED
    assert np.array_equal(clip, rendered(generator, table.shot(denoising_steps=STEPS))), "not repeatable"


@pytest.mark.filterwarnings(TORCHS_OWN)
def test_compiled_are_the_blocks_of_both_experts(checkpoints: dict[str, Path], table: Table) -> None:
    generator = wan(checkpoints["a14b"], table, compile=True)
    generator.prepare()
    assert "compiled the blocks of transformer and transformer_2" in generator.applied
    pipeline = pipeline_of(generator)
    blocks = [*pipeline.transformer.blocks, *pipeline.transformer_2.blocks]
    assert all(block._compiled_call_impl is not None for block in blocks)


def test_every_knob_of_the_pipeline_is_an_option_of_wan_and_is_tried_here() -> None:
    tried = {name for options, _ in KNOBS.values() for name in options}
    tried |= {name for options in LACKS.values() for name in options}
    tried |= {"vae_dtype", "compile", "lora_preset", "quantization_type"}  # in tests of their own
    tried |= {"cache_max_skips", "cache_order", "cache_lite"}  # how a cache that is tried here skips
    assert set(Knobs.model_fields) <= tried & set(WanOptions.model_fields)


@pytest.mark.parametrize("says", LACKS)
def test_a_knob_that_cannot_be_had_here_is_refused_by_name(
    checkpoints: dict[str, Path], table: Table, says: str
) -> None:
    with pytest.raises(BackendMisconfigured, match=says):
        wan(checkpoints["a14b"], table, **LACKS[says]).prepare()


def test_attention_whose_package_is_missing_falls_back_and_the_log_says_so(
    checkpoints: dict[str, Path], table: Table, caplog: pytest.LogCaptureFixture
) -> None:
    generator = wan(checkpoints["a14b"], table, attention="sage")
    with caplog.at_level(logging.WARNING, logger="generators.knobs"):
        generator.prepare()
    assert "attention native" in generator.applied
    assert "package sageattention" in caplog.text


def test_quantized_weights_are_kept_in_eight_bits(checkpoints: dict[str, Path], table: Table) -> None:
    generator = wan(checkpoints["a14b"], table, quantization="torchao")
    generator.prepare()
    for name in ("transformer", "transformer_2"):
        weight = getattr(pipeline_of(generator), name).blocks[0].attn1.to_q.weight
        assert type(weight).__name__ == "Int8Tensor", type(weight)
        assert weight.qdata.element_size() == 1


@pytest.mark.parametrize("name", ["a14b", "ti2v"])
@pytest.mark.parametrize(("given", "vae"), [({}, "torch.float32"), ({"vae_dtype": "same"}, "torch.bfloat16")])
def test_the_vae_stays_in_float32_unless_told_otherwise(
    checkpoints: dict[str, Path], table: Table, name: str, given: dict[str, Any], vae: str
) -> None:
    generator = wan(checkpoints[name], table, dtype="bfloat16", **given)
    generator.prepare()
    pipeline = pipeline_of(generator)
    assert str(pipeline.vae.dtype) == vae
    assert str(pipeline.transformer.dtype) == str(pipeline.text_encoder.dtype) == "torch.bfloat16"


def test_an_adapter_for_an_expert_that_the_model_lacks_is_refused_by_name(
    checkpoints: dict[str, Path], table: Table, tmp_path: Path
) -> None:
    lora = {"path": str(adapter(tmp_path / "low.safetensors", layers=2)), "expert": "low"}
    with pytest.raises(BackendMisconfigured, match=r"low\.safetensors: .* has no transformer for low noise"):
        wan(checkpoints["ti2v"], table, lora=[lora]).prepare()


def test_lightning_adapters_are_sampled_as_they_were_trained(
    checkpoints: dict[str, Path], table: Table, tmp_path: Path
) -> None:
    loras = [
        {"path": str(adapter(tmp_path / f"{expert}.safetensors", seed=seed, layers=2)), "expert": expert}
        for seed, expert in enumerate(("high", "low"))
    ]
    generator = wan(checkpoints["a14b"], table, lora=loras, lora_preset="lightning_4_steps")
    told: list[float] = []
    fast = rendered(generator, table.shot(denoising_steps=20, guidance=5.0), progress=told.append)
    assert len(set(told)) == 6  # four steps, whatever was asked
    assert "flow_shift 5" in generator.applied
    ran = counted(pipeline_of(generator))
    rendered(generator, table.shot(denoising_steps=20, guidance=5.0))
    assert ran == {"transformer": ran["transformer"], "transformer_2": 4 - ran["transformer"]}  # no guidance
    plain = rendered(wan(checkpoints["a14b"], table), table.shot(denoising_steps=4, guidance=1.0))
    assert not np.array_equal(fast, plain)


@pytest.mark.parametrize("other", [{"flow_shift": 3.0}, {"guidance_low": 3.0}])
def test_a_preset_and_an_option_that_contradict_are_refused(other: dict[str, Any]) -> None:
    given = {"lora": [{"path": "x.safetensors"}], "lora_preset": "lightning_4_steps", **other}
    with pytest.raises(BackendMisconfigured, match="contradict: leave one of them out"):
        build("wan", given, None)
