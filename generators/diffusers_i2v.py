"""Any image-to-video pipeline of diffusers, by the name of its class: CogVideoX, LTX, HunyuanVideo 1.5, others.

The class is one that diffusers exports and whose call takes a picture, a prompt and a number of frames; nothing
else is imported by name. What it renders: `generators.diffusers_rules` and the options.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
from PIL import Image

from generators.checkpoints import folder_of, is_here, read, require_whole
from generators.diffusers_calls import (
    Steps,
    called,
    chosen_device,
    cpu_generator,
    fitting,
    of_size,
    start_picture,
    stepping,
    with_less_memory,
)
from generators.diffusers_classes import check_call, loaded, pipeline_class, require_libraries
from generators.diffusers_options import DiffusersI2vOptions, call_of
from generators.knobs import apply, begin_render, sampling
from generators.remote_window import window
from media.frames import FrameReader
from media.pictures import Frame, Frames
from orchestrator.errors import BackendFailed, BackendMisconfigured
from orchestrator.frame_counts import snap
from orchestrator.records import Capabilities, Shot, Size

__all__ = ["DiffusersI2v", "DiffusersI2vOptions", "build", "figures"]


class DiffusersI2v:
    """Implements orchestrator.ports.Generator. The pipeline is loaded at the first render and stays."""

    def __init__(self, options: DiffusersI2vOptions, reader: FrameReader | None) -> None:
        self._options = options
        self._reader = reader
        self._knobs = options
        self._pipeline: Any = None
        self._device = ""
        self.applied: list[str] = []  # what of the knobs was applied as it was loaded

    @property
    def capabilities(self) -> Capabilities:
        return self._options.capabilities()

    def render(
        self,
        shot: Shot,
        *,
        resume: str | None,
        checkpoint: Callable[[str], None],
        progress: Callable[[float], None],
        cancelled: Callable[[], bool],
    ) -> Frames:
        """(T, H, W, 3) uint8 RGB on the canvas, T snapped to the rule.

        Raises BackendFailed, BackendMisconfigured, JobCancelled.
        """
        start = start_picture(self._reader, shot)
        sampled = sampling(self._options, shot.denoising_steps, shot.guidance)
        steps = Steps(sampled.denoising_steps, progress, cancelled)
        steps.begin()
        self.prepare()
        pipeline = self._pipeline
        picture, on_canvas = self._placed(start, shot.canvas)

        def once() -> Frames:
            steps.begin()
            begin_render(pipeline, self._knobs, steps.total)
            return self._clip(pipeline, shot, picture, sampled.guidance, steps)

        frames, self._knobs = with_less_memory(pipeline, self._knobs, self._device, once)
        made = on_canvas(frames)
        progress(1.0)
        return made

    def check(self) -> None:
        """Whether the libraries and the checkpoint are there, whole. Raises BackendMisconfigured."""
        options = self._options
        require_libraries()
        if is_here(options.model) or not options.allow_download:
            require_whole(read(folder_of(options.model)))

    def prepare(self) -> None:
        """Load the pipeline, unless it is loaded. Raises BackendMisconfigured."""
        if self._pipeline is None:
            with fitting(self._options.model):
                self._pipeline = self._load()

    def _load(self) -> Any:
        """The pipeline with its knobs applied. Raises BackendMisconfigured."""
        kind = pipeline_class(self._options)
        check_call(kind, self._options)
        pipeline = loaded(kind, self._options.model, self._options, allow_download=self._options.allow_download)
        _check_parts(pipeline, self._options)
        self._device = chosen_device()
        self.applied = apply(pipeline, self._options, device=self._device)
        return pipeline

    def _placed(self, start: Frame, canvas: Size) -> tuple[Frame, Callable[[Frames], Frames]]:
        """What the pipeline is given, and how its frames come back onto the canvas."""
        if not self._options.frame_sizes:
            return start, lambda frames: of_size(frames, canvas)
        lies = window(canvas, self._options.frame_sizes, "pad")

        def back(frames: Frames) -> Frames:
            whole = of_size(frames, lies.frame_size)
            return np.stack([lies.canvas_frame(frame, start) for frame in whole])

        return lies.picture(start, "edge"), back

    def _clip(self, pipeline: Any, shot: Shot, picture: Frame, guidance: float, steps: Steps) -> Frames:
        """Raises BackendFailed for another number of frames than the rule says."""
        options = self._options
        num_frames = snap(shot.num_frames, self.capabilities)
        given: dict[str, Any] = {
            **call_of(options),
            "image": Image.fromarray(picture),
            "prompt": shot.prompt,
            options.frames_argument: num_frames,
            "num_inference_steps": steps.total,
            "generator": cpu_generator(shot.seed),
        }
        takes = inspect.signature(pipeline.__call__).parameters
        if options.fps_argument:
            given[options.fps_argument] = shot.fps
        if options.guidance_argument == "guider":
            pipeline.guider = pipeline.guider.new(guidance_scale=guidance)
        elif options.guidance_argument:
            given[options.guidance_argument] = guidance
        with ExitStack() as changed:
            if "height" in takes:
                given |= {"height": picture.shape[0], "width": picture.shape[1]}
            else:
                changed.enter_context(_own_size(pipeline))
            if "callback_on_step_end" in takes:
                given["callback_on_step_end"] = steps
            else:
                changed.enter_context(stepping(pipeline, steps))
            asked = f"{picture.shape[1]}x{picture.shape[0]}, {num_frames} frames"
            frames = called(pipeline, asked, **given)
        if len(frames) != num_frames:
            raise BackendFailed(
                f"{options.pipeline} rendered {len(frames)} frames instead of {num_frames}: correct frame_step,"
                " frame_offset, min_frames and max_frames"
            )
        return frames


@contextmanager
def _own_size(pipeline: Any) -> Generator[None]:
    """HunyuanVideo 1.5 takes no size and cuts the picture to one of a list. Here it keeps the picture's."""
    processor = pipeline.video_processor
    if not hasattr(processor, "calculate_default_height_width"):
        yield
        return

    def as_given(*, height: int, width: int, target_size: int) -> tuple[int, int]:
        del target_size
        return height, width

    processor.calculate_default_height_width = as_given
    try:
        yield
    finally:
        del processor.calculate_default_height_width


