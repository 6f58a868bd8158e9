"""Cosmos-Predict2.5 from diffusers as image-to-world: the start picture is frame 0, the prompt says what follows.

Its safety checker looks at every prompt before it is rendered and at every video after; what it blocks is a lost
attempt that says so. It may change a video too: it blurs faces. The pipeline itself looks at videos only with one
class of checker, so that is done here, with any.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from pydantic import Field, field_validator, model_validator

from generators.checkpoints import folder_of, is_here, read, require_whole
from generators.diffusers_calls import (
    Steps,
    called,
    chosen_device,
    cpu_generator,
    first_line,
    fitting,
    of_size,
    start_picture,
    with_less_memory,
)
from generators.diffusers_classes import diffusers_library, loaded, require_libraries
from generators.knobs import Knobs, apply, begin_render, sampling
from media.frames import FrameReader
from media.pictures import Frame, Frames
from orchestrator.errors import BackendFailed, BackendMisconfigured
from orchestrator.frame_counts import snap
from orchestrator.records import Capabilities, Shot

__all__ = ["Cosmos", "CosmosOptions", "build", "figures"]

LICENCE = "the NVIDIA Open Model License ends where its guardrail is bypassed without a substantially similar one"


class CosmosOptions(Knobs):
    """Which checkpoint, and who looks at prompts and videos."""

    model: str = Field(default="nvidia/Cosmos-Predict2.5-2B", min_length=1)
    """The checkpoint: a folder in diffusers' layout, or the id of a hub repository."""

    revision: str = "diffusers/base/post-trained"
    """Of the hub repository: where it has the checkpoint in that layout. Unused with a folder."""

    allow_download: bool = False
    """Load from the hub what is not in the local cache. Otherwise `cliploop models pull` does that."""

    safety_checker: str = "cosmos_guardrail"
    """NVIDIA's own, or `module:attribute` of your own class with its methods, or `none`."""

    licence_allows_no_checker: bool = False
    """Says that the licence you have allows `safety_checker = "none"`; NVIDIA's open one does not."""

    negative_prompt: str = ""
    """What should not be seen; empty: the pipeline's own."""

    min_side: int = Field(default=256, ge=16)
    """Pixels."""

    max_side: int = Field(default=1280, ge=16)
    """Pixels."""

    max_pixels: int = Field(default=1280 * 704, ge=256)
    """Of a frame."""

    max_frames: int = Field(default=93, ge=5)
    """Of a clip; 93 as it was trained."""

    chainable: bool = True
    """`false` if its clips should not be gone on from."""

    @field_validator("cache")
    @classmethod
    def _cache(cls, name: str) -> str:
        if name != "none":
            raise ValueError("of Cosmos there is none, its transformer has no hooks for it: leave it out")
        return name

    @model_validator(mode="after")
    def _licensed(self) -> CosmosOptions:
        if self.safety_checker == "none" and not self.licence_allows_no_checker:
            raise ValueError(
                f"safety_checker none: {LICENCE}; licence_allows_no_checker says that yours is another"
            )
        if self.safety_checker not in ("none", "cosmos_guardrail") and ":" not in self.safety_checker:
            raise ValueError("safety_checker must be cosmos_guardrail, none, or module:attribute of a class")
        return self


@dataclass
class Guard:
    """A safety checker as the pipeline holds it: what it blocks is BackendFailed. Without one, all passes."""

    checker: Any

    def to(self, device: Any) -> None:
        if self.checker is not None:
            self.checker.to(device)

    def check_text_safety(self, prompt: str) -> bool:
        """Raises BackendFailed."""
        if self.checker is not None and not self.checker.check_text_safety(prompt):
            raise BackendFailed("Cosmos' safety checker blocked the prompt: it must be worded otherwise")
        return True

    def passed(self, frames: Frames) -> Frames:
        """The video, as the checker lets it through. Raises BackendFailed."""
        if self.checker is None:
            return frames
        seen = self.checker.check_video_safety(frames)
        if seen is None:
            raise BackendFailed("Cosmos' safety checker blocked the video: another seed or prompt may pass")
        made = np.asarray(seen)
        if made.shape != frames.shape or made.dtype != np.uint8:
            raise BackendFailed(
                f"Cosmos' safety checker returned {made.dtype} of shape {made.shape}, not the video"
            )
        return made


