"""Where a server of `POST /v1/chat/completions` is, and how clips are shown to it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue, field_validator

from cliploop.vendor_faults import variable, without_secrets
from planners.vlm_options import VlmOptions

_OURS = ("messages", "model", "stream", "n")


class OpenAICompatibleOptions(VlmOptions):
    """Qwen3.5 through vLLM or SGLang, or any other model behind such a server."""

    base_url: str = Field(description="Of the API, with its version: http://gpu-box:8000/v1.", min_length=1)
    api_key_env: str = Field(default="OPENAI_API_KEY", description="The environment variable that holds the key.")
    ca_file: str = Field(
        default="", description="Certificates (PEM) that HTTPS is verified by, beside the usual."
    )
    video: Literal["frames", "video_url", "auto"] = Field(
        default="frames",
        description="How a clip is shown: as frames that are chosen here; as a whole mp4, of which the server"
        " takes what it likes; auto: as mp4 where the server takes one, else as frames.",
    )
    frames_per_second: float = Field(
        default=1.0, gt=0, le=60, description="How many frames of a second are shown."
    )
    min_frames: int = Field(
        default=8, ge=2, description="Of a clip, first and last among them, if it has so many."
    )
    max_frames: int = Field(default=64, ge=2, description="Of a clip.")
    max_image_side: int = Field(
        default=1024,
        ge=64,
        description="Pixels: larger pictures are reduced. A sheet of frames may be twice that.",
    )
    max_images: int = Field(
        default=0, ge=0, description="In one request. 0: as many as the server takes, which is found out."
    )
    guided_json: bool = Field(
        default=True, description="Ask the server to keep to the reply's schema, unless it refuses to."
    )
    thinking: Literal["default", "on", "off"] = Field(
        default="default", description="Whether a model that can think first does so (enable_thinking)."
    )
    extra_body: dict[str, JsonValue] = Field(
        default_factory=dict, description="More fields of each request, such as {top_k = 20}."
    )

    @field_validator("api_key_env")
    @classmethod
    def _variable(cls, name: str) -> str:
        return variable(name)

    @field_validator("base_url")
    @classmethod
    def _base_url(cls, text: str) -> str:
        return without_secrets(text)

    @field_validator("extra_body")
    @classmethod
    def _extra_body(cls, fields: dict[str, JsonValue]) -> dict[str, JsonValue]:
        for name in _OURS:
            if name in fields:
                raise ValueError(f"must not hold {name!r}, which is set for each request")
        return fields
