"""Tiny random pipelines for the tests of knobs, clips rendered with them, and what ran while they rendered."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bench.gpu_model import TINY, build
from generators.knob_cache import transformers
from generators.knobs import Knobs, apply, begin_render

STEPS = 4
Pixels = NDArray[np.float32]


@dataclass
class Rig:
    """A pipeline with its knobs on. `said`: what `apply` answered; `ran`: feed-forward layers run, by expert."""

    pipeline: Any
    inputs: dict[str, Any]
    knobs: Knobs
    said: list[str]
    ran: Counter[str] = field(default_factory=Counter[str])

    def render(self, *, steps: int = STEPS, callback: Callable[..., Any] | None = None) -> Pixels:
        """(T, H, W, 3) float32 in 0..1, of one seed."""
        torch: Any = importlib.import_module("torch")
        begin_render(self.pipeline, self.knobs, steps)
        self.ran.clear()
        frames = self.pipeline(
            **self.inputs,
            num_inference_steps=steps,
            generator=torch.Generator().manual_seed(1),
            callback_on_step_end=callback,
            output_type="np",
        ).frames
        return frames[0]


def bare(dtype: str = "float32") -> tuple[Any, dict[str, Any]]:
    """A pipeline without knobs, and what its call is given."""
    built = build(TINY, dtype=dtype, device="cpu")
    encode = built.pipeline.text_encoder
    inputs = {
        "image": built.picture,
        "prompt_embeds": encode(built.token_ids)[0],
        "negative_prompt_embeds": encode(built.empty_ids)[0],
        "height": TINY.height,
        "width": TINY.width,
        "num_frames": TINY.num_frames,
        "guidance_scale": 5.0,
    }
    return built.pipeline, inputs


def rig(**options: Any) -> Rig:
    """A pipeline with these knobs; float32 unless they say otherwise. Raises BackendMisconfigured."""
    knobs = Knobs.model_validate({"dtype": "float32", **options})
    pipeline, inputs = bare(knobs.dtype)
    made = Rig(pipeline, inputs, knobs, apply(pipeline, knobs))
    for name, transformer in (
        transformers(pipeline).items() if not knobs.compile else ()
    ):  # it would compile again
        for block in transformer.blocks:
            block.ffn.register_forward_hook(counting(made.ran, name))
    return made


def counting(ran: Counter[str], name: str) -> Callable[..., None]:
    """A forward hook that counts under that name."""

    def count(*_: Any) -> None:
        ran[name] += 1

    return count


def noting(shapes: list[tuple[int, ...]], which: Literal["given", "out"]) -> Callable[..., None]:
    """A forward hook that notes the shapes of what a module is given, or of what comes out."""

    def note(_: Any, given: Any, out: Any) -> None:
        shapes.append(tuple(given[0].shape if which == "given" else out.shape))

    return note


@cache
def plain() -> Pixels:
    """The clip without knobs, in float32."""
    return rig().render()


def difference(clip: Pixels) -> float:
    """Mean absolute difference from the clip without knobs, in 0..1."""
    return float(np.abs(clip - plain()).mean())


def adapter(
    path: Path, *, seed: int = 0, layers: int = TINY.layers, size: int = TINY.heads * TINY.head_size
) -> Path:
    """A random LoRA of rank 2 on the queries and values of a tiny transformer, as a file."""
    torch: Any = importlib.import_module("torch")
    files: Any = importlib.import_module("safetensors.torch")
    numbers = torch.Generator().manual_seed(seed)
    weights = {
        f"transformer.blocks.{layer}.attn1.{name}.lora_{side}.weight": torch.randn(shape, generator=numbers)
        for layer in range(layers)
        for name in ("to_q", "to_v")
        for side, shape in (("A", (2, size)), ("B", (size, 2)))
    }
    files.save_file(weights, path)
    return path
