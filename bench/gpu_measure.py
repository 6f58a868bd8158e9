"""Measures one variant of a pipeline: text, VAE and denoising apart, peak memory, and what came out."""

from __future__ import annotations

import gc
import importlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.gpu_model import Built, Geometry, build
from bench.gpu_variants import Variant, knobs
from generators.knob_cache import calibrate, transformers
from generators.knobs import Knobs, apply, begin_render, sampling
from orchestrator.records import Record

GUIDANCE = 5.0
WARM_UP_STEPS = 2  # one of each expert: compiles and tunes what is compiled and tuned
SEED = 1


class Figures(Record):
    """What one variant took. Seconds are None where a variant does not touch them, GiB where there is no GPU.

    `computed`: the share of a middle layer's passes that a cache did not skip.
    """

    applied: tuple[str, ...]
    text_seconds: float | None
    vae_encode_seconds: float
    vae_decode_seconds: float
    denoising_steps: int = 0
    seconds_per_step: float | None = None
    denoising_seconds: float | None = None
    first_seconds: float | None = None
    computed: float | None = None
    denoising_gib: float | None = None
    vae_gib: float | None = None


class Output(Record):
    """How far a clip is from the baseline's: latents by root mean square, relative; frames by PSNR in dB."""

    latents_error: float | None = None
    frames_psnr: float


