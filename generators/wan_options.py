"""The options of `wan`: the knobs of every diffusers pipeline, and what Wan has of its own."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from generators.knob_lora import PRESETS
from generators.knob_options import Knobs
from generators.wan_families import Family

PROMPT_TOKENS = 512  # of a prompt at most: what its text encoder was trained with


class WanOptions(Knobs):
    """A checkpoint of Wan, and what is otherwise than its family's own."""

    model: str = Field(default="Wan-AI/Wan2.2-I2V-A14B-Diffusers", min_length=1)
    """The checkpoint: a folder in diffusers' layout, or the id of a hub repository."""

    revision: str | None = None
    """Of the hub repository; its newest unless given. Unused with a folder."""

    family: Literal["auto"] | Family = "auto"
    """Which Wan model it is, where a repository's name does not say and its files are not on this machine."""

    allow_download: bool = False
    """Load from the hub what is not in the local cache. Otherwise `cliploop models pull` does that."""

    negative_prompt: str = ""
    """What should not be seen."""

    guidance_low: float | None = Field(default=None, ge=0, le=30)
    """Guidance of the expert for low noise; the request's unless given. Of A14B only."""

    flow_shift: float | None = Field(default=None, gt=0, le=30)
    """How far sampling dwells on high noise; the checkpoint's unless given. Its authors: 3 at 480p, 5 at 720p."""

    min_side: int = Field(default=256, ge=16)
    """Pixels."""

    max_side: int | None = Field(default=None, ge=16)
    """Pixels; the family's unless given."""

    max_pixels: int | None = Field(default=None, ge=256)
    """Of a frame; the family's unless given: 832 x 480, or 1280 x 704 for TI2V 5B."""

    max_frames: int | None = Field(default=None, ge=5)
    """Of a clip; the family's unless given: 81, or 121 for TI2V 5B."""

    chainable: bool = True
    """`false` if its clips should not be gone on from."""

    @model_validator(mode="after")
    def _consistent(self) -> WanOptions:
        preset = PRESETS.get(self.lora_preset)
        if preset is not None and self.flow_shift is not None:
            raise ValueError(f"flow_shift and lora_preset {self.lora_preset} contradict: leave one of them out")
        if preset is not None and self.guidance_low is not None:
            raise ValueError(f"guidance_low and lora_preset {self.lora_preset} contradict: leave one of them out")
        return self
