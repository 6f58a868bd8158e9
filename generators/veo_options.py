"""What Veo 3.1 renders and what that costs, and the options of it; with the sources of both.

Sizes, rate and durations: Google's guide to Veo in the Gemini API (ai.google.dev/gemini-api/docs/video), as its
readers quote it in 2026: 16:9 and 9:16, 24 frames a second, 4, 6 or 8 s at 720p and 8 s alone at 1080p. Its 4k is
left out: the frames of one clip would take 5 GB.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar, Literal

from pydantic import Field, field_validator

from cliploop.vendor_faults import variable, without_secrets
from cliploop.vendor_gemini import KEY_NAMES
from generators.remote_clip import rule
from generators.remote_window import Aspect, Fill
from orchestrator.errors import BackendMisconfigured
from orchestrator.records import Capabilities, Record, Size

FPS = 24.0
DURATIONS = {"720p": [4, 6, 8], "1080p": [8]}
LANDSCAPE = {"720p": Size(width=1280, height=720), "1080p": Size(width=1920, height=1080)}
_TIER = re.compile(r"(?:models/)?veo-3\.1-(?:(fast|lite)-)?generate(?:-\w+)*")


@dataclass(frozen=True)
class Prices:
    """US dollars for each second of video, with sound, by resolution."""

    usd: dict[str, float]
    source: str


_PAGE = "ai.google.dev/gemini-api/docs/pricing"
PRICES = {
    "": Prices({"720p": 0.40, "1080p": 0.40}, f"{_PAGE}, read 2026-09-20"),
    "fast": Prices({"720p": 0.10, "1080p": 0.12}, f"{_PAGE}, as quoted by others in 2026-08"),
    "lite": Prices({"720p": 0.05, "1080p": 0.08}, f"{_PAGE}, as quoted by others in 2026-08"),
}


class VeoOptions(Record):
    """Which Veo, how a canvas lies in its frames, and how long it is waited for."""

    # What may change while a job waits: none of it decides what is rendered.
    OPERATIONAL: ClassVar[frozenset[str]] = frozenset(
        {
            "base_url",
            "api_key_env",
            "ca_file",
            "poll_seconds",
            "limit_seconds",
            "request_seconds",
            "max_mebibytes",
        }
    )

    model: str = Field(
        default="veo-3.1-generate-preview", description="As the Gemini API names it.", min_length=1
    )
    resolution: Literal["720p", "1080p"] = Field(
        default="720p", description="At 1080p every clip lasts eight seconds."
    )
    aspect: Aspect = Field(
        default="pad",
        description="Veo's frames are 16:9 or 9:16, whichever shows more of the canvas. pad: the canvas as large"
        " as it goes, the rest filled and cut off again. crop: the canvas' middle alone is rendered; around it"
        " the start picture stands still. Never stretched.",
    )
    fill: Fill = Field(default="edge", description="What it is padded with: its edge's pixels, or a colour.")
    negative_prompt: str = Field(default="", description="What should not be seen.")
    person_generation: Literal["", "allow_adult", "dont_allow"] = Field(
        default="", description="Whether persons may be rendered; empty: Google's default."
    )
    api_key_env: str = Field(
        default="",
        description=f"The environment variable with the key; empty: {KEY_NAMES[0]}, then {KEY_NAMES[1]}.",
    )
    base_url: str = Field(default="", description="Of the Gemini API; empty: Google's.")
    ca_file: str = Field(
        default="", description="Certificates (PEM) that HTTPS is verified by, beside the usual."
    )
    usd_per_video_second: float | None = Field(
        default=None, ge=0, description="What a second costs; empty: by the list, where that has the model."
    )
    chainable: bool = Field(default=True, description="False: its clips are not gone on from.")
    filtered_retries: int = Field(
        default=1,
        ge=0,
        le=5,
        description="How often a filtered or empty render, which costs nothing, is repeated.",
    )
    poll_seconds: float = Field(default=10.0, gt=0, le=60, description="Between two looks.")
    limit_seconds: float = Field(default=1700.0, gt=0, description="After which a render is given up.")
    request_seconds: float = Field(default=60.0, gt=0, description="For one exchange with the server.")
    max_mebibytes: int = Field(default=512, ge=1, description="The largest video that is loaded.")

    @field_validator("api_key_env")
    @classmethod
    def _variable(cls, name: str) -> str:
        return variable(name)

    @field_validator("base_url")
    @classmethod
    def _base_url(cls, text: str) -> str:
        return without_secrets(text) if text else text

    @property
    def key_names(self) -> tuple[str, ...]:
        return (self.api_key_env,) if self.api_key_env else KEY_NAMES

    @property
    def durations(self) -> list[int]:
        """In seconds."""
        return DURATIONS[self.resolution]

    @property
    def frame_sizes(self) -> list[Size]:
        """16:9 and 9:16."""
        wide = LANDSCAPE[self.resolution]
        return [wide, Size(width=wide.height, height=wide.width)]

    def price(self) -> tuple[float, str]:
        """Dollars a second, and who says so. Raises BackendMisconfigured for a model that is in no list."""
        if self.usd_per_video_second is not None:
            return self.usd_per_video_second, "the option usd_per_video_second"
        tier = _TIER.fullmatch(self.model)
        if tier is None:
            raise BackendMisconfigured(
                f"veo: no price is known of {self.model!r}: set usd_per_video_second, or"
                " budgets would count nothing"
            )
        listed = PRICES[tier[1] or ""]
        return listed.usd[self.resolution], listed.source

    def capabilities(self) -> Capabilities:
        """A clip of n frames is charged as n / 24 s, counted as (n − 1) / 24 s: the price makes up for it."""
        step, offset, fewest, most = rule([round(seconds * FPS) for seconds in self.durations])
        wide = LANDSCAPE[self.resolution]
        return Capabilities(
            name=f"veo ({self.model}, {self.resolution})",
            size_multiple=1,
            min_side=64,
            max_side=wide.width,
            max_pixels=wide.width * wide.height,
            frame_step=step,
            frame_offset=offset,
            min_frames=fewest,
            max_frames=most,
            fps=FPS,
            prompt_chars=4000,  # its limit is 1,024 tokens
            chainable=self.chainable,
            seeded=False,  # the Gemini API takes no seed
            remote=True,
            one_shot_strong=True,
            usd_per_video_second=self.price()[0] * fewest / (fewest - 1),
        )