def _check_parts(pipeline: Any, options: DiffusersI2vOptions) -> None:
    """Raise BackendMisconfigured for a checkpoint that cannot be called as the options say."""
    if options.guidance_argument == "guider" and "guidance_scale" not in getattr(
        getattr(pipeline, "guider", None), "config", {}
    ):
        raise BackendMisconfigured(
            f"guidance_argument: {options.pipeline} of {options.model} has no guider with a guidance_scale"
        )
    config: Any = getattr(getattr(pipeline, "transformer", None), "config", {})
    if config.get("use_learned_positional_embeddings") and options.pipeline.startswith("CogVideoX"):
        factor = pipeline.vae_scale_factor_spatial
        only = f"{config['sample_width'] * factor}x{config['sample_height'] * factor}"
        if [str(size) for size in options.frame_sizes] != [only]:
            raise BackendMisconfigured(
                f"{options.model} renders {only} alone, {config['sample_frames']} frames: set sizes = '{only}'"
                f" and max_frames = {config['sample_frames']}"
            )


def build(options: DiffusersI2vOptions, reader: FrameReader | None) -> DiffusersI2v:
    """Nothing is loaded yet."""
    return DiffusersI2v(options, reader)


def figures(options: DiffusersI2vOptions) -> dict[str, Any]:
    """Where the checkpoint comes from decides nothing; the rule and the knobs do."""
    return {
        "options": options.model_dump(mode="json", exclude={"allow_download"}),
        "call": call_of(options),
    }
