"""Tiny random checkpoints of Wan, saved as folders: A14B, TI2V 5B, Wan2.1, and one that takes no picture.

Tokenizers have one token per letter. Sides as small as 64 pixels.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.generators.tiny_i2v import letters, library, saved

TEXT = 16
SMALL = {
    **{"dtype": "float32", "min_side": 32, "max_side": 128, "max_pixels": 128 * 128, "max_frames": 17},
}  # options of a generator that renders them
TINY = {**SMALL, "max_side": 64, "max_pixels": 64 * 64}  # for many clips


def transformer(channels: int, latent: int, **more: Any) -> Any:
    """One expert: `channels` in, `latent` out."""
    return library("diffusers").WanTransformer3DModel(
        **{"num_attention_heads": 2, "attention_head_dim": 12, "num_layers": 2, "ffn_dim": 32},
        **{"text_dim": TEXT, "in_channels": channels, "out_channels": latent, "freq_dim": 16, **more},
    )


def text_encoder() -> Any:
    transformers = library("transformers")
    config = transformers.UMT5Config(
        **{"vocab_size": 128, "d_model": TEXT, "d_kv": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2},
        feed_forward_proj="gated-gelu",
    )
    return transformers.UMT5EncoderModel(config)


def scheduler(shift: float = 5.0) -> Any:
    return library("diffusers").UniPCMultistepScheduler(
        prediction_type="flow_prediction", use_flow_sigmas=True, flow_shift=shift
    )


def vae() -> Any:
    """Of A14B and Wan2.1: 8 pixels and 4 frames a latent, 16 channels."""
    return library("diffusers").AutoencoderKLWan(
        base_dim=4, z_dim=16, dim_mult=[1, 1, 1, 1], num_res_blocks=1, temperal_downsample=[False, True, True]
    )


def residual_vae() -> Any:
    """Of TI2V 5B: 16 pixels and 4 frames a latent, 48 channels."""
    return library("diffusers").AutoencoderKLWan(
        **{"base_dim": 8, "decoder_base_dim": 8, "z_dim": 48, "dim_mult": [1, 1, 1, 1], "num_res_blocks": 1},
        **{"temperal_downsample": [False, True, True], "is_residual": True, "patch_size": 2},
        **{"in_channels": 12, "out_channels": 12, "scale_factor_spatial": 16},
        **{"latents_mean": [0.0] * 48, "latents_std": [1.0] * 48},
    )


def a14b() -> Any:
    """Wan2.2 I2V A14B, and VBVR-Wan2.2: two experts."""
    return library("diffusers").WanImageToVideoPipeline(
        tokenizer=letters(),
        text_encoder=text_encoder(),
        vae=vae(),
        scheduler=scheduler(),
        transformer=transformer(36, 16),
        transformer_2=transformer(36, 16),
        boundary_ratio=0.9,
    )


def ti2v() -> Any:
    """Wan2.2 TI2V 5B: one expert, time steps of their own for the first frame; saved as a WanPipeline."""
    diffusers = library("diffusers")
    return diffusers.WanPipeline(
        tokenizer=letters(),
        text_encoder=text_encoder(),
        vae=residual_vae(),
        scheduler=scheduler(),
        transformer=transformer(48, 48),
        expand_timesteps=True,
    )


def wan21() -> Any:
    """Wan2.1 I2V: one expert, which is shown the picture through CLIP too."""
    diffusers, transformers = library("diffusers"), library("transformers")
    vision = transformers.CLIPVisionConfig(
        **{"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2},
        **{"image_size": 32, "patch_size": 16},
    )
    return diffusers.WanImageToVideoPipeline(
        tokenizer=letters(),
        text_encoder=text_encoder(),
        vae=vae(),
        scheduler=scheduler(3.0),
        transformer=transformer(36, 16, image_dim=16, added_kv_proj_dim=24, pos_embed_seq_len=None),
        image_encoder=transformers.CLIPVisionModel(vision),
        image_processor=transformers.CLIPImageProcessorPil(
            size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32}
        ),
    )


def t2v() -> Any:
    """Wan2.1 text-to-video, which takes no picture."""
    return library("diffusers").WanPipeline(
        tokenizer=letters(),
        text_encoder=text_encoder(),
        vae=vae(),
        scheduler=scheduler(),
        transformer=transformer(16, 16),
    )


MAKERS: dict[str, Callable[[], Any]] = {"a14b": a14b, "ti2v": ti2v, "wan21": wan21, "t2v": t2v}


def checkpoint(name: str, folder: Path) -> Path:
    """The checkpoint of that name, saved in the folder."""
    return saved(MAKERS[name], folder)


def copied(checkpoint: Path, folder: Path) -> Path:
    """A copy that may be damaged."""
    return Path(shutil.copytree(checkpoint, folder))


def edited(path: Path, **changes: Any) -> None:
    """Set keys of a JSON file; None removes one."""
    said: dict[str, Any] = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps({key: value for key, value in said.items() if value is not None}))