class Bench:
    """Runs variants one after the other on one device; keeps the baseline's output, and nothing else of it."""

    def __init__(self, geometry: Geometry, *, device: str, dtype: str, adapter: Path) -> None:
        self._torch: Any = importlib.import_module("torch")
        self._geometry, self._device, self._dtype, self._adapter = geometry, device, dtype, adapter
        self._ratios: dict[str, Any] = {}
        self._latents: Any = None
        self._frames: Any = None

    def probe(self) -> tuple[float, float]:
        """Seconds of one plain denoising step, the second time, and of building: for the estimate."""
        given = Knobs.model_validate({"dtype": self._dtype})
        (built, _), setup = self._timed(lambda: self._made(given, ""))
        embeds = self._embeds(built)
        clocks = [self._denoised(built, given, embeds, WARM_UP_STEPS)[1] for _ in range(2)]
        return clocks[1] / WARM_UP_STEPS, setup

    def run(self, variant: Variant) -> tuple[Figures, Output | None]:
        """Figures of a variant; how its output differs, None for the baseline itself, which has to come first."""
        self.free()
        if variant.options.get("cache") == "magcache" and not self._ratios:
            self._ratios = self._calibrated()
            self.free()
        given = knobs(variant, self._geometry, dtype=self._dtype, adapter=self._adapter, ratios=self._ratios)
        built, applied = self._made(given, variant.quantized)
        if variant.at_vae:
            return self._at_vae(built, applied)
        embeds, text = self._timed(lambda: self._embeds(built))
        sampled = sampling(given, self._geometry.denoising_steps, GUIDANCE)
        _, first = self._denoised(built, given, embeds, WARM_UP_STEPS, sampled.guidance)
        passes = _counted(built) if given.cache != "none" else []
        self._reset_peak()
        latents, seconds = self._denoised(built, given, embeds, sampled.denoising_steps, sampled.guidance)
        peak = self._peak()
        figures, frames = self._through_vae(built, latents, applied, text)
        figures = figures.model_copy(
            update={
                "denoising_steps": sampled.denoising_steps,
                "seconds_per_step": seconds / sampled.denoising_steps,
                "denoising_seconds": seconds,
                "first_seconds": first,
                "computed": len(passes) / (2 * sampled.denoising_steps) if passes else None,
                "denoising_gib": peak,
            }
        )
        return figures, self._compared(latents, frames)

    def _at_vae(self, built: Built, applied: list[str]) -> tuple[Figures, Output | None]:
        """Only the VAE's part, on the baseline's latents."""
        figures, frames = self._through_vae(built, self._latents, applied, None)
        return figures, self._compared(None, frames)

    def _made(self, given: Knobs, quantized: str) -> tuple[Built, list[str]]:
        """A fresh pipeline with these knobs on: nothing of an earlier variant is left on it."""
        built = build(self._geometry, dtype=given.dtype, device=self._device)
        if given.vae_dtype == "same":
            built.pipeline.vae.to(getattr(self._torch, given.dtype))
        extra: list[str] = []
        if quantized:
            quantize = importlib.import_module("torchao.quantization")
            config = (
                quantize.Int8WeightOnlyConfig()
                if quantized == "int8"
                else quantize.Float8DynamicActivationFloat8WeightConfig()
            )
            for transformer in transformers(built.pipeline).values():
                quantize.quantize_(transformer.blocks, config)
            extra = [f"blocks quantized to {quantized} by torchao"]
        return built, apply(built.pipeline, given, device=self._device) + extra

    def _embeds(self, built: Built) -> tuple[Any, Any]:
        """(1, 512, text size) of the prompt and of none."""
        encode, place = built.pipeline.text_encoder, self._device
        with self._torch.no_grad():
            return tuple(encode(ids.to(place))[0] for ids in (built.token_ids, built.empty_ids))  # pyright: ignore[reportReturnType]

    def _denoised(
        self,
        built: Built,
        given: Knobs,
        embeds: tuple[Any, Any],
        steps: int,
        guidance: float = GUIDANCE,
        callback: Callable[..., Any] | None = None,
    ) -> tuple[Any, float]:
        """Latents (1, 16, t, h, w) and the seconds of denoising alone, first step's start to last step's end."""
        begin_render(built.pipeline, given, steps)
        ends: list[float] = []
        begins: list[float] = []

        def started(*_: Any) -> None:
            if not begins:
                begins.append(self._now())

        def ended(pipeline: Any, step: int, timestep: Any, tensors: dict[str, Any]) -> dict[str, Any]:
            ends.append(self._now())
            return callback(pipeline, step, timestep, tensors) if callback else tensors

        hooks = [each.register_forward_pre_hook(started) for each in transformers(built.pipeline).values()]
        clip = self._geometry
        latents = built.pipeline(
            image=built.picture,
            prompt_embeds=embeds[0],
            negative_prompt_embeds=embeds[1],
            height=clip.height,
            width=clip.width,
            num_frames=clip.num_frames,
            num_inference_steps=steps,
            guidance_scale=guidance,
            generator=self._torch.Generator().manual_seed(SEED),
            callback_on_step_end=ended,
            output_type="latent",
        ).frames
        for hook in hooks:
            hook.remove()
        return latents.float().cpu(), ends[-1] - begins[0]

    def _calibrated(self) -> dict[str, Any]:
        """MagCache's ratios of this model at these steps."""
        given = Knobs.model_validate({"dtype": self._dtype})
        built, _ = self._made(given, "")
        embeds, steps = self._embeds(built), self._geometry.denoising_steps
        return calibrate(
            built.pipeline, lambda callback: self._denoised(built, given, embeds, steps, callback=callback)
        )

    def _through_vae(
        self, built: Built, latents: Any, applied: list[str], text_seconds: float | None
    ) -> tuple[Figures, Any]:
        """Encode a clip of the start frame, decode the latents, both timed; frames are (T, H, W, 3) uint8."""
        vae, clip = built.pipeline.vae, self._geometry
        mean, deviation = (
            self._torch.tensor(each).view(1, -1, 1, 1, 1)
            for each in (vae.config.latents_mean, vae.config.latents_std)
        )
        moved = (latents * deviation + mean).to(self._device, vae.dtype)
        picture = built.pipeline.video_processor.preprocess(built.picture, height=clip.height, width=clip.width)
        video = picture.to(self._device, vae.dtype).unsqueeze(2).repeat(1, 1, clip.num_frames, 1, 1)
        self._reset_peak()
        with self._torch.no_grad():
            _, encode = self._timed(lambda: vae.encode(video).latent_dist.mode())
            shown, decode = self._timed(lambda: vae.decode(moved, return_dict=False)[0])
        peak = self._peak()
        frames = ((shown[0].permute(1, 2, 3, 0).float() + 1) * 127.5).round().clamp(0, 255).byte().cpu()
        figures = Figures(
            applied=tuple(applied),
            text_seconds=text_seconds,
            vae_encode_seconds=encode,
            vae_decode_seconds=decode,
            vae_gib=peak,
        )
        return figures, frames

    def _compared(self, latents: Any, frames: Any) -> Output | None:
        """Against the baseline; the first output becomes it. Raises ValueError where numbers ran over."""
        if latents is not None and not bool(latents.isfinite().all()):
            raise ValueError("the latents are not finite: this number format does not hold them")
        if self._frames is None:
            self._latents, self._frames = latents, frames
            return None
        wrong = (frames.float() - self._frames.float()).square().mean().item()
        psnr = 100.0 if wrong == 0 else 10 * float(self._torch.log10(self._torch.tensor(255**2 / wrong)))
        error = None
        if latents is not None:
            error = float((latents - self._latents).square().mean().sqrt() / self._latents.square().mean().sqrt())
        return Output(latents_error=error, frames_psnr=psnr)

    def _timed(self, what: Callable[[], Any]) -> tuple[Any, float]:
        begun = self._now()
        got = what()
        return got, self._now() - begun

    def _now(self) -> float:
        if self._device != "cpu":
            self._torch.cuda.synchronize()
        return time.perf_counter()

    def _reset_peak(self) -> None:
        if self._device != "cpu":
            self._torch.cuda.reset_peak_memory_stats()

    def _peak(self) -> float | None:
        return self._torch.cuda.max_memory_allocated() / 2**30 if self._device != "cpu" else None

    def free(self) -> None:
        """Drop what the last variant left: its pipeline, compiled code and cached blocks of memory."""
        gc.collect()
        importlib.import_module("torch._dynamo").reset()
        if self._device != "cpu":
            self._torch.cuda.empty_cache()


def _counted(built: Built) -> list[None]:
    """Gets an entry whenever a middle layer of either transformer runs."""
    passes: list[None] = []
    for transformer in transformers(built.pipeline).values():
        middle = transformer.blocks[len(transformer.blocks) // 2]
        middle.ffn.register_forward_hook(lambda *_: passes.append(None))  # pyright: ignore[reportUnknownLambdaType]
    return passes
