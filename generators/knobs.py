"""What the knobs of `generators.knob_options` do to a loaded diffusers pipeline, and what they say at loading.

`loading` goes into `from_pretrained`, `apply` follows it, `begin_render` comes before every render; `lower` and
`place` are for a device whose memory did not suffice. Torch and diffusers are imported inside.
"""

from __future__ import annotations

import contextlib
import importlib.util
import logging
from collections.abc import Generator, Sequence
from typing import Any

from generators import knob_cache, knob_lora
from generators.knob_cache import begin_render, transformers
from generators.knob_lora import Sampling, sampling
from generators.knob_memory import place, refusals
from generators.knob_options import Knobs, Lora, lower
from orchestrator.errors import BackendMisconfigured

__all__ = [
    "Knobs",
    "Lora",
    "Sampling",
    "apply",
    "begin_render",
    "loading",
    "lower",
    "place",
    "refusals",
    "sampling",
]

_log = logging.getLogger(__name__)

# By option: diffusers' name, the package that has it ("" is torch itself), whether it runs on GPUs only.
_ATTENTION = {
    "native": ("native", "", False),
    "native_cudnn": ("_native_cudnn", "", True),
    "native_efficient": ("_native_efficient", "", True),
    "native_flash": ("_native_flash", "", False),
    "native_math": ("_native_math", "", False),
    "flex": ("flex", "", False),
    "flash": ("flash", "flash-attn", True),
    "flash_3": ("_flash_3", "flash-attn 3, built from its sources", True),
    "sage": ("sage", "sageattention", True),
    "xformers": ("xformers", "xformers", True),
}
_QUANTIZERS = {"torchao": "torchao>=0.15", "bitsandbytes": "bitsandbytes>=0.48"}


def loading(knobs: Knobs, denoisers: Sequence[str] = ("transformer", "transformer_2")) -> dict[str, Any]:
    """Keywords of `from_pretrained`: number formats per component, and the quantization of the denoisers.

    Raises BackendMisconfigured where the quantization's package is missing.
    """
    torch: Any = importlib.import_module("torch")
    formats = {"default": getattr(torch, knobs.dtype)}
    if knobs.vae_dtype == "float32":
        formats["vae"] = torch.float32
    keywords: dict[str, Any] = {"dtype": formats}
    if knobs.quantization != "none":
        diffusers: Any = importlib.import_module("diffusers")
        keywords["quantization_config"] = diffusers.PipelineQuantizationConfig(
            quant_mapping={name: _quantization(knobs) for name in denoisers}
        )
    return keywords


def _quantization(knobs: Knobs) -> Any:
    """One denoiser's configuration. Raises BackendMisconfigured where the package is missing."""
    if importlib.util.find_spec(knobs.quantization) is None:
        raise BackendMisconfigured(
            f"quantization {knobs.quantization} needs a package that is not installed:"
            f" pip install '{_QUANTIZERS[knobs.quantization]}'"
        )
    torch: Any = importlib.import_module("torch")
    diffusers: Any = importlib.import_module("diffusers")
    if knobs.quantization == "bitsandbytes" and not torch.cuda.is_available():
        raise BackendMisconfigured(
            "quantization bitsandbytes needs a GPU, and torch sees none: set torchao or none"
        )
    if knobs.quantization == "bitsandbytes":
        if knobs.quantization_type == "int8":
            return diffusers.BitsAndBytesConfig(load_in_8bit=True)
        return diffusers.BitsAndBytesConfig(
            load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=getattr(torch, knobs.dtype)
        )
    packed: Any = importlib.import_module("torchao.quantization")
    if knobs.quantization_type == "int8":
        return diffusers.TorchAoConfig(packed.Int8WeightOnlyConfig())
    return diffusers.TorchAoConfig(packed.Float8DynamicActivationFloat8WeightConfig())


def apply(pipeline: Any, knobs: Knobs, *, device: str = "cpu") -> list[str]:
    """Turn every knob on a pipeline that was loaded with `loading(knobs)`, and put it on the device.

    Says what was applied, a phrase each. Raises BackendMisconfigured, naming the knob that the pipeline lacks.
    """
    said = _formats(pipeline, knobs)
    said += knob_lora.add(pipeline, knobs)
    said += _attention(pipeline, knobs, device)
    said += _parallel(pipeline, knobs, device)
    said += knob_cache.enable(pipeline, knobs)
    said += place(pipeline, knobs, device=device)
    return said + _compile(pipeline, knobs, device)


