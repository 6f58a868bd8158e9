"""What the image-to-video pipelines of diffusers render and how each is called, by class: sizes, frames, rates.

From the sources of diffusers 0.42 (each pipeline's `check_inputs`, `__call__` and example) and, for what a model
was trained on, its model card. Prompts are limited in tokens: four characters are counted for one.
Knows no checkpoint; where one differs from its class, the options of `generators.diffusers_i2v` say so.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue

from orchestrator.records import Record

_HD = 1280 * 720


class Rule(Record):
    """How one class of pipelines is used."""

    size_multiple: int = Field(ge=1, le=512)
    min_side: int = Field(default=256, ge=1)
    max_side: int = Field(default=1280, ge=1)
    max_pixels: int = Field(default=_HD, ge=1)
    frame_step: int = Field(ge=1)
    frame_offset: int = Field(default=1, ge=0)
    min_frames: int = Field(ge=2)
    max_frames: int = Field(ge=2)
    fps: float = Field(ge=1, le=240)
    prompt_chars: int = Field(ge=1)
    vae_dtype: Literal["float32", "same"] = "float32"
    """`same` where the picture is given to the VAE in the text encoder's or transformer's format."""

    frames_argument: str = "num_frames"
    guidance_argument: str = "guidance_scale"
    """Which argument of the call the guidance is; `guider`: the pipeline's own part of that name has it."""

    fps_argument: str = ""
    """Which argument of the call the frame rate is, where the model is told."""

    call: dict[str, JsonValue] = Field(default_factory=dict)
    """Arguments that every call has."""


def _by_4(**given: object) -> Rule:
    """Frames 4k + 1, sides in multiples of 16: most of them."""
    return Rule.model_validate({"size_multiple": 16, "frame_step": 4, "min_frames": 5, "fps": 24, **given})


RULES: dict[str, Rule] = {
    # 8k + 1: its VAE decodes latents in pairs, and an even number of them gives other frames than were asked for.
    # As CogVideoX1.5; CogVideoX-5b-I2V renders 720x480 alone, 49 frames at 8 a second.
    "CogVideoXImageToVideoPipeline": Rule(
        size_multiple=16,
        max_side=1360,
        max_pixels=1360 * 768,
        frame_step=8,
        min_frames=9,
        max_frames=161,
        fps=16,
        prompt_chars=4 * 226,
        vae_dtype="same",
    ),
    "LTXImageToVideoPipeline": Rule(
        size_multiple=32,
        max_pixels=1280 * 736,
        frame_step=8,
        min_frames=9,
        max_frames=257,
        fps=24,
        prompt_chars=4 * 128,
        vae_dtype="same",
        fps_argument="frame_rate",
    ),
    "LTX2ImageToVideoPipeline": Rule(
        size_multiple=32,
        max_pixels=1280 * 736,
        frame_step=8,
        min_frames=9,
        max_frames=481,
        fps=24,
        prompt_chars=4 * 1024,
        vae_dtype="same",
        fps_argument="frame_rate",
    ),
    "HunyuanVideoImageToVideoPipeline": _by_4(max_frames=129, prompt_chars=4 * 256),
    # As the 480p checkpoints, whose sizes have 640² pixels at most; those of 720p have 960².
    "HunyuanVideo15ImageToVideoPipeline": _by_4(
        max_frames=121, max_pixels=640 * 640, prompt_chars=4 * 1000, guidance_argument="guider"
    ),
    "HunyuanSkyreelsImageToVideoPipeline": _by_4(
        max_frames=97, max_pixels=960 * 544, prompt_chars=4 * 256, guidance_argument="true_cfg_scale"
    ),
    "SkyReelsV2ImageToVideoPipeline": _by_4(max_frames=121, prompt_chars=4 * 512),
    "Kandinsky5I2VPipeline": _by_4(max_frames=121, max_pixels=768 * 512, prompt_chars=4 * 512, vae_dtype="same"),
    "SanaImageToVideoPipeline": _by_4(
        size_multiple=32,
        max_frames=81,
        max_pixels=832 * 480,
        fps=16,
        prompt_chars=4 * 300,
        frames_argument="frames",
        call={"use_resolution_binning": False},  # it would render another size and stretch it
    ),
    "MotifVideoImage2VideoPipeline": _by_4(
        max_frames=121,
        max_pixels=1280 * 736,
        prompt_chars=4 * 512,
        vae_dtype="same",
        guidance_argument="guider",
    ),
}

# Every class must have these said of it, here or in its options.
MUST_BE_KNOWN = ("size_multiple", "frame_step", "frame_offset", "min_frames", "max_frames", "fps", "prompt_chars")
