"""Asks Gemini (2.5 Pro, unless another is named) through the google-genai client: clips as raw video.

Each ask is one connection and one request. Blocked replies, empty ones and those that were cut are told apart:
the first two are errors here, the third goes on with Google's word for it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import closing
from typing import Any

from pydantic import ValidationError

from cliploop.vendor_gemini import GeminiApi
from media.frames import FrameReader
from orchestrator.errors import (
    BackendMisconfigured,
    BackendUnavailable,
    CliploopError,
    ReplyBlocked,
    ReplyUnreadable,
)
from orchestrator.records import Spend
from planners import roles
from planners.gemini_media import Media, Projector, Shown, Uploads, too_large
from planners.gemini_options import GeminiOptions
from planners.questions import Question, Reply
from planners.replies import BLOCKED
from planners.roles import VlmModel

__all__ = ["Gemini", "GeminiOptions", "build", "figures"]
FRAMING_BYTES = 4096  # of a request, beside its parts, its schema and what the model is told to be
SEED_MAX = 2**31 - 1


class Gemini:
    """Implements planners.questions.VlmClient. Holds no connection between two asks."""

    def __init__(self, options: GeminiOptions, reader: FrameReader | None) -> None:
        self._options = options
        self._projector = None if reader is None else Projector(reader, options.video_fps)

    def check(self) -> None:
        """Whether the client and a key are there. Raises BackendMisconfigured."""
        GeminiApi(self._options.access, self._options.timeout_seconds).close()

    def ask(self, question: Question) -> Reply:
        """One request and its answer.

        Raises BackendUnavailable, BackendMisconfigured, ReplyBlocked, ReplyUnreadable.
        """
        if self._projector is None:
            raise BackendMisconfigured("this model was built without artifacts: it sees no picture")
        self._options.access.key()  # before a clip is encoded for nothing
        shown = self._projector.shown(question.parts)
        until = time.monotonic() + self._options.timeout_seconds
        api = GeminiApi(self._options.access, self._options.timeout_seconds, until=until)
        with closing(api), Uploads(api, self._options, until) as uploads:
            files = too_large(shown, self._other_bytes(question), self._options.inline_megabytes * 1e6)
            try:
                parts = [self._part(api, uploads, each, number in files) for number, each in enumerate(shown)]
                answer = self._answer(api, parts, question, until)
            except BackendUnavailable as error:
                if error.retry_after_seconds is None and time.monotonic() >= until - 0.05:
                    raise self._late(api) from None
                raise
        return self._read(answer, api, self._sent(question, shown, files))

    def _other_bytes(self, question: Question) -> int:
        return len(json.dumps([question.system, dict(question.schema)])) + FRAMING_BYTES

    def _part(self, api: GeminiApi, uploads: Uploads, shown: Shown, as_file: bool) -> Any:
        types = api.types
        if isinstance(shown, str):
            return types.Part(text=shown)
        metadata = None if shown.fps is None else types.VideoMetadata(fps=shown.fps)
        if as_file:
            file = uploads.add(shown)
            data = types.FileData(file_uri=file.uri, mime_type=shown.kind)
            return types.Part(file_data=data, video_metadata=metadata)
        return types.Part(inline_data=types.Blob(data=shown.data, mime_type=shown.kind), video_metadata=metadata)

    def _answer(self, api: GeminiApi, parts: list[Any], question: Question, until: float) -> Any:
        left = max(0.1, until - time.monotonic())
        config = self._config(api.types, question, left)
        contents = api.types.Content(role="user", parts=parts)

        def generate() -> Any:
            try:
                return api.client.models.generate_content(
                    model=self._options.model, contents=contents, config=config
                )
            except (ValidationError, TypeError, AttributeError, KeyError) as error:
                raise BackendUnavailable(
                    f"{api.place}: its answer is none of a Gemini API ({api.told(error)})"
                ) from None

        return api.guarded(
            generate,
            asking=True,
            refused=lambda status, words: self._refused(api, status, words),
            model=self._options.model,
            size_option="inline_megabytes",
        )

    def _config(self, types: Any, question: Question, seconds: float) -> Any:
        given = self._options
        thinking = given.thinking_budget
        resolution = given.media_resolution
        return types.GenerateContentConfig(
            system_instruction=question.system,
            temperature=question.temperature if given.temperature is None else given.temperature,
            max_output_tokens=given.max_output_tokens,
            seed=question.seed & SEED_MAX,
            response_mime_type="application/json",
            response_json_schema=dict(question.schema),
            thinking_config=None if thinking is None else types.ThinkingConfig(thinking_budget=thinking),
            media_resolution=None if resolution == "default" else f"MEDIA_RESOLUTION_{resolution.upper()}",
            automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
            http_options=types.HttpOptions(timeout=round(seconds * 1000)),
        )

    def _refused(self, api: GeminiApi, status: int, words: str) -> CliploopError | None:
        """What a refusal means that depends on what was asked."""
        if status == 400 and "token count" in words and "exceeds" in words:
            return BackendMisconfigured(
                f"{api.place}: the clips are too long for {self._options.model} ({words}): lower video_fps, or"
                ' set media_resolution = "low"'
            )
        if status == 400 and "payload size" in words:
            return BackendMisconfigured(
                f"{api.place}: the request is too large ({words}): lower inline_megabytes"
            )
        return None

    def _late(self, api: GeminiApi) -> BackendUnavailable:
        return BackendUnavailable(
            f"{api.place}: no whole answer within {self._options.timeout_seconds:g} s: raise timeout_seconds, or"
            " lower thinking_budget"
        )

    def _read(self, answer: Any, api: GeminiApi, sent: tuple[str, ...]) -> Reply:
        """The first candidate. Raises ReplyBlocked, and ReplyUnreadable where there is nothing in it."""
        spend = self._spend(answer.usage_metadata)
        name = answer.model_version or self._options.model
        feedback = answer.prompt_feedback
        if feedback is not None and feedback.block_reason is not None:
            why = ": ".join(
                api.told(said) for said in (feedback.block_reason.value, feedback.block_reason_message) if said
            )
            raise ReplyBlocked(f"a safety filter refused the question ({why})", spend=spend, sent=sent)
        if not answer.candidates:
            raise ReplyUnreadable("the answer holds no candidate", spend=spend, sent=sent)
        candidate = answer.candidates[0]
        finish = None if candidate.finish_reason is None else str(candidate.finish_reason.value)
        text = _text(candidate)
        if (finish or "").casefold() in BLOCKED:
            what = f"a safety filter withheld the reply ({finish})"
            raise ReplyBlocked(what, raw=text or "", spend=spend, sent=sent)
        if finish != "MAX_TOKENS" and not (text or "").strip():
            what = f"the reply is empty ({finish})"
            raise ReplyUnreadable(what, raw=text or "", spend=spend, sent=sent)
        return Reply(text=text, finish_reason=finish, spend=spend, model=name, sent=sent)

    def _spend(self, usage: Any) -> Spend:
        if usage is None:
            return Spend(vlm_calls=1)
        output = (usage.candidates_token_count or 0) + (usage.thoughts_token_count or 0)
        return self._options.charged(usage.prompt_token_count or 0, usage.cached_content_token_count or 0, output)

    def _sent(self, question: Question, shown: Sequence[Shown], files: set[int]) -> tuple[str, ...]:
        """What the trajectory tells of the request."""
        given = self._options
        media = [
            each.told + (", uploaded" if number in files else "")
            for number, each in enumerate(shown)
            if isinstance(each, Media)
        ]
        temperature = question.temperature if given.temperature is None else given.temperature
        figures = f"temperature {temperature:g}, seed {question.seed & SEED_MAX}"
        if given.thinking_budget is not None:
            figures += f", thinking budget {given.thinking_budget}"
        return (*media, "the reply's schema enforced", figures)


def _text(candidate: Any) -> str | None:
    """What it says, without its thoughts; None where it says nothing at all."""
    parts: list[Any] = (candidate.content.parts if candidate.content is not None else None) or []
    said = [part.text for part in parts if isinstance(part.text, str) and not part.thought]
    return "".join(said) if said else None


def build(options: GeminiOptions, reader: FrameReader | None) -> VlmModel:
    """Nothing is asked of the server yet. Raises BackendMisconfigured: no price, prompts that do not fit."""
    options.require_price()
    return roles.model(Gemini(options, reader), options)


def figures(options: GeminiOptions) -> dict[str, Any]:
    """What decides its replies beside its options: prompts and schemas. Raises BackendMisconfigured."""
    options.require_price()
    return roles.figures(options)
