"""Veo's operations in the Gemini API, through the google-genai client: submit, poll, load, and its faults.

It knows nothing of shots and frames. The client never retries by itself: a submission that is sent twice is paid
twice.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from cliploop.vendor_faults import Refusal, connection_fault, is_of_http, place, told, trust
from cliploop.vendor_keys import key_from
from generators.remote import Bounded, Look, Patience, RenderEmpty, RenderFiltered, Watch
from generators.veo_options import VeoOptions
from orchestrator.errors import (
    BackendFailed,
    BackendMisconfigured,
    BackendUnavailable,
    CliploopError,
    SubmissionUnknown,
)

GOOGLES = "https://generativelanguage.googleapis.com"
RENDERED_SHARE = 0.95  # of the progress; Veo itself tells none
_BLOCKED = re.compile(r"(?i)responsible ai|safety|sensitive|violat|blocked|prohibited|usage guidelines")
_DELAY = re.compile(r"retryDelay\W+(\d+(?:\.\d+)?)s")


class VeoServer:
    """One connection to the API. Raises BackendMisconfigured without the client, or without a key."""

    def __init__(self, options: VeoOptions) -> None:
        self._options = options
        self._url = options.base_url or GOOGLES
        self._key = key_from(options.key_names)
        if not self._key:
            raise BackendMisconfigured(
                f"veo: no key for {place(self._url)}: set the environment variable"
                f" {' or '.join(options.key_names)}"
            )
        self._genai, self._errors, self._types = _library()
        self._client: Any = self._genai.Client(vertexai=False, api_key=self._key, http_options=self._http())

    def _http(self) -> Any:
        verify = trust(self._options.ca_file)
        return self._types.HttpOptions(
            base_url=self._options.base_url or None,
            timeout=round(self._options.request_seconds * 1000),
            retry_options=self._types.HttpRetryOptions(attempts=1),
            client_args={} if verify is True else {"verify": verify},
        )

    def close(self) -> None:
        self._client.close()

    def submit(self, prompt: str, png: bytes, wide: bool, seconds: int) -> str:
        """The operation's name. Raises SubmissionUnknown where nobody knows whether it began."""
        given, types = self._options, self._types
        source = types.GenerateVideosSource(
            prompt=prompt, image=types.Image(image_bytes=png, mime_type="image/png")
        )
        config = types.GenerateVideosConfig(
            number_of_videos=1,
            duration_seconds=seconds,
            aspect_ratio="16:9" if wide else "9:16",
            resolution=given.resolution,
            negative_prompt=given.negative_prompt or None,
            person_generation=given.person_generation or None,
        )
        generate: Any = self._client.models.generate_videos
        operation = self._guarded(
            lambda: generate(model=given.model, source=source, config=config), submitting=True
        )
        if not operation.name:
            raise BackendMisconfigured(
                f"{self._place}: it answered a submission without an operation's name: is base_url a Gemini API?"
            )
        return str(operation.name)

    def awaited(self, name: str, watch: Watch) -> bytes:
        """The video's file, once it is rendered.

        Raises RenderFiltered, RenderEmpty, BackendFailed, BackendUnavailable, JobCancelled.
        """
        video = Patience(watch, self._options.limit_seconds).until_done(lambda: self._look(name))
        watch.tell(RENDERED_SHARE)
        if video.video_bytes:
            return bytes(video.video_bytes)
        return self._downloaded(video, name, watch)

    def _look(self, name: str) -> Look:
        asked = self._types.GenerateVideosOperation(name=name)
        operation: Any = self._guarded(lambda: self._client.operations.get(asked), name=name)
        if not operation.done:
            return Look(None, self._options.poll_seconds)
        if operation.error:
            raise self._failure(name, cast("Mapping[str, Any]", operation.error))
        answer = operation.response
        videos: Iterable[Any] = (answer.generated_videos if answer is not None else None) or ()
        found = next(
            (each.video for each in videos if each.video and (each.video.uri or each.video.video_bytes)), None
        )
        if found is not None:
            return Look(value=found)
        reasons = (answer.rai_media_filtered_reasons if answer is not None else None) or ()
        if reasons or (answer is not None and answer.rai_media_filtered_count):
            why = told("; ".join(map(str, reasons)) or "no reason given", self._key)
            raise RenderFiltered(f"{self._place}: a safety filter withheld the video of {name}: {why}")
        raise RenderEmpty(f"{self._place}: {name} is done without a video")

    def _failure(self, name: str, error: Mapping[str, Any]) -> BackendFailed:
        words = told(error.get("message") or error, self._key)
        if _BLOCKED.search(words):
            return RenderFiltered(f"{self._place}: a safety filter stopped {name}: {words}")
        return BackendFailed(f"{self._place}: {name} failed ({error.get('code')}): {words}")

    def _downloaded(self, video: Any, name: str, watch: Watch) -> bytes:
        written = _Written(self._options.max_mebibytes << 20, watch)

        def load() -> bytes:
            self._client.files.download(file=video, destination=written)
            return written.whole

        return self._guarded(load, name=name)

    def _guarded(self, call: Callable[[], Any], *, submitting: bool = False, name: str = "") -> Any:
        try:
            return call()
        except CliploopError:
            raise
        except self._errors.APIError as error:
            raise self._refused(error, submitting, name) from None
        except json.JSONDecodeError as error:
            raise self._unreadable(error, submitting) from None
        except Exception as error:
            if not is_of_http(error):
                raise
            raise connection_fault(error, self._url, submitting=submitting) from None

    def _unreadable(self, error: json.JSONDecodeError, submitting: bool) -> CliploopError:
        if error.doc.lstrip().startswith("<"):
            what = f"{self._place}: an HTML page came back ({told(error.doc, self._key)})"
            return (
                BackendMisconfigured(f"{what}: is base_url a Gemini API?")
                if submitting
                else BackendUnavailable(what)
            )
        what = f"{self._place}: its answer is JSON that breaks off"
        return SubmissionUnknown(f"{what}; a render may have begun") if submitting else BackendUnavailable(what)

    def _refused(self, error: Any, submitting: bool, name: str) -> CliploopError:
        words = told(error.message or error.details, self._key)
        names = " or ".join(self._options.key_names)
        status = int(error.code or 0)
        headers = _headers(error)
        if status == 400 and ("API_KEY_INVALID" in str(error.details) or "API key not valid" in words):
            return BackendMisconfigured(f"{self._place}: the key was refused ({words}): set {names}")
        known = Refusal(self._url, status, words, headers, names, submitting).fault()
        if known is not None:
            return known
        if status == 404 and name:
            return BackendFailed(f"{self._place}: {name} is gone: it has expired, or belongs to another key")
        if status == 404:
            return BackendMisconfigured(
                f"{self._place}: it does not know the model {self._options.model!r} ({words})"
            )
        if _BLOCKED.search(words):
            return RenderFiltered(f"{self._place}: a safety filter refused the render: {words}")
        return BackendMisconfigured(f"{self._place}: it refused what was asked ({status}): {words}")

    @property
    def _place(self) -> str:
        return place(self._url)


class _Written(Bounded):
    """What the client writes a download into."""

    def write(self, piece: bytes) -> int:
        self.take(piece)
        return len(piece)


def _headers(error: Any) -> Mapping[str, str]:
    """Of the answer; Google also says in its body when to come back: `retryDelay: "37s"`."""
    found: dict[str, str] = {}
    for key, value in dict(getattr(error.response, "headers", None) or {}).items():
        found[str(key).lower()] = str(value)
    delay = _DELAY.search(str(error.details))
    if delay and "retry-after" not in found:
        found["retry-after"] = delay[1]
    return found


def _library() -> tuple[Any, Any, Any]:
    try:
        from google import genai
        from google.genai import errors, types
    except ImportError as error:
        raise BackendMisconfigured("veo needs the google-genai client: pip install 'cliploop[gemini]'") from error
    return genai, errors, types
