"""What each knob of a diffusers pipeline costs and saves on this GPU: Wan2.2 A14B's geometry, random weights.

    python -m bench.gpu                          every knob: plain bfloat16 first, the others as ratios to it
    python -m bench.gpu --knobs cache compile    groups or single knobs, in a time limit; plain always runs too
    python -m bench.gpu --tiny                   the whole path at a tiny size, on the CPU too

Needs Python 3.11 and the wheels torch>=2.10 (built for this GPU), diffusers>=0.42, transformers>=5.24,
accelerate>=1.15, peft>=0.21, numpy, pillow, pydantic and safetensors. Measured only where they are there: torchao
(quantization), triton (compile), flash-attn, flash-attn 3, sageattention. How to read the table: docs/gpu.md.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from bench.gpu_measure import Bench, Figures, Output
from bench.gpu_model import A14B, TINY, Geometry, resized
from bench.gpu_variants import GROUPS, PLAIN, Variant, chosen, missing, save_adapter

R = TypeVar("R")
WHEELS = ("torch", "diffusers", "transformers", "accelerate", "peft", "safetensors")
# Of a plain run's seconds, for the estimate: magcache is calibrated before, lightning has 4 steps.
_FACTORS = {"magcache": 1.8, "offload_model": 1.2, "offload_sequential": 4.0, "lightning": 0.2, "compile": 1.3}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the estimate, then a row per knob as it is measured; 0 also where it skips."""
    given = _parser().parse_args(arguments)
    try:
        variants = chosen(given.knobs)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    absent = [name for name in WHEELS if importlib.util.find_spec(name) is None]
    if absent:
        print(f"skipped: no {', '.join(absent)} here; pip install 'cliploop[wan]', with torch>=2.10 for this GPU")
        return 0
    torch: Any = importlib.import_module("torch")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu" and not given.tiny:
        print(f"skipped: torch {torch.__version__} sees no GPU here; --tiny runs the whole path at a tiny size")
        return 0
    geometry = resized(
        TINY if given.tiny else A14B,
        width=given.width,
        height=given.height,
        num_frames=given.frames,
        denoising_steps=given.steps,
        layers=given.layers,
    )
    print(_machine(torch, device, geometry))
    with tempfile.TemporaryDirectory() as folder:
        adapter = save_adapter(Path(folder) / "random.safetensors", geometry)
        bench = Bench(geometry, device=device, dtype=given.dtype, adapter=adapter)
        report = _measured(bench, variants, geometry, device, given.limit)
    if given.out is not None:
        given.out.write_text(json.dumps({"machine": _machine(torch, device, geometry), "rows": report}, indent=2))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.gpu", description=__doc__.split("\n")[0] if __doc__ else ""
    )
    parser.add_argument("--knobs", nargs="+", default=["all"], help=f"names or groups: {', '.join(GROUPS)}, all")
    parser.add_argument(
        "--tiny", action="store_true", help="a tiny model and clip, on the CPU where there is no GPU"
    )
    parser.add_argument("--dtype", default="bfloat16", choices=["bfloat16", "float16", "float32"])
    for name in ("width", "height", "frames", "steps"):
        parser.add_argument(f"--{name}", type=int, default=None)
    parser.add_argument(
        "--layers", type=int, default=None, help="of each transformer, where 40 do not fit (A14B)"
    )
    parser.add_argument(
        "--limit", type=float, default=None, help="begin no knob that would end after so many seconds"
    )
    parser.add_argument("--out", type=Path, default=None, help="also write the figures to this file, as JSON")
    return parser


def _machine(torch: Any, device: str, geometry: Geometry) -> str:
    where = "the CPU"
    if device != "cpu":
        about = torch.cuda.get_device_properties(0)
        where = f"{about.name}, {about.total_memory / 2**30:.0f} GiB"
    diffusers: Any = importlib.import_module("diffusers")
    clip = f"{geometry.width}x{geometry.height}, {geometry.num_frames} frames, {geometry.denoising_steps} steps"
    return (
        f"{geometry.name}, {geometry.layers} layers, random weights, {clip}; {where}; torch {torch.__version__},"
        f" diffusers {diffusers.__version__}"
    )


