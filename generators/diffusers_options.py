"""Options of `diffusers_i2v`: which pipeline, which checkpoint, and what is otherwise than its class's rule.

An option that is not given has the class's own value, if `generators.diffusers_rules` knows the class.
"""

from __future__ import annotations

from typing import Any, cast

from pydantic import Field, JsonValue, field_validator, model_validator

from generators.diffusers_rules import MUST_BE_KNOWN, RULES, Rule
from generators.knob_options import Knobs
from generators.openai_videos_options import sizes_of
from orchestrator.faults import suggest
from orchestrator.records import Capabilities, Size

# What a shot says, or what this backend needs for itself.
TAKEN = {
    *("image", "video", "prompt", "height", "width", "num_frames", "frames", "num_inference_steps"),
    *("generator", "latents", "output_type", "return_dict", "num_videos_per_prompt"),
    *("callback_on_step_end", "callback_on_step_end_tensor_inputs"),
}
OTHER_TYPES = {"Wan": "wan", "Cosmos": "cosmos"}  # by what the class's name begins with


class DiffusersI2vOptions(Knobs, Rule):
    """A pipeline class of diffusers that turns a picture and a prompt into a video, and its checkpoint."""

    pipeline: str = Field(pattern=r"^[A-Z][A-Za-z0-9_]*$")
    """The class's name in diffusers, such as `LTXImageToVideoPipeline`."""

    model: str = Field(min_length=1)
    """The checkpoint: a folder in diffusers' layout, or the id of a hub repository."""

    allow_download: bool = False
    """Load from the hub what is not in the local cache. Otherwise `cliploop models pull` does that."""

    chainable: bool = True
    """`false` for a model that re-imagines the start picture: its clips are not gone on from."""

    sizes: str = ""
    """The only sizes that the checkpoint renders, such as `720x480`: a canvas is padded into one of them."""

    @field_validator("sizes")
    @classmethod
    def _sizes(cls, text: str) -> str:
        sizes_of(text)
        return text

    @model_validator(mode="before")
    @classmethod
    def _ruled(cls, given: Any) -> Any:
        """What is not given is as the class's rule says. Raises ValueError for a class without one."""
        if not isinstance(given, dict):
            return given
        said = cast("dict[str, Any]", given)
        name = said.get("pipeline")
        if not isinstance(name, str):
            raise ValueError("pipeline must be the name of a class in diffusers, such as LTXImageToVideoPipeline")
        for prefix, kind in OTHER_TYPES.items():
            if name.startswith(prefix):
                raise ValueError(f"{name} has a backend of its own: set type = {kind!r} and leave pipeline out")
        if name in RULES:
            return {**RULES[name].model_dump(), **said}
        missing = [option for option in MUST_BE_KNOWN if option not in said]
        if missing:
            meant = suggest(name, RULES).partition("known:")[0]
            raise ValueError(
                f"of the pipeline {name!r} nothing is known beforehand{meant} or give {', '.join(missing)} too"
            )
        return said

    @model_validator(mode="after")
    def _consistent(self) -> DiffusersI2vOptions:
        taken = TAKEN | {self.guidance_argument, self.fps_argument, self.frames_argument}
        for name in self.call:
            if name in taken:
                raise ValueError(f"call.{name} is what a shot says, or this backend's own: leave it out")
        if self.max_side < self.min_side:
            raise ValueError("max_side cannot be less than min_side")
        most = self.frame_offset + (self.max_frames - self.frame_offset) // self.frame_step * self.frame_step
        if most < self.min_frames:
            raise ValueError("frame_step has no number of frames between min_frames and max_frames")
        return self

    @property
    def frame_sizes(self) -> list[Size]:
        """The only sizes that it renders; empty: any that its rule allows."""
        return sizes_of(self.sizes)

    def capabilities(self) -> Capabilities:
        """By the rule. A canvas that is padded into one of the model's sizes may have any size within."""
        sizes = self.frame_sizes
        return Capabilities(
            name=f"{self.pipeline.removesuffix('Pipeline')} ({self.model})",
            size_multiple=1 if sizes else self.size_multiple,
            min_side=min([self.min_side, *(min(size.width, size.height) for size in sizes)]),
            max_side=max(max(size.width, size.height) for size in sizes) if sizes else self.max_side,
            max_pixels=max(size.width * size.height for size in sizes) if sizes else self.max_pixels,
            frame_step=self.frame_step,
            frame_offset=self.frame_offset,
            min_frames=self.min_frames,
            max_frames=self.max_frames,
            fps=self.fps,
            prompt_chars=self.prompt_chars,
            chainable=self.chainable,
        )


def call_of(options: DiffusersI2vOptions) -> dict[str, JsonValue]:
    """The arguments that every call has: the class's, then the options'."""
    rule = RULES.get(options.pipeline)
    return {**(rule.call if rule is not None else {}), **options.call}
