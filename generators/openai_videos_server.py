"""One server of `POST /v1/videos`, through the official openai client: submit, poll, load, cancel; its faults.

It knows nothing of shots and frames. The client never retries by itself: a POST that is sent twice renders twice.
"""

from __future__ import annotations

import io
import json
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, cast

from cliploop.vendor_faults import (
    MAX_TALK_BYTES,
    Refusal,
    bounded,
    connection_fault,
    is_of_http,
    is_talk,
    place,
    told,
    trust,
)
from cliploop.vendor_keys import key_from
from generators.openai_videos_options import POLL_AFTER, OpenAIVideosOptions
from generators.remote import Bounded, Look, Patience, RenderFiltered, Watch
from orchestrator.errors import (
    BackendFailed,
    BackendMisconfigured,
    BackendUnavailable,
    CliploopError,
    SubmissionUnknown,
)

RENDERED_SHARE = 0.95  # of the progress: the rest is the download
_FAILED = ("failed", "cancelled", "canceled", "expired", "error")
_FILTER_WORDS = ("moderation", "safety", "content_policy", "content_filter", "blocked")
_log = logging.getLogger(__name__)


class VideoServer:
    """One connection to the server, through the official client, which never retries by itself."""

    def __init__(self, options: OpenAIVideosOptions) -> None:
        self._options = options
        self._key = key_from([options.api_key_env])
        self._openai = _library()
        self._soon = options.request_seconds
        self._client: Any = self._connected()

    def _connected(self) -> Any:
        if not self._key and place(self._options.base_url).startswith("https://api.openai.com"):
            raise BackendMisconfigured(
                f"no key for {place(self._options.base_url)}: set the environment variable"
                f" {self._options.api_key_env}"
            )
        http = self._openai.DefaultHttpxClient(
            verify=trust(self._options.ca_file), follow_redirects=False, event_hooks={"response": [self._bounded]}
        )
        return self._openai.OpenAI(
            base_url=self._options.base_url,
            api_key=self._key or "none",
            organization=None,
            project=None,
            max_retries=0,
            timeout=self._options.request_seconds,
            http_client=http,
        )

    def _bounded(self, response: Any) -> None:
        """A file has as long as the render; everything else must be there soon."""
        talk, given = is_talk(response), self._options
        until = time.monotonic() + (self._soon if talk else given.limit_seconds)
        bounded(response, until, MAX_TALK_BYTES if talk else (given.max_mebibytes + 1) << 20)

    def close(self) -> None:
        self._client.close()

    def submit(self, fields: Mapping[str, Any], picture: bytes) -> str:
        """Its id. Raises SubmissionUnknown where nobody knows whether it began."""
        reference = ("start.png", io.BytesIO(picture), "image/png")
        create: Any = self._client.videos.with_raw_response.create
        video = self._asked(lambda: create(**fields, input_reference=reference), submitting=True)[0]
        video_id = _of(video, "id")
        if isinstance(video_id, str) and (video_id in (".", "..") or not video_id.isprintable()):
            raise SubmissionUnknown(f"{self._place}: it gave an id that is none; a render may have begun")
        if not isinstance(video_id, str) or not video_id:
            raise BackendMisconfigured(
                f"{self._place}: it answered a submission without a video's id ({told(video, self._key)}): is"
                " base_url the address of a video API, with /v1?"
            )
        return video_id

    def awaited(self, video_id: str, watch: Watch) -> bytes:
        """The video's file, once it is rendered. Raises JobCancelled, BackendFailed, BackendUnavailable."""
        patience = Patience(watch, self._options.limit_seconds)
        try:
            patience.until_done(lambda: self._look(video_id))
        except BackendFailed:
            if time.monotonic() - patience.began > self._options.limit_seconds:
                self.abandon(video_id)
            raise
        watch.tell(RENDERED_SHARE)
        return self._downloaded(video_id, watch)

    def _look(self, video_id: str) -> Look:
        retrieve: Any = self._client.videos.with_raw_response.retrieve
        video, headers = self._asked(lambda: retrieve(video_id), video_id=video_id)
        status = _of(video, "status")
        if not isinstance(status, str):
            raise BackendUnavailable(
                f"{self._place}: what it says of {video_id} is no video ({told(video, self._key)})"
            )
        if status == "completed":
            return Look(value=video)
        if status in _FAILED:
            raise self._failure(video_id, status, _of(video, "error"))
        return Look(None, self._pause(headers), RENDERED_SHARE * _percent(_of(video, "progress")) / 100)

    def _pause(self, headers: Mapping[str, str]) -> float:
        said = headers.get(POLL_AFTER, "")
        return (
            int(said) / 1000
            if said.isascii() and said.isdigit() and len(said) < 10
            else self._options.poll_seconds
        )

    def _failure(self, video_id: str, status: str, error: Any) -> BackendFailed:
        code, message = told(_of(error, "code") or "", self._key)[:64], _of(error, "message")
        words = told(message or error or status, self._key)
        if any(word in code.lower() for word in _FILTER_WORDS):
            return RenderFiltered(f"{self._place}: a safety filter withheld {video_id} ({code}: {words})")
        return BackendFailed(
            f"{self._place}: {video_id} {status}" + (f" ({code})" if code else "") + f": {words}"
        )

    def _downloaded(self, video_id: str, watch: Watch) -> bytes:
        streamed: Any = self._client.videos.with_streaming_response.download_content

        def load() -> bytes:
            data = Bounded(self._options.max_mebibytes << 20, watch)
            with streamed(video_id) as response:
                for piece in response.iter_bytes():
                    data.take(piece)
            return data.whole

        return self._guarded(load, video_id=video_id)

    def abandon(self, video_id: str) -> None:
        """Ask the server to stop and forget it; for so long as that takes, but no longer than cancel_seconds."""
        until = time.monotonic() + self._options.cancel_seconds
        self._soon = min(self._soon, self._options.cancel_seconds)
        delete: Any = self._client.videos.with_raw_response.delete
        while True:
            try:
                self._asked(lambda: delete(video_id), video_id=video_id)
                return
            except BackendFailed:  # 404: it is gone
                return
            except BackendUnavailable as busy:
                pause = min(busy.retry_after_seconds or 1.0, 5.0)
                if time.monotonic() + pause > until:
                    _log.warning("%s was not cancelled in time and may go on: %s", video_id, busy)
                    return
                time.sleep(pause)
            except CliploopError as refused:
                _log.warning("%s cannot be cancelled and may go on: %s", video_id, refused)
                return

    def _asked(
        self, call: Callable[[], Any], *, submitting: bool = False, video_id: str = ""
    ) -> tuple[Any, Mapping[str, str]]:
        """What it answered, and with which headers."""

        def both() -> tuple[Any, Mapping[str, str]]:
            answer = call()
            text = answer.http_response.text
            if "json" not in answer.headers.get("content-type", ""):
                return text, answer.headers
            try:
                return json.loads(text), answer.headers
            except ValueError:
                what = f"{self._place}: its answer is JSON that breaks off"
                raise (
                    SubmissionUnknown(f"{what}; a render may have begun")
                    if submitting
                    else BackendUnavailable(what)
                ) from None

        return self._guarded(both, submitting=submitting, video_id=video_id)

    def _guarded(self, call: Callable[[], Any], *, submitting: bool = False, video_id: str = "") -> Any:
        try:
            return call()
        except CliploopError:
            raise
        except self._openai.APIStatusError as error:
            raise self._refused(error, submitting, video_id) from None
        except self._openai.APIConnectionError as error:
            raise connection_fault(error, self._options.base_url, submitting=submitting) from None
        except Exception as error:
            if is_of_http(error):
                raise connection_fault(error, self._options.base_url, submitting=submitting) from None
            what = f"{self._place}: its answer cannot be read ({type(error).__name__}: {told(error, self._key)})"
            if submitting:
                raise SubmissionUnknown(f"{what}; a render may have begun") from error
            raise BackendUnavailable(what) from error

    def _refused(self, error: Any, submitting: bool, video_id: str) -> CliploopError:
        body: Any = error.body
        code, param = told(_of(body, "code") or "", self._key)[:64], str(_of(body, "param") or "")
        words = told(_of(body, "message") or body or error.message, self._key)
        headers: Mapping[str, str] = error.response.headers
        asked = self._options
        known = Refusal(asked.base_url, error.status_code, words, headers, asked.api_key_env, submitting).fault()
        if any(word in code.lower() for word in _FILTER_WORDS):
            return RenderFiltered(f"{self._place}: a safety filter refused the render ({code}: {words})")
        if known is not None:
            return known
        if error.status_code == 404 and video_id:
            return BackendFailed(f"{self._place}: {video_id} is gone: the server lost it or somebody deleted it")
        if error.status_code == 404 and (code == "model_not_found" or "model" in words.lower()):
            return BackendMisconfigured(f"{self._place}: it does not know the model {asked.model!r} ({words})")
        if error.status_code == 404:
            return BackendMisconfigured(
                f"{self._place}: there is no video API at this address (404: {words}): does base_url end in /v1?"
            )
        if param == "prompt":
            return BackendFailed(f"{self._place}: it refused the prompt ({error.status_code}): {words}")
        return BackendMisconfigured(
            f"{self._place}: it refused what was asked ({error.status_code}): {words}; see the options dialect,"
            " sizes, seconds and model"
        )

    @property
    def _place(self) -> str:
        return place(self._options.base_url)


def _of(value: Any, name: str) -> Any:
    """A field of an object, None where it is none."""
    return cast("Mapping[str, Any]", value).get(name) if isinstance(value, Mapping) else None


def _percent(said: Any) -> float:
    try:
        value = float(said)
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return min(100.0, max(0.0, value)) if value == value else 0.0


def _library() -> Any:
    try:
        import openai
    except ImportError as error:
        raise BackendMisconfigured(
            "this generator needs the openai client: pip install 'cliploop[openai]'"
        ) from error
    return openai
