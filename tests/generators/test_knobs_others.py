"""Knobs on pipelines other than Wan's: what they have is applied, what they lack is refused by its name."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from generators.knobs import Knobs, apply
from orchestrator.errors import BackendMisconfigured


def diffusers() -> Any:
    return importlib.import_module("diffusers")


def ltx() -> Any:
    """An LTX pipeline of a transformer alone."""
    transformer = diffusers().LTXVideoTransformer3DModel(
        in_channels=8,
        out_channels=8,
        num_attention_heads=2,
        attention_head_dim=16,
        cross_attention_dim=32,
        num_layers=2,
        caption_channels=32,
    )
    return diffusers().LTXImageToVideoPipeline(
        tokenizer=None,
        text_encoder=None,
        vae=None,
        transformer=transformer,
        scheduler=diffusers().FlowMatchEulerDiscreteScheduler(),
    )


def cogvideox() -> Any:
    """A CogVideoX pipeline of a transformer alone."""
    transformer = diffusers().CogVideoXTransformer3DModel(
        num_attention_heads=2,
        attention_head_dim=16,
        in_channels=8,
        out_channels=4,
        time_embed_dim=4,
        text_embed_dim=8,
        num_layers=2,
        sample_width=8,
        sample_height=8,
        sample_frames=5,
        max_text_seq_length=8,
    )
    return diffusers().CogVideoXImageToVideoPipeline(
        tokenizer=None,
        text_encoder=None,
        vae=None,
        transformer=transformer,
        scheduler=diffusers().CogVideoXDDIMScheduler(),
    )


def turned(pipeline: Any, **options: Any) -> list[str]:
    return apply(pipeline, Knobs.model_validate({"dtype": "float32", **options}))


@pytest.mark.parametrize("make", [ltx, cogvideox])
@pytest.mark.parametrize(
    "options",
    [
        {"cache": "first_block"},
        {"cache": "magcache", "cache_ratios": [1.0, 1.0]},
        {"cache": "taylorseer"},
        {"cache": "taylorseer", "cache_lite": False},
    ],
)
def test_caches_are_put_on_the_one_transformer(make: Any, options: dict[str, Any]) -> None:
    pipeline = make()
    assert f"cache {options['cache']} on transformer" in turned(pipeline, **options)
    assert pipeline.transformer.is_cache_enabled


def test_ltx_has_a_choice_of_attention_and_blocks_to_offload() -> None:
    assert "attention native_math" in turned(ltx(), attention="native_math")
    assert turned(ltx(), offload="group")[-1] == "offload group to cpu"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (
            {"attention": "native_math"},
            "CogVideoXImageToVideoPipeline has no choice of attention: leave out attention",
        ),
        ({"compile": True}, "transformer, a CogVideoXTransformer3DModel, has no repeated blocks to compile"),
        ({"vae_tiling": True}, "CogVideoXImageToVideoPipeline has no VAE tiling: leave out vae_tiling"),
        ({"lora": [{"path": "a.safetensors", "expert": "low"}]}, "no transformer for low noise"),
    ],
)
def test_what_cogvideox_lacks_is_refused_by_name(options: dict[str, Any], says: str) -> None:
    with pytest.raises(BackendMisconfigured, match=says):
        turned(cogvideox(), **options)


def test_a_transformer_without_caches_is_refused_by_name() -> None:
    pipeline = ltx()
    pipeline.register_modules(
        transformer=diffusers().CosmosTransformer3DModel(
            in_channels=5,
            out_channels=4,
            num_attention_heads=2,
            attention_head_dim=16,
            num_layers=1,
            text_embed_dim=32,
            adaln_lora_dim=4,
            max_size=(4, 8, 8),
        )
    )
    with pytest.raises(
        BackendMisconfigured, match=r"has no caches \(transformer is a CosmosTransformer3DModel\)"
    ):
        turned(pipeline, cache="first_block")
