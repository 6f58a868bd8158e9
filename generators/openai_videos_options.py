"""Where a server of `POST /v1/videos` is, what it takes and what it renders: it does not say so itself."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from cliploop.vendor_faults import variable, without_secrets
from generators.remote_clip import rule
from generators.remote_window import Aspect, Fill
from orchestrator.records import Record, Size

POLL_AFTER = "openai-poll-after-ms"


class OpenAIVideosOptions(Record):
    """Where the server is, what it takes and what it renders."""

    # What may change while a job waits: none of it decides what is rendered.
    OPERATIONAL: ClassVar[frozenset[str]] = frozenset(
        {"base_url", "api_key_env", "ca_file", "poll_seconds", "limit_seconds", "cancel_seconds"}
        | {"request_seconds", "max_mebibytes"}
    )

    base_url: str = Field(description="Of the API, with its version: http://gpu-box:8091/v1.", min_length=1)
    model: str = Field(default="", description="As the server names it; empty: its only or default one.")
    dialect: Literal["diffusion", "openai", "cliploop"] = Field(
        default="diffusion",
        description="Which fields are sent beside prompt, picture, model and size. diffusion (vLLM-Omni, SGLang,"
        " LightX2V): num_frames, fps, seed, num_inference_steps, guidance_scale. openai: seconds alone. cliploop:"
        " seconds and seed, for one plain render without a loop of its own.",
    )
    api_key_env: str = Field(default="OPENAI_API_KEY", description="The environment variable that holds the key.")
    ca_file: str = Field(
        default="", description="Certificates (PEM) that HTTPS is verified by, beside the usual."
    )
    sizes: str = Field(default="", description="The only frame sizes it renders, such as 1280x720,720x1280.")
    aspect: Aspect = Field(
        default="pad",
        description="With `sizes`: pad the canvas up to a frame and cut it out again, or crop its middle to the"
        " frame's shape, around which the start picture stands still. Never stretched.",
    )
    fill: Fill = Field(default="edge", description="What it is padded with: its edge's pixels, or a colour.")
    seconds: str = Field(default="", description="The only durations it renders, such as 4,8,12.")
    fps: float = Field(default=16.0, ge=1, le=120, description="Frames a second that are asked for.")
    size_multiple: int = Field(default=16, ge=1, description="Sides are multiples of this. Unused with `sizes`.")
    min_side: int = Field(default=64, ge=1, description="Pixels.")
    max_side: int = Field(default=1280, ge=16, description="Pixels.")
    max_pixels: int = Field(default=1280 * 720, ge=256, description="Of a frame.")
    frame_step: int = Field(default=4, ge=1, description="Frame counts are step·k + offset.")
    frame_offset: int = Field(default=1, ge=0, description="See frame_step.")
    min_frames: int = Field(default=5, ge=2, description="Of a clip. Unused with `seconds`.")
    max_frames: int = Field(default=81, ge=2, description="Of a clip. Unused with `seconds`.")
    prompt_chars: int = Field(default=4000, ge=1, description="The longest prompt it takes.")
    chainable: bool = Field(default=True, description="False where the server re-imagines the start picture.")
    usd_per_video_second: float = Field(default=0.0, ge=0, description="What a second of video costs.")
    poll_seconds: float = Field(
        default=2.0, gt=0, le=60, description=f"Between two looks, unless the server says {POLL_AFTER}."
    )
    limit_seconds: float = Field(default=1700.0, gt=0, description="After which a render is given up.")
    cancel_seconds: float = Field(
        default=15.0, ge=0, description="How long a cancelled job waits for the server to stop its render."
    )
    request_seconds: float = Field(default=60.0, gt=0, description="For one exchange with the server.")
    max_mebibytes: int = Field(default=512, ge=1, description="The largest video that is loaded.")

    @field_validator("api_key_env")
    @classmethod
    def _variable(cls, name: str) -> str:
        return variable(name)

    @field_validator("base_url")
    @classmethod
    def _base_url(cls, text: str) -> str:
        return without_secrets(text)

    @field_validator("sizes")
    @classmethod
    def _sizes(cls, text: str) -> str:
        sizes_of(text)
        return text

    @field_validator("seconds")
    @classmethod
    def _seconds(cls, text: str) -> str:
        if text:
            rule(_numbers(text))
        return text

    @model_validator(mode="after")
    def _consistent(self) -> OpenAIVideosOptions:
        if self.max_side < self.min_side:
            raise ValueError("max_side cannot be less than min_side")
        first = self.frame_offset + -(-(self.min_frames - self.frame_offset) // self.frame_step) * self.frame_step
        if first > self.max_frames:
            raise ValueError("frame_step has no number of frames between min_frames and max_frames")
        return self

    @property
    def frame_sizes(self) -> list[Size]:
        """The only ones; empty: any."""
        return sizes_of(self.sizes)

    @property
    def durations(self) -> list[int]:
        """The only ones, in seconds; empty: any."""
        return _numbers(self.seconds) if self.seconds else []


def sizes_of(text: str) -> list[Size]:
    """`1280x720,720x1280` as sizes. Raises ValueError."""
    found: list[Size] = []
    for part in filter(None, (each.strip() for each in text.split(","))):
        width, _, height = part.partition("x")
        sides = [side if side.isascii() and side.isdigit() and len(side) < 6 else "0" for side in (width, height)]
        if not all(map(int, sides)):
            raise ValueError("sizes are written like 1280x720,720x1280")
        found.append(Size(width=int(width), height=int(height)))
    return found


def _numbers(text: str) -> list[int]:
    parts = [each.strip() for each in text.split(",")]
    if not all(part.isascii() and part.isdigit() and len(part) < 6 and int(part) for part in parts):
        raise ValueError("durations are whole seconds, written like 4,8,12")
    return [int(part) for part in parts]
