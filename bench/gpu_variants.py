"""The variants that `bench.gpu` measures: knobs by name, in groups, and what each needs that may be missing."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.gpu_model import Geometry
from generators.knobs import Knobs
from orchestrator.records import Record

PLAIN = "plain"


class Variant(Record):
    """One row. `at_vae`: only encoding and decoding change, so only they are measured.

    `packages` are imported by it; `quantized`: torchao's type, done on the model in memory; `gpu`: not on a CPU.
    """

    name: str
    group: str
    options: Mapping[str, Any] = {}
    packages: tuple[str, ...] = ()
    at_vae: bool = False
    quantized: str = ""
    gpu: bool = False
    about: str = ""


VARIANTS = (
    Variant(name=PLAIN, group=PLAIN, about="bfloat16, the VAE in float32"),
    Variant(name="float16", group="dtype", options={"dtype": "float16"}),
    Variant(name="native_cudnn", group="attention", options={"attention": "native_cudnn"}, gpu=True),
    Variant(name="native_flash", group="attention", options={"attention": "native_flash"}),
    Variant(name="flash", group="attention", options={"attention": "flash"}, packages=("flash_attn",), gpu=True),
    Variant(
        name="flash_3", group="attention", options={"attention": "flash_3"}, packages=("flash_attn_3",), gpu=True
    ),
    Variant(name="sage", group="attention", options={"attention": "sage"}, packages=("sageattention",), gpu=True),
    Variant(
        name="flex",
        group="attention",
        options={"attention": "flex", "compile": True},
        packages=("triton",),
        gpu=True,
    ),
    Variant(name="compile", group="compile", options={"compile": True}),
    Variant(name="first_block", group="cache", options={"cache": "first_block"}),
    Variant(
        name="magcache", group="cache", options={"cache": "magcache"}, about="calibrated on this model first"
    ),
    Variant(name="taylorseer", group="cache", options={"cache": "taylorseer"}),
    Variant(name="offload_model", group="offload", options={"offload": "model"}, gpu=True),
    Variant(name="offload_group", group="offload", options={"offload": "group"}),
    Variant(name="offload_sequential", group="offload", options={"offload": "sequential"}, gpu=True),
    Variant(name="vae_same", group="vae", options={"vae_dtype": "same"}, at_vae=True, about="in bfloat16"),
    Variant(name="tiling", group="vae", options={"vae_tiling": True}, at_vae=True),
    Variant(
        name="slicing", group="vae", options={"vae_slicing": True}, at_vae=True, about="a batch of one: no saving"
    ),
    Variant(name="int8", group="quantization", packages=("torchao",), quantized="int8"),
    Variant(name="float8", group="quantization", packages=("torchao",), quantized="float8", gpu=True),
    Variant(
        name="lightning",
        group="lora",
        options={"lora_preset": "lightning_4_steps"},
        packages=("peft",),
        about="4 steps without guidance, a random adapter of rank 64 on both experts",
    ),
)
GROUPS = tuple(dict.fromkeys(variant.group for variant in VARIANTS))


def chosen(names: Sequence[str]) -> list[Variant]:
    """The variants of those names or groups, in the table's order; `plain`, the baseline, always first.

    Raises ValueError where there is no such name.
    """
    known = {variant.name for variant in VARIANTS} | set(GROUPS) | {"all"}
    if unknown := [name for name in names if name not in known]:
        raise ValueError(f"there is no knob {unknown[0]!r}; there are {', '.join(sorted(known))}")
    wanted = {PLAIN, *names}
    return [each for each in VARIANTS if "all" in wanted or each.name in wanted or each.group in wanted]


def missing(variant: Variant, device: str) -> str:
    """What keeps the variant from being measured here, empty if nothing does."""
    if variant.gpu and device == "cpu":
        return "needs a GPU"
    absent = [name for name in variant.packages if importlib.util.find_spec(name) is None]
    return f"needs the package {absent[0]}" if absent else ""


def knobs(variant: Variant, geometry: Geometry, *, dtype: str, adapter: Path, ratios: Mapping[str, Any]) -> Knobs:
    """The variant's options; `adapter` is the file that lightning loads, `ratios` are magcache's."""
    options = {"dtype": dtype, "attention_strict": True, **variant.options}
    if options.get("vae_tiling") and geometry.vae_tile is not None:
        options["vae_tile"] = geometry.vae_tile
    if options.get("cache") == "magcache":
        options |= {"cache_ratios": ratios["transformer"], "cache_ratios_low": ratios["transformer_2"]}
    if "lora_preset" in options:
        options["lora"] = [{"path": str(adapter)}]
    return Knobs.model_validate(options)


def save_adapter(path: Path, geometry: Geometry, rank: int = 64) -> Path:
    """A random LoRA on every attention of a transformer, weak enough to leave the numbers finite."""
    torch: Any = importlib.import_module("torch")
    files: Any = importlib.import_module("safetensors.torch")
    numbers = torch.Generator().manual_seed(0)
    size = geometry.heads * geometry.head_size
    weights: dict[str, Any] = {}
    for layer in range(geometry.layers):
        for module in ("to_q", "to_k", "to_v", "to_out.0"):
            for side, shape in (("A", (rank, size)), ("B", (size, rank))):
                name = f"transformer.blocks.{layer}.attn1.{module}.lora_{side}.weight"
                weights[name] = (torch.randn(shape, generator=numbers) / size).bfloat16()
    files.save_file(weights, path)
    return path
