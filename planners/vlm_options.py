"""Options that every vision-language model has, whoever serves it."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field, field_validator

from orchestrator.records import Record, Spend


class VlmOptions(Record):
    """Which model, how it is asked, what it costs, and how often it may be asked."""

    # What may change while a job waits: none of it decides what the model is shown or told.
    OPERATIONAL: ClassVar[frozenset[str]] = frozenset(
        {"timeout_seconds", "requests_per_minute", "tokens_per_minute", "prompts", "base_url", "api_key_env"}
        | {"ca_file", "usd_per_million_input_tokens", "usd_per_million_output_tokens"}
    )

    model: str = Field(description="As its vendor or server names it.", min_length=1)
    temperature: float | None = Field(
        default=None, ge=0, le=2, description="In place of the job's vlm_temperature (0.2)."
    )
    max_output_tokens: int = Field(
        default=8192, ge=64, description="Of a reply, its thinking included; one that is cut is asked again."
    )
    timeout_seconds: float = Field(default=120.0, gt=0, le=1800, description="For one ask, from end to end.")
    requests_per_minute: int = Field(default=0, ge=0, description="Of all workers together; 0: no limit.")
    tokens_per_minute: int = Field(default=0, ge=0, description="Of all workers together; 0: no limit.")
    usd_per_million_input_tokens: float = Field(default=0.0, ge=0, description="What reading costs.")
    usd_per_million_output_tokens: float = Field(
        default=0.0, ge=0, description="What writing costs, thinking included."
    )
    prompts: str = Field(
        default="", description="A folder of prompts (planner.md, …) in place of those that are shipped."
    )
    few_shot: bool = Field(default=False, description="Whether the prompts' worked examples are sent along.")

    @field_validator("model")
    @classmethod
    def _model(cls, text: str) -> str:
        if not text.strip() or not text.isprintable():
            raise ValueError("must be a model's name, in printable characters")
        return text.strip()

    def spend(self, input_tokens: int, output_tokens: int) -> Spend:
        """One call of so many tokens; thinking counts as output."""
        usd = input_tokens * self.usd_per_million_input_tokens
        usd += output_tokens * self.usd_per_million_output_tokens
        return Spend(vlm_calls=1, vlm_tokens=input_tokens + output_tokens, usd=usd / 1e6)
