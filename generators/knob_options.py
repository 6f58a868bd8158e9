"""The knobs of a diffusers pipeline as options: speed against memory against fidelity.

Backends' options inherit from `Knobs`. What they do to a pipeline: generators/knobs.py; when to use which:
docs/gpu.md.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, TypeVar

from pydantic import Field, model_validator

from orchestrator.records import Record

Offload = Literal["none", "model", "group", "sequential"]
OFFLOADS: tuple[Offload, ...] = ("none", "model", "group", "sequential")  # by memory needed, most first


class Lora(Record):
    """A low-rank adapter that is added to the weights of the pipeline's transformers."""

    path: str = Field(min_length=1)
    """A .safetensors file, a folder, or the id of a hub repository that is already in the local cache."""

    file: str = ""
    """The file's name, where `path` is a folder or repository with several."""

    weight: float = Field(default=1.0, ge=-4, le=4)
    """How much of it: 1 as trained, 0 not at all."""

    expert: Literal["high", "low", "both"] = "both"
    """Which transformer: high noise (the only one, where there is one), low noise, or both."""


class Knobs(Record):
    """Options that every diffusers backend has. The defaults are the pipeline as its authors run it."""

    dtype: Literal["bfloat16", "float16", "float32"] = "bfloat16"
    """Number format of transformers and text encoders."""

    vae_dtype: Literal["float32", "same"] = "float32"
    """Number format of the VAE; `same` where a pipeline does not convert latents for it."""

    offload: Offload = "none"
    """What waits in main memory: nothing, idle models, groups of layers, or every layer by itself."""

    vae_tiling: bool = False
    """Encode and decode in overlapping tiles: less memory at large sizes, faint seams."""

    vae_slicing: bool = False
    """Encode and decode the videos of a batch one by one."""

    vae_tile: int | None = Field(default=None, ge=16, le=4096)
    """A tile's side in pixels, where the pipeline's own (256 mostly) does not fit; a quarter of it overlaps."""

    attention: Literal[
        "native",
        "native_cudnn",
        "native_efficient",
        "native_flash",
        "native_math",
        "flex",
        "flash",
        "flash_3",
        "sage",
        "xformers",
    ] = "native"
    """Attention kernels; those of a package that is missing fall back to `native`."""

    attention_strict: bool = False
    """Refuse to start instead of falling back."""

    compile: bool = False
    """Compile the transformers' repeated blocks: the first render takes longer, the others less."""

    cache: Literal["none", "first_block", "magcache", "taylorseer"] = "none"
    """Skip work in denoising steps that change little."""

    cache_threshold: float | None = Field(default=None, gt=0, le=10)
    """How much change counts as little: of first_block (0.05 unless given) and magcache (0.06)."""

    cache_max_skips: int = Field(default=3, ge=1)
    """magcache: so many steps in a row at most are skipped."""

    cache_retention: float = Field(default=0.2, ge=0, le=1)
    """magcache: this share of the first steps is never skipped."""

    cache_ratios: tuple[float, ...] = ()
    """magcache: magnitude ratios measured on this checkpoint, one per step."""

    cache_ratios_low: tuple[float, ...] = ()
    """magcache: the same of the low-noise transformer, where there are two."""

    cache_interval: int = Field(default=5, ge=1)
    """taylorseer: one full computation in so many steps."""

    cache_warmup: int = Field(default=3, ge=1)
    """taylorseer: so many first steps are computed in full."""

    cache_order: int = Field(default=1, ge=0, le=4)
    """taylorseer: the order of the series that predicts the others."""

    cache_lite: bool = True
    """taylorseer: predict the transformer's output only; `false` predicts every attention, in far more memory."""

    quantization: Literal["none", "torchao", "bitsandbytes"] = "none"
    """The package that keeps the transformers' weights in fewer bits."""

    quantization_type: Literal["int8", "float8", "nf4"] = "int8"
    """Those bits: int8 with both packages, float8 with torchao only, nf4 with bitsandbytes only."""

    lora: tuple[Lora, ...] = ()
    """Adapters, added in this order."""

    lora_preset: Literal["none", "lightning_4_steps"] = "none"
    """How the adapters want to be sampled: replaces a request's denoising steps, guidance and flow shift."""

    context_parallel: int = Field(default=1, ge=1)
    """So many devices share the frames of one clip."""

    @model_validator(mode="after")
    def _fits(self) -> Knobs:
        if (self.quantization, self.quantization_type) in {("torchao", "nf4"), ("bitsandbytes", "float8")}:
            raise ValueError(f"quantization {self.quantization} has no type {self.quantization_type}")
        if self.attention == "flex" and not self.compile:
            raise ValueError(
                "attention flex holds the whole score matrix unless compiled: set compile too, or native"
            )
        if self.cache == "magcache" and not self.cache_ratios:
            raise ValueError(
                "cache magcache needs cache_ratios, measured on this checkpoint (docs/gpu.md says how)"
            )
        if self.lora_preset != "none" and not self.lora:
            raise ValueError(f"lora_preset {self.lora_preset} says how adapters are sampled, and lora names none")
        return self


K = TypeVar("K", bound=Knobs)


def lower(knobs: K, refused: Collection[str] = ()) -> K | None:
    """The next lower memory profile, None below the last; `refused` names what the pipeline lacks.

    The ladder: VAE tiling and slicing, then the offloads none, model, group, sequential. The VAE comes first: it
    costs next to no time, and its decoding is where memory peaks at large sizes.
    """
    savings = {name: True for name in ("vae_tiling", "vae_slicing") if name not in refused}
    if any(not getattr(knobs, name) for name in savings):
        return knobs.model_copy(update=savings)
    for offload in OFFLOADS[OFFLOADS.index(knobs.offload) + 1 :]:
        if f"offload={offload}" not in refused:
            return knobs.model_copy(update={"offload": offload})
    return None