class Cosmos:
    """Implements orchestrator.ports.Generator. The pipeline is loaded at the first render and stays."""

    def __init__(self, options: CosmosOptions, reader: FrameReader | None) -> None:
        self._options = options
        self._reader = reader
        self._knobs = options
        self._pipeline: Any = None
        self._guard = Guard(None)
        self._device = ""
        self.applied: list[str] = []  # what of the knobs was applied as it was loaded

    @property
    def capabilities(self) -> Capabilities:
        """Its call refuses sides that are no multiples of 16; its VAE makes 4k + 1 frames."""
        return Capabilities(
            name=f"cosmos ({self._options.model})",
            size_multiple=16,
            min_side=self._options.min_side,
            max_side=self._options.max_side,
            max_pixels=self._options.max_pixels,
            frame_step=4,
            frame_offset=1,
            min_frames=5,
            max_frames=self._options.max_frames,
            fps=16.0,
            prompt_chars=4 * 512,  # of 512 tokens
            chainable=self._options.chainable,
        )

    def render(
        self,
        shot: Shot,
        *,
        resume: str | None,
        checkpoint: Callable[[str], None],
        progress: Callable[[float], None],
        cancelled: Callable[[], bool],
    ) -> Frames:
        """(T, H, W, 3) uint8 RGB on the canvas. Raises BackendFailed, BackendMisconfigured, JobCancelled."""
        start = start_picture(self._reader, shot)
        sampled = sampling(self._options, shot.denoising_steps, shot.guidance)
        steps = Steps(sampled.denoising_steps, progress, cancelled)
        steps.begin()
        self.prepare()
        pipeline = self._pipeline

        def once() -> Frames:
            steps.begin()
            begin_render(pipeline, self._knobs, steps.total)
            return self._clip(pipeline, shot, start, sampled.guidance, steps)

        frames, self._knobs = with_less_memory(pipeline, self._knobs, self._device, once)
        passed = self._guard.passed(of_size(frames, shot.canvas))
        progress(1.0)
        return passed

    def _clip(self, pipeline: Any, shot: Shot, start: Frame, guidance: float, steps: Steps) -> Frames:
        num_frames = snap(shot.num_frames, self.capabilities)
        given: dict[str, Any] = {
            "video": [Image.fromarray(start)],
            "num_latent_conditional_frames": 1,  # image to world; its own default goes on from five frames
            "prompt": shot.prompt,
            "height": shot.canvas.height,
            "width": shot.canvas.width,
            "num_frames": num_frames,
            "num_inference_steps": steps.total,
            "guidance_scale": guidance,
            "generator": cpu_generator(shot.seed),
            "callback_on_step_end": steps,
        }
        if self._options.negative_prompt:
            given["negative_prompt"] = self._options.negative_prompt
        return called(pipeline, f"{shot.canvas}, {num_frames} frames", **given)

    def check(self) -> None:
        """Whether the libraries and the checkpoint are there, whole. Raises BackendMisconfigured."""
        options = self._options
        require_libraries()
        if is_here(options.model, self._options.revision) or not options.allow_download:
            require_whole(read(folder_of(options.model, revision=self._options.revision)))

    def prepare(self) -> None:
        """Load the pipeline, unless it is loaded. Raises BackendMisconfigured."""
        if self._pipeline is None:
            with fitting(self._options.model):
                self._pipeline = self._load()

    def _load(self) -> Any:
        """The pipeline with its checker and knobs. Raises BackendMisconfigured."""
        options = self._options
        kind = diffusers_library().Cosmos2_5_PredictBasePipeline
        folder = folder_of(options.model, revision=options.revision, allow_download=options.allow_download)
        if _pads(folder):
            _require_torchvision()
        self._guard = Guard(_checker(options))
        pipeline = loaded(
            kind,
            options.model,
            options,
            allow_download=options.allow_download,
            revision=options.revision,
            safety_checker=self._guard,
        )
        self._device = chosen_device()
        self.applied = apply(pipeline, options, device=self._device)
        return pipeline


def _pads(folder: Path) -> bool:
    """Whether its transformer resizes a padding mask, which torchvision does; the released ones do."""
    try:
        config = json.loads((folder / "transformer" / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return True
    return bool(config.get("concat_padding_mask", True))


def _require_torchvision() -> None:
    try:
        importlib.import_module("torchvision")
    except Exception as error:  # one for another torch fails in ways of its own
        raise BackendMisconfigured(
            f"Cosmos needs torchvision, which cannot be loaded ({first_line(error)}): install the version that"
            " belongs to your torch"
        ) from error


def _checker(options: CosmosOptions) -> Any:
    """The safety checker that the options name, None for none. Raises BackendMisconfigured."""
    name = options.safety_checker
    if name == "none":
        return None
    place = "cosmos_guardrail:CosmosSafetyChecker" if name == "cosmos_guardrail" else name
    module, _, attribute = place.partition(":")
    try:
        checker = getattr(importlib.import_module(module), attribute)()
    except Exception as error:  # it is absent, or its models are: each library its own class
        raise BackendMisconfigured(
            f"safety_checker {name}: it cannot be loaded ({first_line(error)}): pip install cosmos_guardrail and"
            f" get its models, or name a class of your own; {LICENCE}"
        ) from error
    for method in ("to", "check_text_safety", "check_video_safety"):
        if not callable(getattr(checker, method, None)):
            raise BackendMisconfigured(f"safety_checker {name}: it has no method {method}")
    return checker


def build(options: CosmosOptions, reader: FrameReader | None) -> Cosmos:
    """Nothing is loaded yet."""
    return Cosmos(options, reader)


def figures(options: CosmosOptions) -> dict[str, Any]:
    """Its options, but for how the checkpoint gets here."""
    return {"options": options.model_dump(mode="json", exclude={"allow_download"})}
