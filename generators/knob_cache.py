"""Caches of the denoiser, per transformer: what skips work in steps that change little; MagCache's calibration.

They keep state between the steps of one render: `begin_render` starts each from nothing.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from generators.knob_options import Knobs
from orchestrator.errors import BackendMisconfigured

FIRST_BLOCK_THRESHOLD = 0.05  # diffusers' own default
MAGCACHE_THRESHOLD = 0.06  # likewise
_ATTENTIONS = [r"(.+_)?blocks\.\d+\.attn\d*"]  # diffusers' own pattern misses attn1 and attn2
_MAGCACHE_HEAD = "mag_cache_leader_block_hook"
_UNSET_STEPS = 50  # replaced at the first render
_ENDLESS = 10**6  # more steps than any render has: nothing is printed, nothing reset


def transformers(pipeline: Any) -> dict[str, Any]:
    """The pipeline's denoisers by name: `transformer`, and `transformer_2` where low noise has its own."""
    held = pipeline.components
    return {name: held[name] for name in ("transformer", "transformer_2") if held.get(name) is not None}


def experts_steps(pipeline: Any, denoising_steps: int) -> dict[str, int]:
    """How many of the steps each transformer does: high noise down to the boundary, low noise the rest."""
    names = list(transformers(pipeline))
    boundary = pipeline.config.get("boundary_ratio")
    if len(names) < 2 or boundary is None:
        return dict.fromkeys(names, denoising_steps)
    scheduler = pipeline.scheduler.from_config(pipeline.scheduler.config)
    scheduler.set_timesteps(denoising_steps)
    edge = boundary * scheduler.config.num_train_timesteps
    high = sum(float(timestep) >= edge for timestep in scheduler.timesteps)
    return {"transformer": high, "transformer_2": denoising_steps - high}


def enable(pipeline: Any, knobs: Knobs) -> list[str]:
    """Put the cache on every transformer. Says what was applied. Raises BackendMisconfigured."""
    if knobs.cache == "none":
        return []
    found = transformers(pipeline)
    if "transformer_2" in found and knobs.cache == "magcache" and not knobs.cache_ratios_low:
        raise BackendMisconfigured(
            "cache magcache: this checkpoint has two transformers, each with ratios of its own: give"
            " cache_ratios_low too, or another cache"
        )
    for name, transformer in found.items():
        _enable(pipeline, name, transformer, _config(knobs, name, _UNSET_STEPS), knobs.cache)
    return [f"cache {knobs.cache} on {' and '.join(found)}"]


def begin_render(pipeline: Any, knobs: Knobs, denoising_steps: int) -> None:
    """To be called before every render: empty caches, also after one that was cancelled, and MagCache's steps."""
    if knobs.cache == "none":
        return
    steps = experts_steps(pipeline, denoising_steps) if knobs.cache == "magcache" else {}
    for name, transformer in transformers(pipeline).items():
        count = max(1, steps.get(name, 1))
        if knobs.cache == "magcache" and transformer._cache_config.num_inference_steps != count:
            transformer.disable_cache()
            _enable(pipeline, name, transformer, _config(knobs, name, count), knobs.cache)
        transformer._reset_stateful_cache()


def calibrate(pipeline: Any, render: Callable[[Callable[..., dict[str, Any]]], object]) -> dict[str, Any]:
    """Measure MagCache's ratios: by transformer, one number per step that it did, all steps computed in full.

    `render(callback_on_step_end)` does one render of the wanted steps. No cache may be on.
    The ratio is the mean magnitude of a step's residual by that of the step before: MagCache, arXiv 2506.09045.
    """
    diffusers: Any = importlib.import_module("diffusers")
    found = transformers(pipeline)
    kept: dict[str, Any] = {}

    def callback(_pipeline: Any, _step: int, _timestep: Any, tensors: dict[str, Any]) -> dict[str, Any]:
        for name, transformer in found.items():
            ratios = _measured(transformer)
            if ratios:
                kept[name] = tuple(ratios)
        return tensors

    for transformer in found.values():
        transformer.enable_cache(diffusers.MagCacheConfig(calibrate=True, num_inference_steps=_ENDLESS))
    try:
        render(callback)
    finally:
        for transformer in found.values():
            transformer.disable_cache()
    return kept


def _measured(transformer: Any) -> list[float]:
    """The ratios so far of the first kind of pass (with the prompt), empty before the first."""
    for block in transformer.modules():
        registry = getattr(block, "_diffusers_hook", None)
        head = registry.get_hook(_MAGCACHE_HEAD) if registry is not None else None
        if head is not None:
            states = list(head.state_manager._state_cache.values())
            return states[0].calibration_ratios if states else []
    return []


def _enable(pipeline: Any, name: str, transformer: Any, config: Any, cache: str) -> None:
    """Raises BackendMisconfigured where this transformer's blocks cannot be cached so."""
    kind = type(transformer).__name__
    if not hasattr(transformer, "enable_cache"):
        raise BackendMisconfigured(
            f"{type(pipeline).__name__} has no caches ({name} is a {kind}): leave out cache"
        )
    try:
        transformer.enable_cache(config)
    except (ValueError, IndexError, KeyError, AttributeError, NotImplementedError) as error:
        raise BackendMisconfigured(
            f"cache {cache} does not go with {name}, a {kind} ({error}): choose another cache or none"
        ) from error
    if not _hooked(transformer):
        raise BackendMisconfigured(
            f"cache {cache} finds nothing to skip in {name}, a {kind}: choose another or none"
        )


def _hooked(transformer: Any) -> bool:
    """Whether anything below the transformer itself has a hook that keeps state."""
    return any(
        hook._is_stateful
        for module in transformer.modules()
        if module is not transformer and (registry := getattr(module, "_diffusers_hook", None)) is not None
        for hook in registry.hooks.values()
    )


def _config(knobs: Knobs, name: str, denoising_steps: int) -> Any:
    """The cache's own configuration, for a transformer that does so many steps."""
    torch: Any = importlib.import_module("torch")
    diffusers: Any = importlib.import_module("diffusers")
    if knobs.cache == "first_block":
        return diffusers.FirstBlockCacheConfig(threshold=knobs.cache_threshold or FIRST_BLOCK_THRESHOLD)
    if knobs.cache == "magcache":
        ratios = knobs.cache_ratios_low if name == "transformer_2" else knobs.cache_ratios
        return diffusers.MagCacheConfig(
            threshold=knobs.cache_threshold or MAGCACHE_THRESHOLD,
            max_skip_steps=knobs.cache_max_skips,
            retention_ratio=knobs.cache_retention,
            num_inference_steps=denoising_steps,
            mag_ratios=list(ratios),
        )
    return diffusers.TaylorSeerCacheConfig(
        cache_interval=knobs.cache_interval,
        disable_cache_before_step=knobs.cache_warmup,
        max_order=knobs.cache_order,
        taylor_factors_dtype=getattr(torch, knobs.dtype),
        use_lite_mode=knobs.cache_lite,
        cache_identifiers=None if knobs.cache_lite else _ATTENTIONS,
    )
