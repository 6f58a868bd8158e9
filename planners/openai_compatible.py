"""Asks any vision-language model behind `POST /v1/chat/completions`: Qwen3.5 through vLLM or SGLang, and others.

What a server takes it mostly says only by refusing: how many images, whether a video, whether a schema. Each
refusal of that kind is learned and the question asked again in another form; it is forgotten when the server
cannot be reached, since another may come back.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from cliploop.vendor_faults import place
from media.frames import FrameReader
from orchestrator.errors import BackendMisconfigured, BackendUnavailable, ReplyBlocked, ReplyUnreadable
from planners.openai_chat import Exchange, Unfit, of, require_usable
from planners.openai_compatible_options import OpenAICompatibleOptions
from planners.openai_content import Content, Showing, content
from planners.questions import Question, Reply, Role
from planners.replies import BLOCKED
from planners.roles import VlmModel, model

FORMS_TRIED = 24  # until a question is given up
LEAST_OUTPUT_TOKENS = 1024  # for which fewer pictures are not yet worth it


@dataclass
class _Learned:
    """What the server was found not to take. `room`: images that fit into the context, by role."""

    images: int | None = None
    room: dict[Role, int] = field(default_factory=dict[Role, int])
    video: bool = True
    schema: bool = True
    temperature: bool = True
    seed: bool = True
    tokens_field: str = "max_tokens"

    def images_for(self, role: Role) -> int | None:
        known = [count for count in (self.images, self.room.get(role)) if count is not None]
        return min(known, default=None)


class OpenAICompatible:
    """Implements planners.questions.VlmClient. Holds no connection between two asks."""

    def __init__(self, options: OpenAICompatibleOptions, reader: FrameReader | None) -> None:
        self._options = options
        self._reader = reader
        self._learned = self._fresh()

    def check(self) -> None:
        """Whether the client is there, and a key where one is needed. Raises BackendMisconfigured."""
        require_usable(self._options)

    def ask(self, question: Question) -> Reply:
        """One question and its reply, in the richest form that the server takes.

        Raises BackendUnavailable, BackendMisconfigured, ReplyBlocked, ReplyUnreadable.
        """
        if self._reader is None:
            raise BackendMisconfigured("this model was built without artifacts: it sees no picture")
        until = time.monotonic() + self._options.timeout_seconds
        tokens = self._options.max_output_tokens
        for _ in range(FORMS_TRIED):
            shown = content(question.parts, self._reader, self._showing(question.role))
            body = self._body(question, shown, tokens)
            try:
                answer = Exchange(self._options, body, shown.how == "video", until).answer()
            except Unfit as unfit:
                tokens = self._learn(unfit, question, shown, tokens)
            except BackendUnavailable as error:
                if error.retry_after_seconds is None:
                    self._learned = self._fresh()
                raise
            except ReplyBlocked as blocked:
                raise ReplyBlocked(str(blocked), sent=self._sent(shown, body)) from None
            else:
                return self._reply(answer, self._sent(shown, body))
        raise BackendMisconfigured(f"{self._place}: it refused the question in {FORMS_TRIED} forms")

    def _fresh(self) -> _Learned:
        given = self._options
        return _Learned(images=given.max_images or None, video=given.video != "frames", schema=given.guided_json)

    def _showing(self, role: Role) -> Showing:
        given = self._options
        short = role in self._learned.room  # of context: a large sheet would cost what the frames did
        return Showing(
            video=self._learned.video,
            images=self._learned.images_for(role),
            per_second=given.frames_per_second,
            min_frames=given.min_frames,
            max_frames=given.max_frames,
            side_max=given.max_image_side,
            sheet_side_max=given.max_image_side if short else 2 * given.max_image_side,
        )

    def _body(self, question: Question, shown: Content, tokens: int) -> dict[str, Any]:
        given, learned = self._options, self._learned
        body: dict[str, Any] = {
            "model": given.model,
            "messages": [
                {"role": "system", "content": question.system},
                {"role": "user", "content": shown.parts},
            ],
            learned.tokens_field: tokens,
        }
        if learned.temperature:
            body["temperature"] = question.temperature if given.temperature is None else given.temperature
        if learned.seed:
            body["seed"] = question.seed
        if learned.schema:
            form = {"name": question.role, "schema": dict(question.schema), "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": form}
        extra: dict[str, Any] = dict(given.extra_body)
        if given.thinking != "default":
            extra["chat_template_kwargs"] = {"enable_thinking": given.thinking == "on"}
        return {**body, "extra_body": extra} if extra else body

    def _learn(self, unfit: Unfit, question: Question, shown: Content, tokens: int) -> int:
        """Note what the server does not take; how many tokens the reply may have from now on.

        Raises BackendMisconfigured where there is no other form.
        """
        learned, form = self._learned, unfit.form
        if form == "video" and self._options.video == "auto":
            learned.video = False
        elif form == "images" and shown.num_images > (1 if unfit.limit is None else unfit.limit) > 0:
            learned.images = unfit.limit or shown.num_images // 2
        elif form == "context":
            return self._shortened(unfit, question.role, shown, tokens)
        elif form == "schema":
            learned.schema = False
        elif form == "temperature":
            learned.temperature = False
        elif form == "seed":
            learned.seed = False
        elif form == "max_tokens":
            learned.tokens_field = "max_completion_tokens"
        elif form == "video":
            raise BackendMisconfigured(
                f'{self._place}: it takes no video ({unfit.words}): set video = "frames" or "auto"'
            )
        else:
            raise BackendMisconfigured(
                f"{self._place}: the model {self._options.model!r} does not take these pictures ({unfit.words}):"
                " name one that sees"
            )
        return tokens

    def _shortened(self, unfit: Unfit, role: Role, shown: Content, tokens: int) -> int:
        """A shorter reply if that is enough, else fewer pictures."""
        left = (unfit.limit or 0) - (unfit.prompt_tokens or unfit.limit or 0)
        if LEAST_OUTPUT_TOKENS <= left < tokens:
            return left
        if shown.how == "video" and self._options.video == "auto":
            self._learned.video = False
        elif shown.num_images > 1 and shown.how != "video":
            self._learned.room[role] = max(1, shown.num_images * 2 // 3)
        else:
            raise BackendMisconfigured(
                f"{self._place}: even the shortest question does not fit into the model's context"
                f" ({unfit.words}): raise it on the server, or lower max_image_side and max_output_tokens"
            )
        return tokens

    def _reply(self, answer: Mapping[str, Any], sent: tuple[str, ...]) -> Reply:
        """The answer's first choice. Raises ReplyUnreadable where there is no text in it, ReplyBlocked."""
        usage = answer.get("usage")
        spend = self._options.spend(_count(of(usage, "prompt_tokens")), _count(of(usage, "completion_tokens")))
        choices: Any = answer.get("choices")
        choice: Any = cast("list[Any]", choices)[0] if isinstance(choices, list) and choices else None
        message, finish = of(choice, "message"), of(choice, "finish_reason")
        text = _text(of(message, "content"))
        name = str(answer.get("model") or self._options.model)
        if refusal := _text(of(message, "refusal")):
            raise ReplyBlocked("the model refused to answer", raw=refusal, spend=spend, sent=sent)
        reason = finish if isinstance(finish, str) else None
        if not text.strip() and (reason or "").casefold() not in BLOCKED:
            thoughts = _text(of(message, "reasoning_content")) or _text(of(message, "reasoning"))
            raise ReplyUnreadable(_no_text(reason, thoughts), raw=text, spend=spend, sent=sent)
        return Reply(text=text, finish_reason=reason, spend=spend, model=name, sent=sent)

    def _sent(self, shown: Content, body: Mapping[str, Any]) -> tuple[str, ...]:
        """What the trajectory tells of the request."""
        form = "the reply's schema enforced" if "response_format" in body else "the reply's schema in words"
        figures = ", ".join(f"{name} {body[name]:g}" for name in ("temperature", "seed") if name in body)
        return (*shown.sent, form, *([figures] if figures else []))

    @property
    def _place(self) -> str:
        return place(self._options.base_url)


def _no_text(finish: str | None, thoughts: str) -> str:
    if thoughts:
        return (
            f"the reply holds {len(thoughts)} characters of thinking and no answer ({finish}): raise"
            ' max_output_tokens, or set thinking = "off"'
        )
    return f"the reply is empty ({finish})"


def _text(value: Any) -> str:
    """A message's text, which some servers give as a list of parts."""
    if isinstance(value, list):
        return "".join(_text(of(part, "text")) for part in cast("list[Any]", value))
    return value if isinstance(value, str) else ""


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def build(options: OpenAICompatibleOptions, reader: FrameReader | None) -> VlmModel:
    """Nothing is asked of the server yet. Raises BackendMisconfigured for prompts that do not fit."""
    return model(OpenAICompatible(options, reader), options)
