"""The knobs that save memory: VAE tiling and slicing, and offload; they may be set again on a loaded pipeline."""

from __future__ import annotations

import importlib
from typing import Any

from generators.knob_cache import transformers
from generators.knob_options import Knobs
from orchestrator.errors import BackendMisconfigured

_GROUP_HOOKS = (
    "group_offloading",
    "layer_execution_tracker",
    "lazy_prefetch_group_offloading",
)  # diffusers' names


def refusals(pipeline: Any, device: str = "cpu") -> frozenset[str]:
    """What of the memory ladder this pipeline lacks on this device; `lower` skips it."""
    vae = pipeline.components.get("vae")
    lacking = {name for name in ("vae_tiling", "vae_slicing") if not hasattr(vae, f"use_{name[4:]}")}
    if device == "cpu":
        lacking |= {"offload=model", "offload=sequential"}
    if getattr(pipeline, "model_cpu_offload_seq", None) is None:
        lacking.add("offload=model")
    if not all(getattr(each, "_supports_group_offloading", True) for each in transformers(pipeline).values()):
        lacking.add("offload=group")
    return frozenset(lacking)


def place(pipeline: Any, knobs: Knobs, *, device: str = "cpu") -> list[str]:
    """Tiling, slicing and offload as the knobs say, whatever they were before; used again after `lower`.

    Says what was applied. Raises BackendMisconfigured, naming what the pipeline lacks on this device.
    """
    kind, lacking = type(pipeline).__name__, refusals(pipeline, device)
    for name in ("vae_tiling", "vae_slicing"):
        if getattr(knobs, name) and name in lacking:
            raise BackendMisconfigured(f"{kind} has no {name.replace('vae_', 'VAE ')}: leave out {name}")
    if f"offload={knobs.offload}" in lacking:
        raise BackendMisconfigured(_no_offload(kind, knobs.offload, device))
    said = _vae(pipeline, knobs, lacking)
    _take_down(pipeline)
    if knobs.offload == "model":
        pipeline.enable_model_cpu_offload(device=device)
    elif knobs.offload == "sequential":
        pipeline.enable_sequential_cpu_offload(device=device)
    elif knobs.offload == "group":
        _offload_groups(pipeline, device)
    else:
        pipeline.to(device)
        return [*said, f"on {device}"]
    return [*said, f"offload {knobs.offload} to {device}"]


def _no_offload(kind: str, offload: str, device: str) -> str:
    if device == "cpu":
        return (
            f"offload {offload} moves weights between a GPU and main memory, and this runs on the CPU: set none"
        )
    return f"{kind} has no offload {offload}: set another"


def _vae(pipeline: Any, knobs: Knobs, lacking: frozenset[str]) -> list[str]:
    """Raises BackendMisconfigured where a tile's side cannot be set."""
    vae = pipeline.components.get("vae")
    said: list[str] = []
    for name, word in (("vae_tiling", "tiling"), ("vae_slicing", "slicing")):
        if name not in lacking:
            getattr(vae, f"{'enable' if getattr(knobs, name) else 'disable'}_{word}")()
        if getattr(knobs, name):
            said.append(f"VAE {word}")
    if knobs.vae_tiling and knobs.vae_tile is not None:
        if not hasattr(vae, "tile_sample_stride_height"):
            raise BackendMisconfigured(f"{type(vae).__name__} has tiles of its own size: leave out vae_tile")
        stride = knobs.vae_tile * 3 // 4
        for side in ("height", "width"):
            setattr(vae, f"tile_sample_min_{side}", knobs.vae_tile)
            setattr(vae, f"tile_sample_stride_{side}", stride)
        said[0] += f" by {knobs.vae_tile} pixels"
    return said


def _take_down(pipeline: Any) -> None:
    """Remove the offload that is there, of any kind; weights lie in main memory or on the device then."""
    hooks: Any = importlib.import_module("diffusers.hooks")
    if any(hasattr(module, "_hf_hook") for module in _modules(pipeline).values()):
        pipeline.remove_all_hooks()
        pipeline._all_hooks = []
    for module in _modules(pipeline).values():
        if any(hasattr(each, "_diffusers_hook") for each in module.modules()):
            registry = hooks.HookRegistry.check_if_exists_or_initialize(module)
            for name in _GROUP_HOOKS:
                registry.remove_hook(name, recurse=True)


def _offload_groups(pipeline: Any, device: str) -> None:
    """A transformer block by block, others layer by layer; the VAE, small and called by its parts, stays."""
    torch: Any = importlib.import_module("torch")
    hooks: Any = importlib.import_module("diffusers.hooks")
    denoisers = transformers(pipeline)
    for name, module in _modules(pipeline).items():
        if name == "vae":
            module.to(device)
            continue
        module.to("cpu")
        blocks: dict[str, Any] = {"offload_type": "block_level", "num_blocks_per_group": 1}
        layers: dict[str, Any] = {"offload_type": "leaf_level"}
        hooks.apply_group_offloading(
            module,
            onload_device=torch.device(device),
            use_stream=device != "cpu",
            **(blocks if name in denoisers else layers),
        )


def _modules(pipeline: Any) -> dict[str, Any]:
    torch: Any = importlib.import_module("torch")
    return {name: each for name, each in pipeline.components.items() if isinstance(each, torch.nn.Module)}
