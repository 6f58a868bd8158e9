"""Wan as image-to-video, from diffusers: Wan2.2 A14B and VBVR-Wan2.2 (two experts), TI2V 5B, Wan2.1.

Which model a checkpoint is, its own files say (`generators.wan_families`); a mixed, cut or foreign one is refused
before anything is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from generators.checkpoints import folder_of, is_here, read, require_whole
from generators.diffusers_calls import (
    Steps,
    called,
    called_many,
    chosen_device,
    cpu_generator,
    fitting,
    free_memory,
    is_out_of_memory,
    of_size,
    start_picture,
    with_less_memory,
)
from generators.diffusers_classes import diffusers_library, loaded, require_libraries
from generators.encoders import whole_encoders
from generators.knobs import apply, begin_render, sampling
from generators.wan_families import TRAITS, Family, Traits, family_of, told
from generators.wan_options import PROMPT_TOKENS, WanOptions
from media.frames import FrameReader
from media.pictures import Frame, Frames
from orchestrator.errors import BackendFailed, BackendMisconfigured
from orchestrator.frame_counts import snap
from orchestrator.records import Capabilities, Shot

__all__ = ["Wan", "WanOptions", "build", "figures"]


class Wan:
    """Implements orchestrator.ports.Generator. The pipeline is loaded at the first render and stays."""

    def __init__(self, options: WanOptions, reader: FrameReader | None) -> None:
        self._options = options
        self._reader = reader
        self._knobs = options
        self._pipeline: Any = None
        self._device = ""
        self.applied: list[str] = []  # what of the knobs was applied as it was loaded

    @property
    def capabilities(self) -> Capabilities:
        """By the family. Raises BackendMisconfigured where that cannot be told."""
        options, traits = self._options, self._traits
        return Capabilities(
            name=f"{traits.title} ({options.model})",
            size_multiple=traits.size_multiple,
            min_side=options.min_side,
            max_side=options.max_side or traits.max_side,
            max_pixels=options.max_pixels or traits.max_pixels,
            frame_step=4,
            frame_offset=1,
            min_frames=5,
            max_frames=options.max_frames or traits.max_frames,
            fps=traits.fps,
            prompt_chars=4 * PROMPT_TOKENS,
            chainable=options.chainable,
        )

    @property
    def _traits(self) -> Traits:
        options = self._options
        family = options.family
        return TRAITS[family_of(options.model, options.revision) if family == "auto" else family]

    def render(
        self,
        shot: Shot,
        *,
        resume: str | None,
        checkpoint: Callable[[str], None],
        progress: Callable[[float], None],
        cancelled: Callable[[], bool],
    ) -> Frames:
        """(T, H, W, 3) uint8 RGB on the canvas, T snapped to 4k + 1.

        Raises BackendFailed, BackendMisconfigured, JobCancelled.
        """
        return self.render_many([shot], progress=progress, cancelled=cancelled)[0]

    def render_many(
        self, shots: Sequence[Shot], *, progress: Callable[[float], None], cancelled: Callable[[], bool]
    ) -> list[Frames]:
        """A clip of each shot, in one call: they may differ in their seeds alone. Raises as `render`, ValueError.

        Memory grows with their number: where it does not suffice, half of them are rendered, then the others. On
        one machine a clip is the same as if it were rendered alone, but for what batched arithmetic rounds
        otherwise.
        """
        shot = _alike(shots)
        start = start_picture(self._reader, shot)
        sampled = sampling(self._options, shot.denoising_steps, shot.guidance)
        low = self._guidance_low(sampled.guidance)
        steps = Steps(sampled.denoising_steps, progress, cancelled)
        steps.begin()
        self.prepare()
        pipeline = self._pipeline
        given: dict[str, Any] = {
            **self._call(shot, start),
            **low,
            "guidance_scale": sampled.guidance,
            "num_inference_steps": steps.total,
            "callback_on_step_end": steps,
        }
        seeds = [each.seed for each in shots]

        def begin() -> None:
            steps.begin()
            begin_render(pipeline, self._knobs, steps.total)

        def once() -> Frames:
            return _clips(pipeline, seeds, given, begin)

        clips, self._knobs = with_less_memory(pipeline, self._knobs, self._device, once)
        for frames in clips:
            _require_length(of_size(frames, shot.canvas), given["num_frames"])
        progress(1.0)
        return list(clips)

    def _call(self, shot: Shot, start: Frame) -> dict[str, Any]:
        given: dict[str, Any] = {
            "image": Image.fromarray(start),
            "prompt": shot.prompt,
            "height": shot.canvas.height,
            "width": shot.canvas.width,
            "num_frames": snap(shot.num_frames, self.capabilities),
            "max_sequence_length": PROMPT_TOKENS,
        }
        if self._options.negative_prompt:
            given["negative_prompt"] = self._options.negative_prompt
        return given

    def _guidance_low(self, guidance: float) -> dict[str, float]:
        """The second expert's argument. Raises BackendMisconfigured where it would do nothing."""
        low = self._options.guidance_low
        if low is None:
            return {}
        if self._traits.experts == 1:
            raise BackendMisconfigured(f"guidance_low: {self._traits.title} has one expert: leave it out")
        if guidance <= 1 < low:
            raise BackendMisconfigured(
                f"guidance_low {low:g}: a guidance of {guidance:g} turns it off for both experts: leave"
                " guidance_low out, or ask for a guidance above 1"
            )
        return {"guidance_scale_2": low}

    def prepare(self) -> None:
        """Load the pipeline, unless it is loaded. Raises BackendMisconfigured."""
        if self._pipeline is None:
            with fitting(self._options.model):
                self._pipeline = self._load()

    def check(self) -> None:
        """Whether the libraries and the checkpoint are there, whole. Raises BackendMisconfigured."""
        options = self._options
        require_libraries()
        if is_here(options.model, options.revision) or not options.allow_download:
            folder = folder_of(options.model, revision=options.revision)
            self._require_family(folder)
            require_whole(read(folder))

    def _require_family(self, folder: Path) -> None:
        """Raise BackendMisconfigured where the files are not those of the model that was said."""
        found = told(read(folder), self._options.model)
        if not _same(found, self._traits):
            raise BackendMisconfigured(
                f"{folder}: its files are those of {TRAITS[found].title}, not of {self._traits.title}: set"
                f" family = '{found}'"
            )

    def _load(self) -> Any:
        """The pipeline with its knobs applied. Raises BackendMisconfigured."""
        options = self._options
        require_libraries()  # before anything is fetched
        folder = folder_of(options.model, revision=options.revision, allow_download=options.allow_download)
        self._require_family(folder)
        checkpoint = read(folder)
        require_whole(checkpoint)
        kind = diffusers_library().WanImageToVideoPipeline
        encoders = whole_encoders(checkpoint, options)
        pipeline = loaded(kind, str(folder), options, allow_download=False, **encoders)
        self._device = chosen_device()
        self.applied = [*_shifted(pipeline, options), *apply(pipeline, options, device=self._device)]
        return pipeline