def _measured(
    bench: Bench, variants: list[Variant], geometry: Geometry, device: str, limit: float | None
) -> list[dict[str, Any]]:
    """Rows as records, printed one by one. A knob that is missing or does not fit says so in its row."""
    begun = time.monotonic()
    probed, why = _attempted(bench.probe)
    if probed is None:
        print(f"plain {why}: nothing to compare with; --layers, --width, --height and --frames make it smaller")
        return [{"knob": PLAIN, "figures": None, "output": None, "not_measured": why}]
    step, setup = probed
    ready = [each for each in variants if not missing(each, device)]
    seconds = {each.name: _estimate(each, geometry, step, setup) for each in ready}
    print(f"estimate: {sum(seconds.values()):.0f} s for {len(ready)} rows, from a step of {step:.3g} s\n")
    print(_HEAD)
    rows: list[dict[str, Any]] = []
    baseline: Figures | None = None
    for variant in variants:
        why = missing(variant, device)
        if not why and limit is not None and time.monotonic() - begun + seconds[variant.name] > limit:
            why = f"would end after --limit {limit:g}: run it by itself"
        measured, why = (None, why) if why else _attempted(lambda variant=variant: bench.run(variant))
        figures, output = measured or (None, None)
        baseline = baseline or figures
        print(_row(variant, figures, output, baseline) if figures and baseline else f"{variant.name:<20} {why}")
        rows.append(
            {
                "knob": variant.name,
                "figures": figures.model_dump() if figures else None,
                "output": output.model_dump() if output else None,
                "not_measured": why or None,
            }
        )
    return rows


def _attempted(what: Callable[[], R]) -> tuple[R | None, str]:
    """What it gives, or why it gives nothing: one knob's failure is a row, not the end of the others."""
    torch: Any = importlib.import_module("torch")
    try:
        return what(), ""
    except torch.OutOfMemoryError:
        return None, "does not fit into this GPU's memory"
    except Exception as error:
        first = str(error).strip().splitlines()
        return None, f"failed: {type(error).__name__}: {first[0][:160] if first else ''}"


def _estimate(variant: Variant, geometry: Geometry, step: float, setup: float) -> float:
    """Seconds of one row: building, two steps to warm up, denoising; the VAE about as long as two steps."""
    if variant.at_vae:
        return setup + 2 * step
    return setup + step * (4 + geometry.denoising_steps * _FACTORS.get(variant.name, 1.0))


_HEAD = (
    f"{'knob':<20} {'s/step':>9} {'ratio':>6} {'denoise s':>9} {'ratio':>6} {'GiB':>6} {'ratio':>6}"
    f" {'computed':>8} {'text s':>7} {'encode s':>8} {'decode s':>8} {'VAE GiB':>7} {'latents':>8} {'PSNR dB':>7}"
    f" {'first s':>8}"
)


def _row(variant: Variant, figures: Figures, output: Output | None, plain: Figures) -> str:
    """Measured figures, and ratios to the baseline of the same run; a dash where a knob does not touch one."""
    cells = [
        _cell(figures.seconds_per_step, 9, "{:.4g}"),
        _ratio(figures.seconds_per_step, plain.seconds_per_step),
        _cell(figures.denoising_seconds, 9, "{:.4g}"),
        _ratio(figures.denoising_seconds, plain.denoising_seconds),
        _cell(figures.denoising_gib, 6, "{:.1f}"),
        _ratio(figures.denoising_gib, plain.denoising_gib),
        _cell(figures.computed, 8, "{:.2f}"),
        _cell(figures.text_seconds, 7, "{:.3g}"),
        _cell(figures.vae_encode_seconds, 8, "{:.3g}"),
        _cell(figures.vae_decode_seconds, 8, "{:.3g}"),
        _cell(figures.vae_gib, 7, "{:.1f}"),
        _cell(output.latents_error if output else None, 8, "{:.4f}"),
        _cell(output.frames_psnr if output else None, 7, "{:.1f}"),
        _cell(figures.first_seconds, 8, "{:.3g}"),
    ]
    return f"{variant.name:<20} {' '.join(cells)}" + (f"  {variant.about}" if variant.about else "")


def _cell(value: float | None, width: int, form: str) -> str:
    return ("-" if value is None else form.format(value)).rjust(width)


def _ratio(value: float | None, plain: float | None) -> str:
    return _cell(value / plain if value is not None and plain else None, 6, "{:.2f}")


if __name__ == "__main__":
    sys.exit(main())