def _formats(pipeline: Any, knobs: Knobs) -> list[str]:
    """Says the formats that the components have. Raises BackendMisconfigured where they are not the knobs'."""
    held, vae = transformers(pipeline), pipeline.components.get("vae")
    for name, module in held.items():
        if knobs.quantization != "none" and getattr(module, "hf_quantizer", None) is None:
            raise BackendMisconfigured(
                f"quantization {knobs.quantization}: {name} was loaded unquantized; it is done while loading"
            )
        if knobs.quantization == "none" and str(module.dtype) != f"torch.{knobs.dtype}":
            raise BackendMisconfigured(f"dtype {knobs.dtype}: {name} was loaded as {module.dtype}")
    said = [f"dtype {knobs.dtype}"] + ([f"VAE {vae.dtype}".replace("torch.", "")] if vae is not None else [])
    if knobs.quantization != "none":
        said.append(f"quantization {knobs.quantization} {knobs.quantization_type} of {' and '.join(held)}")
    return said


def _parallel(pipeline: Any, knobs: Knobs, device: str) -> list[str]:
    """Raises BackendMisconfigured where there are not as many devices, or not as many processes of one group."""
    degree = knobs.context_parallel
    if degree == 1:
        return []
    torch: Any = importlib.import_module("torch")
    there = torch.cuda.device_count() if device != "cpu" else 0
    if there < degree:
        raise BackendMisconfigured(
            f"context_parallel {degree} needs as many GPUs, and {there} can be used here: set 1"
        )
    group = torch.distributed
    if not (group.is_available() and group.is_initialized() and group.get_world_size() == degree):
        raise BackendMisconfigured(
            f"context_parallel {degree} needs as many processes of one group, one per GPU (torchrun), and this is"
            " one process: set 1"
        )
    diffusers: Any = importlib.import_module("diffusers")
    torch.cuda.set_device(group.get_rank() % there)
    for name, transformer in transformers(pipeline).items():
        if getattr(transformer, "_cp_plan", None) is None:
            kind = type(transformer).__name__
            raise BackendMisconfigured(
                f"{name}, a {kind}, cannot be split over devices: set context_parallel to 1"
            )
        transformer.enable_parallelism(config=diffusers.ContextParallelConfig(ulysses_degree=degree))
    return [f"context parallel over {degree} devices"]


def _attention(pipeline: Any, knobs: Knobs, device: str) -> list[str]:
    """Set on every pipeline, the default too: diffusers' setting would else be the last pipeline's.

    Says what was applied. Raises BackendMisconfigured where it cannot be had and `attention_strict` says so.
    """
    name, package, gpu_only = _ATTENTION[knobs.attention]
    wanted = knobs.attention
    if wanted != "native" and not any(_processors(each) for each in transformers(pipeline).values()):
        raise BackendMisconfigured(f"{type(pipeline).__name__} has no choice of attention: leave out attention")
    why = _unusable(pipeline, name, package, gpu_only and device == "cpu")
    if why and knobs.attention_strict:
        raise BackendMisconfigured(f"attention {wanted} {why}; or leave out attention_strict")
    if why:
        _log.warning("attention %s %s; native is used", wanted, why)
        _unusable(pipeline, "native", "", False)
        wanted = "native"
    return [f"attention {wanted}"]


def _unusable(pipeline: Any, name: str, package: str, misses_gpu: bool) -> str:
    """Set that attention; what keeps it from being used, empty if nothing does."""
    if misses_gpu:
        return "runs on GPUs only" + (f", and needs the package {package}" if package else "")
    try:
        with _quietly():
            for transformer in transformers(pipeline).values():
                transformer.set_attention_backend(name)
    except (RuntimeError, ImportError) as error:
        return f"needs the package {package}" if package else f"cannot be used here ({error})"
    return ""


@contextlib.contextmanager
def _quietly() -> Generator[None]:
    """Without diffusers' remark that its attention interface may change: it says nothing to whoever runs this."""
    says = logging.getLogger("diffusers.models.modeling_utils")
    level = says.level
    says.setLevel(logging.ERROR)
    try:
        yield
    finally:
        says.setLevel(level)


def _processors(transformer: Any) -> list[Any]:
    """The attention processors that take a backend."""
    held = (getattr(module, "processor", None) for module in transformer.modules())
    return [each for each in held if hasattr(each, "_attention_backend")]


def _compile(pipeline: Any, knobs: Knobs, device: str) -> list[str]:
    """Raises BackendMisconfigured where a transformer names no repeated blocks, or Triton is missing."""
    if not knobs.compile:
        return []
    if device != "cpu" and importlib.util.find_spec("triton") is None:
        raise BackendMisconfigured(
            "compile needs the package triton on a GPU: pip install triton, or leave it out"
        )
    for name, transformer in transformers(pipeline).items():
        if not getattr(transformer, "_repeated_blocks", None):
            kind = type(transformer).__name__
            raise BackendMisconfigured(f"{name}, a {kind}, has no repeated blocks to compile: leave out compile")
        transformer.compile_repeated_blocks()
    return [f"compiled the blocks of {' and '.join(transformers(pipeline))}"]
