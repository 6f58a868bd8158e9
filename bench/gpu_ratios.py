"""Measures MagCache's ratios on a checkpoint, by one render without any cache, as lines of `cliploop.toml`.

    python -m bench.gpu_ratios /models/Wan2.2-I2V-A14B-Diffusers --picture first.png --prompt "The ball rolls."

The picture and prompt should be like those that will be rendered; the checkpoint has to be in a local folder.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from generators.knob_cache import calibrate
from generators.knobs import Knobs, apply, loading
from orchestrator.errors import BackendMisconfigured

OPTIONS = {"transformer": "cache_ratios", "transformer_2": "cache_ratios_low"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the lines; 1 where the checkpoint or a knob cannot be used."""
    given = _parser().parse_args(arguments)
    try:
        ratios = measured(given)
    except (BackendMisconfigured, OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    print('cache = "magcache"')
    for name, numbers in ratios.items():
        print(f"{OPTIONS[name]} = [{', '.join(f'{number:.4f}' for number in numbers)}]")
    return 0


def measured(given: argparse.Namespace) -> dict[str, Any]:
    """Ratios by transformer. Raises BackendMisconfigured, OSError, ValueError."""
    torch: Any = importlib.import_module("torch")
    diffusers: Any = importlib.import_module("diffusers")
    images: Any = importlib.import_module("PIL.Image")
    shapes: Any = importlib.import_module("PIL.ImageOps")
    knobs = Knobs(dtype=given.dtype, offload=given.offload, vae_tiling=given.vae_tiling)
    pipeline = diffusers.DiffusionPipeline.from_pretrained(given.model, local_files_only=True, **loading(knobs))
    apply(pipeline, knobs, device="cuda" if torch.cuda.is_available() else "cpu")
    picture = shapes.fit(images.open(given.picture).convert("RGB"), (given.width, given.height))
    return calibrate(
        pipeline,
        lambda callback: pipeline(
            image=picture,
            prompt=given.prompt,
            width=given.width,
            height=given.height,
            num_frames=given.frames,
            num_inference_steps=given.steps,
            guidance_scale=given.guidance,
            generator=torch.Generator().manual_seed(0),
            callback_on_step_end=callback,
            output_type="latent",
        ),
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.gpu_ratios", description="MagCache's ratios")
    parser.add_argument("model", type=Path, help="folder of a diffusers checkpoint")
    parser.add_argument("--picture", type=Path, required=True)
    parser.add_argument("--prompt", required=True)
    for name, number in (("width", 832), ("height", 480), ("frames", 81), ("steps", 20)):
        parser.add_argument(f"--{name}", type=int, default=number)
    parser.add_argument("--guidance", type=float, default=5.0)
    parser.add_argument("--dtype", default="bfloat16", choices=["bfloat16", "float16", "float32"])
    parser.add_argument("--offload", default="none", choices=["none", "model", "group", "sequential"])
    parser.add_argument("--vae-tiling", action="store_true")
    return parser


if __name__ == "__main__":
    sys.exit(main())
