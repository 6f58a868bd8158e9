"""One exchange with a server of `POST /v1/chat/completions`, through the official openai client; its faults.

It knows nothing of roles and pictures. What a server refuses because of the request's form is told as `Unfit`, so
that it can be asked in another form. The client never retries by itself: that is the loop's.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from cliploop.vendor_faults import (
    Refusal,
    bounded,
    connection_fault,
    is_of_http,
    place,
    told,
    trust,
)
from cliploop.vendor_keys import key_from
from orchestrator.errors import BackendMisconfigured, BackendUnavailable, CliploopError, ReplyBlocked
from planners.openai_compatible_options import OpenAICompatibleOptions

CONNECT_SECONDS = 10.0
MAX_REPLY_BYTES = 4 << 20
Form = Literal["images", "context", "video", "schema", "max_tokens", "temperature", "seed"]

_IMAGES = re.compile(
    r"at most (\d+) (?:image|picture)|image=(\d+)\b|(?:maximum|max|limit) of (\d+) images?|up to (\d+) images?"
    r"|(\d+) images? (?:per|are allowed|is allowed)"
)
_MANY_IMAGES = re.compile(r"too many images|number of images|exceeds? .{0,40}image limit")
_NO_IMAGES = re.compile(
    r"not a multimodal model|(?:does not|doesn't|do not) (?:support|accept) (?:image|multimodal|vision)"
    r"|image input is not supported|unknown part type: image"
)
_VIDEO = re.compile(r"video|part type|content\[\]\.type|content type|unsupported content|invalid.{0,30}type")
_CONTEXT = re.compile(
    r"context[ _](?:length|size|window)|too long|longer than|too many tokens|max_model_len|maximum input"
    r"|token count|reduce the length|max_(?:completion_)?tokens.{0,20}(?:is too large|must be at least)"
)
_SCHEMA = re.compile(r"response_format|json_schema|structured|guided|grammar|xgrammar|schema")
_CONTEXT_SIZE = re.compile(r"(?:context (?:length|size|window)|limit)\D{0,20}(\d+)")
_PROMPT_SIZE = re.compile(r"(\d+)\s+(?:in the messages|input tokens|tokens from the input)")
_BLOCKED = ("content_filter", "content_policy", "data_inspection", "moderation", "responsible_ai", "safety")


class Unfit(Exception):
    """The server does not take a request of this form; `limit` and `prompt_tokens` where it said them."""

    def __init__(
        self, form: Form, words: str, *, limit: int | None = None, prompt_tokens: int | None = None
    ) -> None:
        super().__init__(words)
        self.form: Form = form
        self.words, self.limit, self.prompt_tokens = words, limit, prompt_tokens


@dataclass(frozen=True)
class Exchange:
    """One request and its answer. `until` is the end of patience, by the monotonic clock."""

    options: OpenAICompatibleOptions
    body: Mapping[str, Any]
    has_video: bool
    until: float

    def answer(self) -> Mapping[str, Any]:
        """The server's object. Raises Unfit, BackendUnavailable, BackendMisconfigured, ReplyBlocked."""
        openai, key = require_usable(self.options)
        http = openai.DefaultHttpxClient(
            verify=trust(self.options.ca_file),
            follow_redirects=False,
            event_hooks={"response": [self._bounded]},
        )
        with openai.OpenAI(
            base_url=self.options.base_url,
            api_key=key or "none",
            organization=None,
            project=None,
            max_retries=0,
            http_client=http,
        ) as client:
            try:
                data, kind = self._loaded(client, openai)
            except openai.APIStatusError as error:
                raise self._refused(error, key) from None
            except openai.APIConnectionError as error:
                raise self._broken(error) from None
            except CliploopError:
                raise
            except Exception as error:
                if is_of_http(error):
                    raise self._broken(error) from None
                raise self._nonsense(error, key) from error
        try:
            return self._object(data, kind, key)
        except (ValueError, TypeError, RecursionError, OverflowError) as error:
            raise self._nonsense(error, key) from error

    def _bounded(self, response: Any) -> None:
        bounded(response, self.until, MAX_REPLY_BYTES + (1 << 20))  # an error's body too

    def _nonsense(self, error: Exception, key: str) -> BackendUnavailable:
        """What cannot be made sense of is the server's fault."""
        return BackendUnavailable(
            f"{self._place}: its answer cannot be read ({type(error).__name__}: {told(error, key)})"
        )

    def _loaded(self, client: Any, openai: Any) -> tuple[bytes, str]:
        """Body and content type; a server that trickles is not waited for without end."""
        left = max(0.1, self.until - time.monotonic())
        limits = openai.Timeout(left, connect=min(CONNECT_SECONDS, left))
        create: Any = client.chat.completions.with_streaming_response.create
        data = bytearray()
        with create(**self.body, timeout=limits) as response:
            for piece in response.iter_bytes():
                data += piece
                if len(data) > MAX_REPLY_BYTES:
                    raise BackendUnavailable(
                        f"{self._place}: its answer has more than {MAX_REPLY_BYTES >> 20} MiB"
                    )
                if time.monotonic() > self.until:
                    raise self._late()
            return bytes(data), response.headers.get("content-type", "")

    def _object(self, data: bytes, kind: str, key: str) -> Mapping[str, Any]:
        text = data.decode("utf-8", errors="replace")
        if "html" in kind or text.lstrip()[:1] == "<":
            raise BackendMisconfigured(
                f"{self._place}: it answers with a web page instead of JSON ({told(text, key)}): is base_url the"
                " address of the API, with /v1, and no sign-in page in between?"
            )
        try:
            found: Any = json.loads(text)
        except ValueError:
            raise BackendUnavailable(f"{self._place}: its answer is JSON that breaks off") from None
        if not isinstance(found, dict):
            raise BackendMisconfigured(f"{self._place}: its answer is no chat completion: {told(text, key)}")
        body = cast("dict[str, Any]", found)
        if body.get("error") and not body.get("choices"):
            raise self._told_error(body["error"], key)
        return body

    def _told_error(self, error: Any, key: str) -> CliploopError:
        """What some gateways answer with status 200."""
        words = told(of(error, "message") or error, key)
        status = of(error, "code") or of(error, "status")
        number = int(status) if str(status).isdigit() else 500
        known = Refusal(self.options.base_url, number, words, {}, self.options.api_key_env).fault()
        return known or BackendUnavailable(f"{self._place}: it answers with an error: {words}")

    def _broken(self, error: Exception) -> CliploopError:
        late = time.monotonic() >= self.until - 0.05
        fault = connection_fault(error, self.options.base_url)
        return self._late() if late and isinstance(fault, BackendUnavailable) else fault

    def _late(self) -> BackendUnavailable:
        return BackendUnavailable(
            f"{self._place}: no whole answer within {self.options.timeout_seconds:g} s: raise timeout_seconds, or"
            " lower max_output_tokens"
        )

    def _refused(self, error: Any, key: str) -> Exception:
        """What a status other than 2xx means: another form, later, or never."""
        body: Any = error.body
        code, param = str(of(body, "code") or ""), str(of(body, "param") or "")
        words = told(of(body, "message") or body or error.message, key)
        status = int(error.status_code)
        if status in (400, 403, 422) and any(word in f"{code} {of(body, 'type') or ''}" for word in _BLOCKED):
            return ReplyBlocked(f"{self._place}: a safety filter refused the question ({code}: {words})")
        whole = str(of(body, "message") or body or error.message).lower()
        if (unfit := self._unfit(status, words, whole, param)) is not None:
            return unfit
        asked = self.options
        headers: Mapping[str, str] = error.response.headers
        refusal = Refusal(asked.base_url, status, words, headers, asked.api_key_env, size_option="max_image_side")
        return refusal.fault() or self._misasked(status, words)

    def _misasked(self, status: int, words: str) -> BackendMisconfigured:
        model, said = self.options.model, words.lower()
        if _NO_IMAGES.search(said):
            return BackendMisconfigured(f"{self._place}: the model {model!r} takes no pictures ({words})")
        if "model" in said and (status == 404 or "not exist" in said or "not found" in said):
            return BackendMisconfigured(
                f"{self._place}: it does not know the model {model!r} ({words}): set model to a name that"
                f" {self._place}/models lists"
            )
        if status in (404, 405):
            return BackendMisconfigured(
                f"{self._place}: there is no chat API at this address ({status}: {words}): does base_url end in"
                " /v1?"
            )
        return BackendMisconfigured(f"{self._place}: it refused what was asked ({status}): {words}")

    def _unfit(self, status: int, words: str, said: str, param: str) -> Unfit | None:
        """The part of the request's form that the server does not take, as far as its words, `said`, tell."""
        if status not in (400, 413, 415, 422, 500, 501):
            return None
        if self.has_video and (status == 413 or _VIDEO.search(said)):
            return Unfit("video", words)
        if (limit := _IMAGES.search(said)) is not None:
            return Unfit("images", words, limit=int(next(filter(None, limit.groups()))))
        if _MANY_IMAGES.search(said):
            return Unfit("images", words)
        if status == 413 or _CONTEXT.search(said):
            size, prompt = _CONTEXT_SIZE.search(said), _PROMPT_SIZE.search(said)
            return Unfit(
                "context",
                words,
                limit=int(size[1]) if size else None,
                prompt_tokens=int(prompt[1]) if prompt else None,
            )
        if "max_completion_tokens" in said and "max_tokens" in self.body:
            return Unfit("max_tokens", words)
        if "response_format" in self.body and (param == "response_format" or _SCHEMA.search(said)):
            return Unfit("schema", words)
        for form in ("temperature", "seed"):
            if form in self.body and (param == form or re.search(rf"\b{form}\b", said)):
                return Unfit(form, words)
        return None

    @property
    def _place(self) -> str:
        return place(self.options.base_url)


def of(value: Any, name: str) -> Any:
    """A field of an object, None where it is none."""
    return cast("Mapping[str, Any]", value).get(name) if isinstance(value, Mapping) else None


def require_usable(options: OpenAICompatibleOptions) -> tuple[Any, str]:
    """The client's library and the key, "" where there is none. Raises BackendMisconfigured."""
    openai, key, where = _library(), key_from([options.api_key_env]), place(options.base_url)
    if not key and where.startswith("https://api.openai.com"):
        raise BackendMisconfigured(f"no key for {where}: set the environment variable {options.api_key_env}")
    return openai, key


def _library() -> Any:
    try:
        import openai
    except ImportError as error:
        raise BackendMisconfigured(
            "this model needs the openai client: pip install 'cliploop[openai]'"
        ) from error
    return openai
