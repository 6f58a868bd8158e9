"""Veo's operations in the Gemini API, through the google-genai client: submit, poll, load, and its faults.

It knows nothing of shots and frames. The client never retries by itself: a submission that is sent twice is paid
twice.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from cliploop.vendor_gemini import Access, GeminiApi
from generators.remote import Bounded, Look, Patience, RenderEmpty, RenderFiltered, Watch
from generators.veo_options import VeoOptions
from orchestrator.errors import BackendFailed, BackendMisconfigured, CliploopError, SubmissionUnknown

RENDERED_SHARE = 0.95  # of the progress; Veo itself tells none
_BLOCKED = re.compile(r"(?i)responsible ai|safety|sensitive|violat|blocked|prohibited|usage guidelines")


class VeoServer:
    """One connection to the API. Raises BackendMisconfigured without the client, or without a key."""

    def __init__(self, options: VeoOptions) -> None:
        self._options = options
        access = Access("veo", options.base_url, options.key_names, options.ca_file)
        self._api = GeminiApi(access, options.request_seconds)
        self._api.files.seconds, self._api.files.max_bytes = (
            options.limit_seconds,
            (options.max_mebibytes + 1) << 20,
        )

    def close(self) -> None:
        self._api.close()

    def submit(self, prompt: str, png: bytes, wide: bool, seconds: int) -> str:
        """The operation's name. Raises SubmissionUnknown where nobody knows whether it began."""
        given, types = self._options, self._api.types
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
        generate: Any = self._api.client.models.generate_videos
        operation = self._guarded(
            lambda: generate(model=given.model, source=source, config=config), submitting=True
        )
        if isinstance(operation.name, str) and not operation.name.isprintable():
            raise SubmissionUnknown(f"{self._place}: it gave an id that is none; a render may have begun")
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
        try:
            return self._looked(name)
        except (AttributeError, TypeError, ValueError, KeyError) as error:
            raise self._api.nonsense(error) from error

    def _looked(self, name: str) -> Look:
        asked = self._api.types.GenerateVideosOperation(name=name)
        operation: Any = self._guarded(lambda: self._api.client.operations.get(asked), name=name)
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
            why = self._api.told("; ".join(map(str, reasons)) or "no reason given")
            raise RenderFiltered(f"{self._place}: a safety filter withheld the video of {name}: {why}")
        raise RenderEmpty(f"{self._place}: {name} is done without a video")

    def _failure(self, name: str, error: Mapping[str, Any]) -> BackendFailed:
        words = self._api.told(error.get("message") or error)
        if _BLOCKED.search(words):
            return RenderFiltered(f"{self._place}: a safety filter stopped {name}: {words}")
        return BackendFailed(f"{self._place}: {name} failed ({error.get('code')}): {words}")

    def _downloaded(self, video: Any, name: str, watch: Watch) -> bytes:
        written = _Written(self._options.max_mebibytes << 20, watch)

        def load() -> bytes:
            self._api.files.loading = True
            try:
                self._api.client.files.download(file=video, destination=written)
            finally:
                self._api.files.loading = False
            return written.whole

        return self._guarded(load, name=name)

    def _guarded(self, call: Callable[[], Any], *, submitting: bool = False, name: str = "") -> Any:
        return self._api.guarded(
            call,
            submitting=submitting,
            refused=lambda status, words: self._refused(status, words, name),
            model=self._options.model,
        )

    def _refused(self, status: int, words: str, name: str) -> CliploopError | None:
        """What a refusal means that only Veo knows."""
        if status == 404 and name:
            return BackendFailed(f"{self._place}: {name} is gone: it has expired, or belongs to another key")
        if status != 404 and _BLOCKED.search(words):
            return RenderFiltered(f"{self._place}: a safety filter refused the render: {words}")
        return None

    @property
    def _place(self) -> str:
        return self._api.place


class _Written(Bounded):
    """What the client writes a download into."""

    def write(self, piece: bytes) -> int:
        self.take(piece)
        return len(piece)