def _same(found: Family, traits: Traits) -> bool:
    """Whether files of the one may be used as the other: those of Wan2.1's two are alike."""
    other = TRAITS[found]
    return (other.experts, other.image_encoder, other.fps) == (traits.experts, traits.image_encoder, traits.fps)


def _alike(shots: Sequence[Shot]) -> Shot:
    """The first, if they differ in nothing but their seeds. Raises ValueError."""
    if not shots:
        raise ValueError("no shots")
    first = shots[0]
    if any(shot.model_copy(update={"seed": first.seed}) != first for shot in shots):
        raise ValueError("shots that are rendered in one call may differ in their seeds alone")
    return first


def _clips(pipeline: Any, seeds: Sequence[int], given: dict[str, Any], begin: Callable[[], None]) -> Frames:
    """(N, T, H, W, 3) uint8 RGB, in as few calls as memory allows; `begin` comes before each."""
    what = f"{given['width']}x{given['height']}, {given['num_frames']} frames"
    begin()
    if len(seeds) == 1:
        return called(pipeline, what, **given, generator=cpu_generator(seeds[0]))[np.newaxis]
    many = {**given, "prompt": [given["prompt"]] * len(seeds)}  # not num_videos_per_prompt: Wan2.1 fails at it
    many["generator"] = [cpu_generator(seed) for seed in seeds]
    try:
        return called_many(pipeline, f"{len(seeds)} clips of {what}", len(seeds), **many)
    except Exception as error:
        if not is_out_of_memory(error):
            raise
    free_memory()  # outside the except block, where the error still holds tensors
    half = len(seeds) // 2
    return np.concatenate([_clips(pipeline, part, given, begin) for part in (seeds[:half], seeds[half:])])


def _require_length(frames: Frames, wanted: int) -> None:
    if len(frames) != wanted:
        raise BackendFailed(
            f"Wan rendered {len(frames)} frames instead of {wanted}: its VAE is not of its family"
        )


def _shifted(pipeline: Any, options: WanOptions) -> list[str]:
    """Set the flow shift that the options name, by whichever name the scheduler has for it; say so.

    Raises BackendMisconfigured.
    """
    if options.flow_shift is None:
        return []
    scheduler = pipeline.scheduler
    names = [name for name in ("flow_shift", "shift") if name in scheduler.config]
    if not names:
        raise BackendMisconfigured(
            f"flow_shift: {type(scheduler).__name__} of {options.model} has none: leave it out"
        )
    pipeline.scheduler = scheduler.from_config(scheduler.config, **{names[0]: options.flow_shift})
    return [f"{names[0]} {options.flow_shift:g}"]


def build(options: WanOptions, reader: FrameReader | None) -> Wan:
    """Nothing is loaded yet."""
    return Wan(options, reader)


def figures(options: WanOptions) -> dict[str, Any]:
    """Where the checkpoint comes from decides nothing; the family and the knobs do."""
    return {"options": options.model_dump(mode="json", exclude={"allow_download"})}
