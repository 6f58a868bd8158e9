"""LoRA adapters on a pipeline's transformers, and how the distilled ones want to be sampled."""

from __future__ import annotations

import importlib.util
import warnings
from dataclasses import dataclass
from typing import Any

from generators.knob_cache import transformers
from generators.knob_options import Knobs, Lora
from orchestrator.errors import BackendMisconfigured

_OF_EXPERT = {"high": ("transformer",), "low": ("transformer_2",), "both": ("transformer", "transformer_2")}


@dataclass(frozen=True)
class Sampling:
    """How a clip is sampled. `flow_shift` None: as the checkpoint says."""

    denoising_steps: int
    guidance: float
    flow_shift: float | None = None


# Steps, guidance and shift of the model's own configuration (github.com/ModelTC/Wan2.2-Lightning,
# wan/configs/wan_i2v_A14B.py): distilled without guidance.
PRESETS = {"lightning_4_steps": Sampling(denoising_steps=4, guidance=1.0, flow_shift=5.0)}


def sampling(knobs: Knobs, denoising_steps: int, guidance: float) -> Sampling:
    """What a preset of the adapters says, else what was asked."""
    return PRESETS.get(knobs.lora_preset) or Sampling(denoising_steps, guidance)


def add(pipeline: Any, knobs: Knobs) -> list[str]:
    """Load every adapter into its transformers, at its weight, and set the preset's flow shift.

    Says what was applied. Raises BackendMisconfigured.
    """
    if not knobs.lora:
        return []
    if importlib.util.find_spec("peft") is None:
        raise BackendMisconfigured("lora needs the package peft: pip install 'cliploop[wan]'")
    if not hasattr(pipeline, "load_lora_weights"):
        raise BackendMisconfigured(f"{type(pipeline).__name__} takes no adapters: leave out lora")
    said: list[str] = []
    weights: dict[str, list[tuple[str, float]]] = {}
    for number, lora in enumerate(knobs.lora):
        for name in _goes_to(pipeline, lora):
            _load(pipeline, lora, name, f"lora_{number}")
            weights.setdefault(name, []).append((f"lora_{number}", lora.weight))
            said.append(f"lora {lora.path} at {lora.weight:g} on {name}")
    for name, given in weights.items():
        transformers(pipeline)[name].set_adapters([each for each, _ in given], [weight for _, weight in given])
    return said + _shift(pipeline, knobs)


def _goes_to(pipeline: Any, lora: Lora) -> list[str]:
    """The transformers of its expert. Raises BackendMisconfigured where there is no low-noise one."""
    found = transformers(pipeline)
    names = [name for name in _OF_EXPERT[lora.expert] if name in found]
    if not names:
        raise BackendMisconfigured(
            f"lora {lora.path}: {type(pipeline).__name__} has no transformer for {lora.expert} noise here: leave"
            " out expert"
        )
    return names


def _load(pipeline: Any, lora: Lora, name: str, adapter: str) -> None:
    """One adapter into one transformer, from local files only. Raises BackendMisconfigured."""
    where: dict[str, Any] = {"load_into_transformer_2": True} if name == "transformer_2" else {}
    if lora.file:
        where["weight_name"] = lora.file
    shown = f"{lora.path}/{lora.file}" if lora.file else lora.path
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Already found a `peft_config`")  # a second adapter is meant
            pipeline.load_lora_weights(
                lora.path, adapter_name=adapter, local_files_only=True, use_safetensors=True, **where
            )
    except Exception as error:  # a file that is cut, of another model, absent: each library its own class
        first = str(error.__context__ or error).strip().splitlines()
        raise BackendMisconfigured(
            f"lora {shown} cannot be loaded into {name} ({first[0] if first else type(error).__name__}): give a"
            " .safetensors file that was trained on this model"
        ) from error
    if adapter not in getattr(transformers(pipeline)[name], "peft_config", {}):
        raise BackendMisconfigured(
            f"lora {shown} has no weights for {name}: give a file that was trained on this model"
        )


def _shift(pipeline: Any, knobs: Knobs) -> list[str]:
    """The preset's flow shift, by whichever name the pipeline's scheduler has for it."""
    preset = PRESETS.get(knobs.lora_preset)
    if preset is None:
        return []
    scheduler = pipeline.scheduler
    names = [name for name in ("flow_shift", "shift") if name in scheduler.config]
    if not names:
        raise BackendMisconfigured(
            f"lora_preset {knobs.lora_preset}: {type(scheduler).__name__} has no flow shift: leave the preset out"
        )
    pipeline.scheduler = scheduler.from_config(scheduler.config, **{names[0]: preset.flow_shift})
    return [f"{names[0]} {preset.flow_shift:g}"]
