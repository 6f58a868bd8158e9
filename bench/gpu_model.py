"""A Wan2.2 image-to-video pipeline of a stated geometry with random weights: nothing is loaded or downloaded.

Weights depend on the seed alone, so that a pipeline built twice is the same one. It has no tokenizer: prompts are
random token ids.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

from orchestrator.records import Record

# Sizes of Wan-AI/Wan2.2-I2V-A14B-Diffusers: its transformer, transformer_2, text_encoder, vae, scheduler configs.
BOUNDARY, FLOW_SHIFT, PROMPT_TOKENS = 0.9, 5.0, 512
EXPERTS = ("transformer", "transformer_2")


class Geometry(Record):
    """A model's sizes and a clip's."""

    name: str
    heads: int
    head_size: int
    layers: int
    ffn: int
    text_size: int
    text_ffn: int
    text_layers: int
    text_heads: int
    vocabulary: int
    vae_base: int
    width: int
    height: int
    num_frames: int
    denoising_steps: int
    vae_tile: int | None = None


A14B = Geometry(
    name="Wan2.2 I2V A14B",
    heads=40,
    head_size=128,
    layers=40,
    ffn=13824,
    text_size=4096,
    text_ffn=10240,
    text_layers=24,
    text_heads=64,
    vocabulary=256384,
    vae_base=96,
    width=832,
    height=480,
    num_frames=81,
    denoising_steps=20,
)
TINY = Geometry(
    name="tiny",
    heads=2,
    head_size=12,
    layers=3,
    ffn=32,
    text_size=16,
    text_ffn=32,
    text_layers=1,
    text_heads=2,
    vocabulary=64,
    vae_base=8,
    width=64,
    height=48,
    num_frames=5,
    denoising_steps=4,
    vae_tile=32,
)


@dataclass(frozen=True)
class Built:
    """The pipeline and what it is given: token ids (1, 512) of a prompt and of none, a PIL picture."""

    pipeline: Any
    geometry: Geometry
    token_ids: Any
    empty_ids: Any
    picture: Any


def build(geometry: Geometry, *, dtype: str, device: str, seed: int = 0) -> Built:
    """The pipeline on the device, transformers and text encoder in `dtype`, the VAE in float32."""
    torch: Any = importlib.import_module("torch")
    diffusers: Any = importlib.import_module("diffusers")
    torch.manual_seed(seed)
    experts = {name: _transformer(geometry, dtype, device) for name in EXPERTS}
    pipeline = diffusers.WanImageToVideoPipeline(
        tokenizer=None,
        text_encoder=_text_encoder(geometry, dtype, device),
        vae=_vae(geometry, device),
        scheduler=diffusers.UniPCMultistepScheduler(
            prediction_type="flow_prediction", use_flow_sigmas=True, flow_shift=FLOW_SHIFT
        ),
        boundary_ratio=BOUNDARY,
        **experts,
    )
    pipeline.set_progress_bar_config(disable=True)
    numbers = torch.Generator().manual_seed(seed)
    ids = [torch.randint(2, geometry.vocabulary, (1, PROMPT_TOKENS), generator=numbers) for _ in range(2)]
    return Built(pipeline, geometry, ids[0], ids[1], _picture(geometry, numbers))


def _transformer(geometry: Geometry, dtype: str, device: str) -> Any:
    """One expert: 36 channels in, the noise, the first frame and its mask."""
    diffusers: Any = importlib.import_module("diffusers")
    model = _random(
        lambda: diffusers.WanTransformer3DModel(
            num_attention_heads=geometry.heads,
            attention_head_dim=geometry.head_size,
            num_layers=geometry.layers,
            ffn_dim=geometry.ffn,
            text_dim=geometry.text_size,
            in_channels=36,
            out_channels=16,
        ),
        dtype,
        device,
    )
    kept = set(model._keep_in_fp32_modules)
    for name, weight in model.named_parameters():
        if kept & set(name.split(".")):
            weight.data = weight.data.float()  # as loading does
    return model


def _text_encoder(geometry: Geometry, dtype: str, device: str) -> Any:
    """UMT5, without its decoder."""
    transformers: Any = importlib.import_module("transformers")
    config = transformers.UMT5Config(
        vocab_size=geometry.vocabulary,
        d_model=geometry.text_size,
        d_ff=geometry.text_ffn,
        num_layers=geometry.text_layers,
        num_heads=geometry.text_heads,
        d_kv=geometry.text_size // geometry.text_heads,
        feed_forward_proj="gated-gelu",
    )
    return _random(lambda: transformers.UMT5EncoderModel(config), dtype, device)


def _vae(geometry: Geometry, device: str) -> Any:
    diffusers: Any = importlib.import_module("diffusers")
    return _random(lambda: diffusers.AutoencoderKLWan(base_dim=geometry.vae_base, z_dim=16), "float32", device)


def _random(make: Any, dtype: str, device: str) -> Any:
    """Made in that number format on that device: never twice in memory."""
    torch: Any = importlib.import_module("torch")
    before = torch.get_default_dtype()
    torch.set_default_dtype(getattr(torch, dtype))
    try:
        with torch.device(device):
            return make().eval().requires_grad_(False)
    finally:
        torch.set_default_dtype(before)


def _picture(geometry: Geometry, numbers: Any) -> Any:
    """A start frame: a coarse random pattern, (H, W, 3) uint8 RGB."""
    torch: Any = importlib.import_module("torch")
    images: Any = importlib.import_module("PIL.Image")
    coarse = torch.randint(0, 256, (6, 8, 3), generator=numbers).to(torch.uint8).numpy()
    return images.fromarray(coarse).resize((geometry.width, geometry.height))


def resized(geometry: Geometry, **changed: int | None) -> Geometry:
    """That geometry with another clip's size, number of frames or steps; None leaves one as it is."""
    return geometry.model_copy(update={name: value for name, value in changed.items() if value is not None})
