"""What a Gemini costs, how it is shown a clip, and the options of it; with the sources of both.

Prices: Google's list (ai.google.dev/gemini-api/docs/pricing), second-hand: those of 2.5 Pro and what Flash and
Flash-Lite read as others quoted them in 2026, the rest as remembered; set your own where they matter. US dollars
for a million tokens; a prompt of more than 200,000 tokens costs more, what is read from a cache a tenth.
A frame of video is 258 tokens, 66 at low resolution (ai.google.dev/gemini-api/docs/video-understanding).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, cast

from pydantic import Field, field_validator, model_validator

from cliploop.vendor_faults import variable, without_secrets
from cliploop.vendor_gemini import KEY_NAMES, Access
from orchestrator.errors import BackendMisconfigured
from orchestrator.records import Spend
from planners.vlm_options import VlmOptions

FPS_MAX = 24.0  # of what the API takes
LONG_PROMPT_TOKENS = 200_000


@dataclass(frozen=True)
class Prices:
    """US dollars for a million tokens; `long_` beyond LONG_PROMPT_TOKENS."""

    input: float
    output: float
    cached: float
    long_input: float
    long_output: float


PRICES: Mapping[str, Prices] = {
    "gemini-2.5-pro": Prices(1.25, 10.0, 0.125, 2.50, 15.0),
    "gemini-2.5-flash": Prices(0.30, 2.50, 0.03, 0.30, 2.50),
    "gemini-2.5-flash-lite": Prices(0.10, 0.40, 0.01, 0.10, 0.40),
}
_OPTION_OF = {
    "usd_per_million_input_tokens": "input",
    "usd_per_million_output_tokens": "output",
    "usd_per_million_cached_tokens": "cached",
    "usd_per_million_input_tokens_long": "long_input",
    "usd_per_million_output_tokens_long": "long_output",
}


class GeminiOptions(VlmOptions):
    """Which Gemini, how often a clip is looked at in a second, and where the API and its key are.

    Prices that are not given are the list's; given ones for input and output hold for long prompts too.
    """

    OPERATIONAL: ClassVar[frozenset[str]] = (
        VlmOptions.OPERATIONAL | {"inline_megabytes", "file_seconds", "file_poll_seconds"} | set(_OPTION_OF)
    )

    model: str = Field(default="gemini-2.5-pro", description="As the Gemini API names it.", min_length=1)
    max_output_tokens: int = Field(
        default=16384, ge=64, description="Of a reply, its thinking included; one that is cut is asked again."
    )
    thinking_budget: int | None = Field(
        default=None,
        ge=-1,
        description="Tokens that it may think before it answers, charged as output. -1: as many as it likes;"
        " 0: none, which 2.5 Pro refuses; left out: the model's default.",
    )
    video_fps: float = Field(
        default=8.0,
        gt=0,
        le=FPS_MAX,
        description="Frames of a clip that it looks at in a second, at most those that there are. Google's own"
        " default, 1, misses what is wrong for a moment.",
    )
    media_resolution: Literal["default", "low", "medium", "high"] = Field(
        default="default", description="In how many tokens it sees each picture and frame."
    )
    inline_megabytes: float = Field(
        default=20.0, gt=0, description="The largest request; beyond it clips are uploaded first, then deleted."
    )
    file_seconds: float = Field(default=60.0, gt=0, description="For Google to make an upload ready.")
    file_poll_seconds: float = Field(default=1.0, gt=0, le=30, description="Between two looks at an upload.")
    usd_per_million_cached_tokens: float = Field(default=0.0, ge=0, description="What its cache had already.")
    usd_per_million_input_tokens_long: float = Field(
        default=0.0, ge=0, description=f"Reading a prompt of more than {LONG_PROMPT_TOKENS:,} tokens."
    )
    usd_per_million_output_tokens_long: float = Field(default=0.0, ge=0, description="Answering such a prompt.")
    api_key_env: str = Field(
        default="",
        description=f"The environment variable with the key; empty: {KEY_NAMES[0]}, then {KEY_NAMES[1]}.",
    )
    base_url: str = Field(default="", description="Of the Gemini API; empty: Google's.")
    ca_file: str = Field(
        default="", description="Certificates (PEM) that HTTPS is verified by, beside the usual."
    )

    @field_validator("api_key_env")
    @classmethod
    def _variable(cls, name: str) -> str:
        return variable(name)

    @field_validator("base_url")
    @classmethod
    def _base_url(cls, text: str) -> str:
        return without_secrets(text) if text else text

    @model_validator(mode="before")
    @classmethod
    def _prices(cls, given: Any) -> Any:
        """Fill in what is not given, so that a job's frozen options say what it was charged by."""
        if not isinstance(given, dict):
            return given
        options = cast("dict[str, Any]", given)
        name = str(options.get("model", cls.model_fields["model"].default)).strip().removeprefix("models/")
        listed = PRICES.get(name)
        prices = {} if listed is None else {option: getattr(listed, of) for option, of in _OPTION_OF.items()}
        for option in ("usd_per_million_input_tokens", "usd_per_million_output_tokens"):
            if option in options:
                prices[f"{option}_long"] = options[option]
                if "input" in option:
                    prices["usd_per_million_cached_tokens"] = options[option]
        return {**prices, **options}

    @property
    def key_names(self) -> tuple[str, ...]:
        return (self.api_key_env,) if self.api_key_env else KEY_NAMES

    @property
    def access(self) -> Access:
        return Access("gemini", self.base_url, self.key_names, self.ca_file)

    def require_price(self) -> None:
        """Raise BackendMisconfigured for a model that is in no list and without a price."""
        given = {"usd_per_million_input_tokens", "usd_per_million_output_tokens"}
        if not given <= self.model_fields_set:
            raise BackendMisconfigured(
                f"gemini: no price is known of {self.model!r}: set usd_per_million_input_tokens and"
                " usd_per_million_output_tokens, or budgets would count nothing"
            )

    def charged(self, prompt_tokens: int, cached_tokens: int, output_tokens: int) -> Spend:
        """One call: `cached_tokens` are among those of the prompt; thinking is output."""
        long = prompt_tokens > LONG_PROMPT_TOKENS
        reading = self.usd_per_million_input_tokens_long if long else self.usd_per_million_input_tokens
        writing = self.usd_per_million_output_tokens_long if long else self.usd_per_million_output_tokens
        cached_share = reading / (self.usd_per_million_input_tokens or 1.0)
        cached = min(cached_tokens, prompt_tokens)
        usd = (prompt_tokens - cached) * reading + output_tokens * writing
        usd += cached * self.usd_per_million_cached_tokens * cached_share
        return Spend(vlm_calls=1, vlm_tokens=prompt_tokens + output_tokens, usd=usd / 1e6)
